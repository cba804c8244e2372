"""The good bundle with a container in it: a recorded run of a stand-in image, fitted to the bundle's model and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qualification import paths, provenance
from qualification.gates.container_evidence import CONTAINER, PROVENANCE, SBOM
from tests.qualification.gates.evidence import Changed

RECORDED = Path(__file__).with_name("assets") / "container.json"
NEW_GATES = ("container.lifecycle", "container.reproducible", "sbom.licences")
WAIVED = ("base-files", "gcc-12-base", "libgcc-s1", "libstdc++6", "libbz2-1.0", "liblzma5")


def container_bundle(tmp_path: Path) -> Changed:
    """A copy that a test may change, in which every container gate passes."""
    changed = Changed(tmp_path)
    document = json.loads(RECORDED.read_bytes())
    identity = json.loads((changed.root / paths.IDENTITY).read_bytes())
    document["inside"]["model"] = [_file(item) for item in identity["files"]]
    parts = [part for part in document["build"]["parts"] if part["kind"] != "weights"]
    document["build"]["parts"] = [*parts, *({"kind": "weights", "name": item["path"]} for item in identity["files"])]
    bill = _bill(document)
    statement = provenance.statement(document["build"], harness="1", began=1.0, ended=2.0)
    for name, content in ((CONTAINER, document), (SBOM, bill), (PROVENANCE, statement)):
        (changed.root / name).parent.mkdir(exist_ok=True)
        (changed.root / name).write_text(json.dumps(content))
    changed.document(paths.RUN, lambda run: _into_container(run, document))
    return changed.document(paths.POLICY, _with_gates)


def _file(item: dict[str, Any]) -> dict[str, Any]:
    known = {name: item[name] for name in ("path", "bytes", "sha256")}
    return {**known, "kind": "file", "mode": "0444", "uid": 0, "gid": 0}


def _bill(document: dict[str, Any]) -> dict[str, Any]:
    hashes = {item["path"]: item["sha256"] for item in document["inside"]["model"]}
    platform = document["image"]["digests"]["platform"].removeprefix("sha256:")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "metadata": {"component": {"hashes": [{"alg": "SHA-256", "content": platform}]}},
        "components": [_component(part["kind"], part["name"], hashes) for part in document["build"]["parts"]],
    }


def _component(kind: str, name: str, hashes: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": hashes[name]}] if kind == "weights" else [],
        "licenses": [{"expression": "GPL-2.0-or-later" if name in WAIVED else "MIT"}],
        "properties": [{"name": "assay:kind", "value": kind}],
    }


def _into_container(run: dict[str, Any], document: dict[str, Any]) -> None:
    digests = {name: document["image"]["digests"][name] for name in ("index", "platform", "config")}
    run["subject"].update(kind="container", image={"name": document["image"]["name"], **digests})


def _with_gates(policy: dict[str, Any]) -> None:
    known = {entry["id"] for entry in policy["gates"]}
    words = {"title": "A gate", "claim": "It holds.", "needed": "A container engine.", "owner": "whoever asks"}
    policy["gates"] += [{"id": gate, **words} for gate in NEW_GATES if gate not in known]
    decided = {"who": "a test", "why": "because it is a test", "until": "2999-12-31"}
    policy["waivers"] = [{"gate": "sbom.licences", "subject": name, **decided} for name in WAIVED]

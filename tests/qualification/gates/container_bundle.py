"""The good bundle with a container in it: a recorded run of a stand-in image, fitted to the bundle's model and run."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from qualification import paths, provenance
from qualification.gates.container_evidence import CONTAINER, PROVENANCE, SBOM
from tests.qualification.gates.evidence import Changed

RECORDED = Path(__file__).with_name("assets") / "container.json"
WAIVED = ("base-files", "gcc-12-base", "libgcc-s1", "libstdc++6", "libbz2-1.0", "liblzma5")


def container_bundle(tmp_path: Path) -> Changed:
    """A copy that a test may change, in which every container gate passes."""
    changed = Changed(tmp_path)
    identity = json.loads((changed.root / paths.IDENTITY).read_bytes())
    document = recorded(identity["files"])
    bill = bill_of(document, WAIVED)
    statement = provenance.statement(document["build"], harness="1", began=1.0, ended=2.0)
    for name, content in ((CONTAINER, document), (SBOM, bill), (PROVENANCE, statement)):
        (changed.root / name).parent.mkdir(exist_ok=True)
        (changed.root / name).write_text(json.dumps(content))
    changed.document(paths.RUN, lambda run: _into_container(run, document))
    return changed.document(paths.POLICY, _with_waivers)


def recorded(files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The recorded run as if these model files (path, bytes, SHA-256) had been inside."""
    document: dict[str, Any] = json.loads(RECORDED.read_bytes())
    document["inside"]["model"] = [_file(item) for item in files]
    parts = [part for part in document["build"]["parts"] if part["kind"] != "weights"]
    document["build"]["parts"] = [*parts, *({"kind": "weights", "name": item["path"]} for item in files)]
    return document


def _file(item: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: item[name] for name in ("path", "bytes", "sha256")}
    return {**known, "kind": "file", "mode": "0444", "uid": 0, "gid": 0}


def bill_of(document: dict[str, Any], copyleft: Collection[str]) -> dict[str, Any]:
    """A bill of materials that lists what the record says was found; the named parts are under the GPL."""
    hashes = {item["path"]: item["sha256"] for item in document["inside"]["model"]}
    platform = document["image"]["digests"]["platform"].removeprefix("sha256:")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "metadata": {"component": {"hashes": [{"alg": "SHA-256", "content": platform}]}},
        "components": [_component(part["kind"], part["name"], hashes, copyleft) for part in document["build"]["parts"]],
    }


def _component(kind: str, name: str, hashes: dict[str, str], copyleft: Collection[str]) -> dict[str, Any]:
    return {
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": hashes[name]}] if kind == "weights" else [],
        "licenses": [{"expression": "GPL-2.0-or-later" if name in copyleft else "MIT"}],
        "properties": [{"name": "assay:kind", "value": kind}],
    }


def _into_container(run: dict[str, Any], document: dict[str, Any]) -> None:
    digests = {name: document["image"]["digests"][name] for name in ("index", "platform", "config")}
    run["subject"].update(kind="container", image={"name": document["image"]["name"], **digests})


def _with_waivers(policy: dict[str, Any]) -> None:
    decided = {"who": "a test", "why": "because it is a test", "until": "2999-12-31"}
    policy["waivers"] = [{"gate": "sbom.licences", "subject": name, **decided} for name in WAIVED]

"""A run in a container, with the fake engine in its place: what is asked, what is kept, what a verifier needs.

The container itself, its drill and its removal are tested with an engine in `container/test_docker.py`.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qualification import paths, provenance, strictjson
from qualification.bench.clock import Clock
from qualification.container import launch, session
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.own_image import OwnImage
from qualification.container.record import ContainerRecord
from qualification.container.reference import ImageReference
from qualification.container.subject import ContainerOrder
from qualification.digest import sha256_file
from qualification.subject import Subject, started
from qualification.verify import binding
from qualification.verify.trust import Trust
from tests.qualification.desk import FAKE, Desk
from tests.qualification.gates.container_bundle import bill_of, container_bundle, recorded

CONTAINER_GATES = (
    "container.identity", "container.hardening", "container.readiness", "container.lifecycle",
    "container.reproducible", "container.parity", "sbom.complete", "sbom.licences", "provenance",
)  # fmt: skip
FOREIGN = f"example/engine@sha256:{'1' * 64}"
ABSENT = ("docker", "cyclonedx", "packageurl", "requests", "httpx", "packaging", "rich", "psutil", "h11")
VERIFIER = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from qualification.cli import main
sys.exit(main(sys.argv[1:]))
"""


def _document(model: Path) -> dict[str, Any]:
    files = sorted(model.iterdir())
    return recorded([{"path": f.name, "bytes": f.stat().st_size, "sha256": sha256_file(f)} for f in files])


class Shipped:
    """An image of ours that needs no engine: the fake runs in its place, and the record is a recorded one."""

    def __init__(self, desk: Desk) -> None:
        self.document = _document(desk.model)
        self.model = desk.model
        self.fault: ContainerFault | None = None
        self.command = FAKE
        self.layout = desk.root / "image" / "layout"
        self.layout.mkdir(parents=True)
        bill = bill_of(self.document, ("base-files",))
        statement = provenance.statement(self.document["build"], harness="1", began=1.0, ended=2.0)
        for name, content in (("sbom.cdx.json", bill), ("provenance.json", statement)):
            (self.layout.parent / name).write_bytes(strictjson.dumps(content))

    @contextmanager
    def launched(
        self, order: ContainerOrder, record: ContainerRecord, clock: Clock
    ) -> Iterator[tuple[Subject, SimpleNamespace]]:
        for name in set(vars(record)) - {"findings"}:
            setattr(record, name, self.document[name])
        if self.fault is not None:
            record.note(self.fault)
            raise self.fault
        with started(shlex.split(self.command), clock) as inner:
            assert inner.process is not None
            digests = self.document["image"]["digests"]
            found = SimpleNamespace(
                reference=ImageReference(name=self.document["image"]["name"], digest=digests["index"]),
                chain=SimpleNamespace(**digests),
                model=self.model,
                container=None,
            )
            log = launch.KeptLog(inner.process.log_tail)
            subject = replace(
                inner, kind="container", command=(), process=None, watch=lambda: inner.process.running, log=log.tail
            )
            yield subject, found
            log.keep()


@pytest.fixture
def shipped(desk: Desk, monkeypatch: pytest.MonkeyPatch, undrawn: None) -> Shipped:
    image = Shipped(desk)
    metadata = desk.root / "metadata" / "tiny-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: tiny\nVersion: 1.0\nLicense-Expression: MIT\n")
    monkeypatch.setattr(session, "launched", image.launched)
    monkeypatch.setattr(session, "metadata_of", lambda *_: metadata.parent)
    monkeypatch.setattr(session, "docker_engine", lambda: _nothing())
    monkeypatch.setattr(session, "engine_command", lambda **_: tuple(shlex.split(FAKE)))
    monkeypatch.setattr(OwnImage, "layout", lambda _: image.layout)
    return image


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@pytest.fixture
def no_engine(desk: Desk, monkeypatch: pytest.MonkeyPatch, undrawn: None) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{desk.root}/none.sock")


def _contained(desk: Desk) -> int:
    return desk.qualify("--container", "--model", str(desk.model))


def test_what_ran_in_a_container_is_in_the_bundle_and_verified_without_its_tools(desk: Desk, shipped: Shipped) -> None:
    assert _contained(desk) == 0
    subject, digests = desk.json("run.json")["subject"], shipped.document["image"]["digests"]
    assert subject["kind"] == "container"
    assert subject["image"] == {
        "name": "assay/engine", **{name: digests[name] for name in ("index", "platform", "config")}
    }  # fmt: skip
    outcomes = desk.outcomes()
    passed = [gate for gate in CONTAINER_GATES if gate not in ("provenance", "container.parity")]
    assert {gate: outcomes[gate] for gate in passed} == dict.fromkeys(passed, "passed")
    assert outcomes["container.parity"] in ("passed", "failed", "inconclusive")  # two fakes; the figures mean nothing
    assert [item["name"] for item in desk.json("licences.json")["distributions"]] == ["tiny"]
    assert (desk.out / "telemetry.jsonl").exists()
    roles = {entry["path"]: entry["role"] for entry in desk.json("manifest.json")["files"]}
    assert roles["sbom/image.cdx.json"] == "sbom"
    for name in ("container", "provenance", "parity"):
        assert roles[f"records/{name}.json"] == "record"
    options = ["--policy", str(desk.root / "policy.json"), "--pins", str(desk.root / "pins.json"), "--json"]
    command = [sys.executable, "-c", VERIFIER, "verify", str(desk.out), *options]
    done = subprocess.run(command, cwd=paths.schema_directory().parent, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["answer"]) == (0, "qualified"), done.stderr


def test_without_an_engine_the_rest_is_measured_and_the_record_says_why(
    desk: Desk, no_engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qualification.run.engine_command", lambda **_: tuple(shlex.split(FAKE)))
    assert _contained(desk) == 0
    assert desk.json("run.json")["subject"]["kind"] == "process"
    assert desk.json("records/container.json")["findings"][0]["code"] == "no_engine"
    results = {result["id"]: result for result in desk.json("gates.json")["results"]}
    for gate in CONTAINER_GATES:
        assert (results[gate]["outcome"], results[gate]["reason_code"]) == ("not_performed", "no_container_engine")
        assert "no Docker engine" in results[gate]["detail"]
        assert results[gate]["needed"]
        assert results[gate]["owner"]
    assert "container.identity" in desk.json("summary.json")["verdict"]["sentence"]
    assert desk.verify() == 0


def test_another_image_is_never_replaced_by_what_is_here(
    desk: Desk, no_engine: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.qualify("--image", FOREIGN) == 4
    assert "no_engine" in capsys.readouterr().err
    assert desk.json("records/container.json")["performed"] is False
    assert desk.json("records/interruption-01.json")["stage"] == "launch"


def test_a_fault_is_named_and_its_record_kept(desk: Desk, shipped: Shipped, capsys: pytest.CaptureFixture[str]) -> None:
    shipped.fault = ContainerFault(FaultCode.NEVER_READY, "not ready within 60 s; look at its log")
    assert _contained(desk) == 4
    assert "never_ready: not ready within 60 s" in capsys.readouterr().err
    assert desk.json("records/container.json")["findings"][0]["code"] == "never_ready"
    assert not (desk.out / "manifest.json").exists()


def test_a_container_that_dies_is_noticed_with_its_last_words(
    desk: Desk, shipped: Shipped, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped.command = f"{FAKE} --die-after 4"
    assert _contained(desk) == 4
    errors = capsys.readouterr().err
    assert "the container died" in errors
    assert "listening" in errors
    assert (desk.out / "logs" / "engine-01.log").exists()


def test_a_comparison_that_cannot_be_made_leaves_its_gate_open(
    desk: Desk, shipped: Shipped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "engine_command", lambda **_: (sys.executable, "-c", "raise SystemExit(3)"))
    assert _contained(desk) == 0
    assert desk.outcomes()["container.parity"] == "not_performed"
    assert desk.verify() == 0


def test_the_record_of_another_run_is_found(tmp_path: Path) -> None:
    changed = container_bundle(tmp_path)
    trust = Trust(policy=changed.policy.document, pins=changed.view.document(paths.PINS), keys=())
    found = {(finding.code, finding.file) for finding in binding.check(changed.view, trust)}
    assert ("binding.run", "records/container.json") in found
    changed.document("records/container.json", lambda document: document.update(run_id=changed.view.run["run_id"]))
    found = {(finding.code, finding.file) for finding in binding.check(changed.view, trust)}
    assert ("binding.run", "records/container.json") not in found

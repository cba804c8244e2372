"""The verifier as a whole: what it needs, what it answers, and that it never falls over."""

from __future__ import annotations

import dataclasses
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qualification import schema, strictjson
from qualification.digest import sha256_file
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.tamper import bench
from qualification.tamper.bench import Reseal
from qualification.tamper.good import Good
from qualification.tamper.interrupted import interrupt
from qualification.verify import authenticity, structure, timeline
from qualification.verify.findings import CODES, FAMILIES, Finding
from qualification.verify.report import Verification
from qualification.verify.trust import Trust, load_trust
from qualification.verify.verifier import verify

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def copy(good_bundle: Good, tmp_path: Path) -> bench.Bench:
    """A private copy of the good bundle."""
    return bench.copy(good_bundle, tmp_path / "bundle")


def _codes(verification: Verification) -> dict[str, bool]:
    return {finding.code: finding.refuses for finding in verification.findings}


def test_the_good_bundle_is_sound_and_qualified(good_bundle: Good) -> None:
    verification = verify(good_bundle.root, good_bundle.trust, GATES)
    assert verification.findings == ()
    assert (verification.answer, verification.exit_code) == ("qualified", 0)
    document = verification.to_json()
    schema.validate("verification", document, "verification")
    assert document["sealed"]["manifest_sha256"] == sha256_file(good_bundle.root / "manifest.json")
    assert list(verification.lines())[-1].startswith("Qualified in tier reference")


_OFFLINE = """
import importlib.abc, importlib.machinery, json, socket, sys
from pathlib import Path

ALLOWED = {
    "qualification", "jsonschema", "jsonschema_specifications", "referencing", "rpds", "attr", "attrs",
    "typing_extensions", "cryptography", "_cffi_backend", "cffi", "numpy",
}

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and top not in sys.stdlib_module_names:
            raise ImportError(f"{name} is blocked")
        return None

sys.meta_path.insert(0, Blocker())

def refuse(*_args, **_kwargs):
    raise OSError("no network here")

socket.socket.connect = refuse
socket.getaddrinfo = refuse
sys.path.insert(0, sys.argv[1])
from qualification.gates.table import GATES
from qualification.verify.trust import load_trust
from qualification.verify.verifier import verify

root, key = Path(sys.argv[2]), Path(sys.argv[3])
trust = load_trust(policy=root / "policy.json", pins=root / "pins.json", keys=(key,))
verification = verify(root, trust, GATES)
third = {m.partition(".")[0] for m in sys.modules} - set(sys.stdlib_module_names) - ALLOWED
assert not [m for m in third if not m.startswith("_")], third
sys.stdout.buffer.write(json.dumps(verification.to_json(), sort_keys=True).encode())
sys.exit(verification.exit_code)
"""


def test_needs_four_packages_no_network_and_no_writing(good_bundle: Good, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    root = Path(shutil.copytree(good_bundle.root, tmp_path / "bundle"))
    key = tmp_path / "key.pub"
    public = good_bundle.trust.keys[0].key
    key.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    places = [root, *root.rglob("*")]
    for place in places:
        place.chmod(place.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    before = {place: place.stat().st_mtime_ns for place in places}
    outputs = []
    for seed in ("1", "2"):
        command = [sys.executable, "-B", "-W", "error", "-c", _OFFLINE, str(REPOSITORY), str(root), str(key)]
        environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, timeout=120, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr.decode()
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert strictjson.loads(outputs[0], "x")["answer"] == "qualified"
    assert {place: place.stat().st_mtime_ns for place in [root, *root.rglob("*")]} == before
    for place in places:
        place.chmod(place.stat().st_mode | stat.S_IWUSR)


def test_a_run_that_was_killed_and_resumed_is_sound_and_says_so(copy: bench.Bench, good_bundle: Good) -> None:
    interrupt(copy)
    (copy.root / "statement.dsse.json").unlink()
    copy.seal(Reseal.EVERYTHING)
    verification = verify(copy.root, Trust(policy=good_bundle.trust.policy, pins=good_bundle.trust.pins), GATES)
    assert _codes(verification) == {"signature.none": False}
    assert verification.answer == "qualified"
    told = [item["text"] for item in copy.read("summary.json")["limitations"] if item["code"] == "interrupted"]
    assert len(told) == 1
    assert "ended before its time once and went on: killed at 2026-01-01 00:00:0" in told[0]
    assert "1 units of work were cut short and run again; 2 of their requests are kept" in told[0]


def test_a_failed_gate_is_a_sound_bundle_that_does_not_qualify(copy: bench.Bench, good_bundle: Good) -> None:
    copy.edit("policy.json", lambda d: d["tiers"]["reference"]["limits"]["bench"]["B1"].update(rtf_median_max=0.1))
    (copy.root / "statement.dsse.json").unlink()
    copy.seal(Reseal.EVERYTHING)
    trust = Trust(policy=copy.read("policy.json"), pins=good_bundle.trust.pins)
    verification = verify(copy.root, trust, GATES)
    assert _codes(verification) == {"signature.none": False}
    assert (verification.answer, verification.exit_code) == ("not_qualified", 7)
    assert "Required and not passed: bench.b1." in list(verification.lines())[-1]


def test_unsigned_is_a_note_unless_somebody_asks(copy: bench.Bench, good_bundle: Good) -> None:
    (copy.root / "statement.dsse.json").unlink()
    no_key = dataclasses.replace(good_bundle.trust, keys=())
    assert _codes(verify(copy.root, no_key, GATES)) == {"signature.none": False}
    assert _codes(verify(copy.root, good_bundle.trust, GATES)) == {"signature.missing": True}
    asking = {**good_bundle.trust.policy}
    asking["tiers"] = {
        **asking["tiers"],
        "reference": {**asking["tiers"]["reference"], "signature_required": True},
    }
    found = list(authenticity.check(EvidenceView(copy.root), Trust(policy=asking, pins=no_key.pins)))
    assert [finding.code for finding in found] == ["signature.missing"]


def test_signed_without_a_key_given_is_a_note(good_bundle: Good) -> None:
    no_key = dataclasses.replace(good_bundle.trust, keys=())
    verification = verify(good_bundle.root, no_key, GATES)
    assert _codes(verification) == {"signature.unchecked": False}
    assert verification.exit_code == 0


def test_the_report_is_drawn_again(copy: bench.Bench, good_bundle: Good) -> None:
    copy.replace("report.html", b"<html>drawn</html>")
    (copy.root / "statement.dsse.json").unlink()
    copy.seal(Reseal.MANIFEST)
    trust = dataclasses.replace(good_bundle.trust, keys=())
    assert _codes(verify(copy.root, trust, GATES)) == {"signature.none": False, "report.unchecked": False}
    drawn = verify(copy.root, trust, GATES, lambda _: "<html>drawn</html>")
    assert _codes(drawn) == {"signature.none": False}
    assert "report.differs" in _codes(verify(copy.root, trust, GATES, lambda _: "<html>other</html>"))


def test_a_late_sample_is_a_note() -> None:
    phase = {"name": "B1", "start_ns": 0, "end_ns": 3_600 * 10**9}
    moments = [*range(0, 10**9, 80_000_000), *range(10**9 + 200_000_001, 3_600 * 10**9, 190_000_000)]
    found = list(timeline.coverage(phase, moments))
    assert [(finding.code, finding.refuses) for finding in found] == [("telemetry.jitter", False)]
    assert list(timeline.coverage(phase, list(range(0, 3_600 * 10**9, 200_000_000)))) == []
    hole = [*range(0, 10**9, 80_000_000), *range(3 * 10**9, 3_600 * 10**9, 190_000_000)]
    assert [finding.refuses for finding in timeline.coverage(phase, hole)] == [True]


@pytest.mark.parametrize(
    "wreck",
    [
        lambda root: shutil.rmtree(root),
        lambda root: [shutil.rmtree(root), root.write_bytes(b"")],
        lambda root: [shutil.rmtree(root), root.mkdir()],
        lambda root: (root / "summary.json").unlink(),
        lambda root: [(root / "summary.json").unlink(), (root / "summary.json").mkdir()],
        lambda root: [(root / "run.json").unlink(), (root / "run.json").write_bytes(b"[]\n")],
        lambda root: [p.unlink() for p in root.rglob("*") if p.is_file()],
        lambda root: [shutil.rmtree(root / "samples")],
    ],
)
def test_a_wreck_is_refused_not_a_traceback(
    wreck: Callable[[Path], object], copy: bench.Bench, good_bundle: Good
) -> None:
    wreck(copy.root)
    verification = verify(copy.root, good_bundle.trust, GATES)
    assert verification.refused
    assert verification.answer == "refused"
    assert verification.exit_code == FAMILIES["structure"]
    schema.validate("verification", verification.to_json(), "verification")
    assert list(verification.lines())[-1].startswith("REFUSED")


def test_a_step_that_fails_refuses_and_keeps_what_it_had(good_bundle: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(_: EvidenceView) -> Iterator[Finding]:
        yield Finding(code="file.extra", file="a", detail="said before")
        raise RuntimeError("our own fault")

    monkeypatch.setattr(structure, "check", half)
    verification = verify(good_bundle.root, good_bundle.trust, GATES)
    assert set(_codes(verification)) == {"file.extra", "verifier.step-failed"}
    assert verification.exit_code == FAMILIES["structure"]


def test_the_exit_status_is_that_of_the_first_family() -> None:
    found = [Finding(code=code, file="a", detail="d") for code in ("audio.repeated", "binding.run", "gates.differ")]
    sealed = None
    assert Verification(findings=tuple(found), sealed=sealed).exit_code == FAMILIES["binding"]
    assert sorted(FAMILIES.values()) == list(FAMILIES.values())
    assert set(CODES.values()) == set(FAMILIES)
    with pytest.raises(KeyError):
        Finding(code="no.such", file="a", detail="d")


def test_trust_defaults_to_what_ships(good_bundle: Good) -> None:
    trust = load_trust()
    assert trust.keys == ()
    verification = verify(good_bundle.root, trust, GATES)
    assert {"policy.untrusted", "pins.untrusted"} <= set(_codes(verification))
    assert verification.exit_code == FAMILIES["binding"]

"""The limits on docs/what-a-bundle-does-not-prove.md, shown: bundles that verify although what one might conclude is false.

Whoever holds the key seals again here; with the key, and this harness, that is all it takes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification import bundle, paths, strictjson
from qualification.clip import parse_wav
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.tamper import bench
from qualification.tamper.bench import Bench, Reseal, find
from qualification.tamper.changes import B1, resign, telemetry
from qualification.tamper.corpus import CORPUS
from qualification.tamper.good import Good
from qualification.tamper.good_requests import pcm_of
from qualification.verify.report import Verification
from qualification.verify.verifier import verify

SPED_UP = 1.05


@pytest.fixture
def copy(good_bundle: Good, tmp_path: Path) -> Bench:
    return bench.copy(good_bundle, tmp_path / "bundle")


def _sealed_again(copy: Bench, **trust: Any) -> Verification:
    """The changed bundle computed again, signed with the trusted key, and verified."""
    (copy.root / paths.STATEMENT).unlink()
    copy.seal(Reseal.EVERYTHING)
    bundle.sign_bundle(copy.root, copy.good.key)
    return verify(copy.root, dataclasses.replace(copy.good.trust, **trust), GATES)


def _sound(verification: Verification) -> bool:
    return not verification.refused


def _outcomes(copy: Bench) -> dict[str, str]:
    return {result["id"]: result["outcome"] for result in copy.read(paths.GATES)["results"]}


def _limitations(copy: Bench) -> set[str]:
    return {limitation["code"] for limitation in copy.read(paths.SUMMARY)["limitations"]}


def test_a_signature_by_anybody_passes_where_no_key_is_given(copy: Bench) -> None:
    resign(copy)
    assert verify(copy.root, copy.good.trust, GATES).refused
    without = verify(copy.root, dataclasses.replace(copy.good.trust, keys=()), GATES)
    assert (without.answer, without.exit_code) == ("qualified", 0)
    assert [finding.code for finding in without.findings] == ["signature.unchecked"]


def test_the_holder_of_the_key_can_remove_a_request_everywhere(copy: Bench) -> None:
    tamper = next(tamper for tamper in CORPUS if tamper.name == "requests removed from record, plan and phase")
    before = len(strictjson.loads_lines((copy.root / B1).read_bytes(), B1))
    tamper.change(copy)
    assert len(strictjson.loads_lines((copy.root / B1).read_bytes(), B1)) == before - 2
    copy.seal(tamper.reseal)
    only = {finding.code for finding in verify(copy.root, copy.good.trust, GATES).findings}
    assert only == {"statement.differs"}, "nothing but the signature tells"
    assert _sealed_again(copy).findings == (), "and with the key not even that"


def test_sixteen_bytes_of_weights_and_triangle_waves_qualify(good_bundle: Good) -> None:
    evidence = EvidenceView(good_bundle.root)
    (weights,) = [item for item in evidence.document(paths.IDENTITY)["files"] if item["role"] == "weights"]
    assert weights["bytes"] < 200, "no engine loads these, and none ran"
    record = next(record for record in evidence.all_records if record.audio is not None)
    assert record.audio is not None
    heard = parse_wav((good_bundle.root / record.audio).read_bytes(), record.audio)
    assert heard.samples * 2 == len(pcm_of(record.workload_id, record.seed)), "a triangle wave, and no word"
    outcomes = {result["id"]: result["outcome"] for result in evidence.document(paths.GATES)["results"]}
    assert outcomes["audio.intelligibility"] == outcomes["review.listening"] == "not_performed"
    assert verify(good_bundle.root, good_bundle.trust, GATES).answer == "qualified"


def test_coverage_passes_where_the_rate_stays_open(copy: Bench) -> None:
    copy.edit(paths.POLICY, lambda d: d["tiers"]["reference"]["limits"]["eos"].update(failure_rate_max=0.005))
    verification = _sealed_again(copy, policy=copy.read(paths.POLICY))
    outcomes = _outcomes(copy)
    assert (outcomes["eos.coverage"], outcomes["eos.rate"]) == ("passed", "inconclusive")
    assert _sound(verification)


def test_a_tier_says_which_weights_it_speaks_of(good_bundle: Good) -> None:
    verification = verify(good_bundle.root, good_bundle.trust, GATES)
    assert verification.sealed is not None
    assert (verification.answer, verification.sealed.tier) == ("qualified", "reference")
    limitations = EvidenceView(good_bundle.root).document(paths.SUMMARY)["limitations"]
    assert "nothing of the published model" in find(limitations, code="tier_reference")["text"]


def test_the_machine_is_what_the_bundle_says_it_is(copy: Bench) -> None:
    copy.edit(paths.ENVIRONMENT, lambda d: d["machine"].update(cpu_model="A machine that does not exist"))
    assert _sealed_again(copy).answer == "qualified"
    assert "one_machine" in _limitations(copy)


def test_a_profile_with_few_requests_is_sound_and_only_informative(copy: Bench) -> None:
    copy.edit(paths.POLICY, lambda d: d["tiers"]["reference"]["counts"].update(successes_per_profile=1_000))
    verification = _sealed_again(copy, policy=copy.read(paths.POLICY))
    assert _sound(verification)
    assert "informative_profile" in _limitations(copy)
    assert {profile["standing"] for profile in copy.read(paths.SUMMARY)["profiles"]} == {"informative"}


def test_a_licence_is_what_the_package_says_of_itself(copy: Bench) -> None:
    claimed = {"expression": "MIT", "evidence": "MIT"}
    copy.edit(paths.LICENCES, lambda d: d["distributions"][0].update(claimed))
    assert _sealed_again(copy).answer == "qualified"


def _stretch(value: Any, factor: float) -> Any:
    """Every moment and duration in a document, further from zero."""
    if isinstance(value, dict):
        return {
            key: int(child * factor) if key.endswith("_ns") and isinstance(child, int) else _stretch(child, factor)
            for key, child in value.items()
        }
    return [_stretch(child, factor) for child in value] if isinstance(value, list) else value


def test_a_clock_that_runs_fast_is_not_noticed(copy: Bench) -> None:
    def change(lines: list[Any]) -> None:
        lines[:] = [_stretch(line, SPED_UP) for line in lines]

    before = find(copy.read(paths.SUMMARY)["numbers"], id="b1.rtf.median")["value"]
    for path in (*EvidenceView(copy.root).sample_files, paths.TELEMETRY):
        copy.edit_lines(path, change)
    for path in (paths.PHASES, *(p for p in EvidenceView(copy.root).walked.files if p.startswith("records/"))):
        copy.replace(path, strictjson.dumps(_stretch(copy.read(path), SPED_UP)))
    verification = _sealed_again(copy)
    assert verification.findings == ()
    after = find(copy.read(paths.SUMMARY)["numbers"], id="b1.rtf.median")["value"]
    assert after == pytest.approx(before * SPED_UP, rel=1e-6), "everything is five percent slower, and nothing is wrong"


def _without_peak(lines: list[dict[str, Any]]) -> None:
    peak = max(line["rss_bytes"] or 0 for line in lines)
    for line in lines:
        if line["rss_bytes"] == peak:
            line["rss_bytes"] -= 100 << 20


def test_a_peak_that_no_sample_saw_leaves_no_trace(copy: Bench) -> None:
    before = find(copy.read(paths.SUMMARY)["numbers"], id="run.memory.rss.peak")["value"]
    telemetry(_without_peak)(copy)
    assert _sealed_again(copy).answer == "qualified"
    assert find(copy.read(paths.SUMMARY)["numbers"], id="run.memory.rss.peak")["value"] < before


def _without_counters(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        line["package_energy_microjoules"] = None
        for gpu in line["gpus"]:
            gpu["energy_millijoules"] = None


def test_without_a_counter_there_is_no_energy_and_the_bundle_is_sound(copy: Bench) -> None:
    telemetry(_without_counters)(copy)
    assert _sound(_sealed_again(copy))
    assert "no_energy_counter" in _limitations(copy)
    energies = [item for item in copy.read(paths.SUMMARY)["numbers"] if item["id"].endswith(".energy")]
    assert energies
    assert {item["value"] for item in energies} == {None}


@pytest.mark.parametrize(
    ("change", "limited"),
    [({"commit": "f" * 40}, False), ({"dirty": True}, True)],
    ids=["another commit", "uncommitted changes"],
)
def test_a_commit_is_a_name(change: dict[str, Any], limited: bool, copy: Bench) -> None:
    rename: Callable[[Any], object] = lambda document: document["source"].update(change)  # noqa: E731
    for path in (paths.RUN, paths.ENVIRONMENT):
        copy.edit(path, rename)
    assert _sound(_sealed_again(copy))
    assert ("source_not_pinned" in _limitations(copy)) == limited


def test_a_bundle_does_not_know_of_another(good_bundle: Good, copy: Bench) -> None:
    def slower(lines: list[Any]) -> None:
        lines[:] = [{**line, "finish_reason": "length"} for line in lines]

    copy.edit_lines("samples/eos.jsonl", slower)
    thrown_away = _sealed_again(copy)
    assert thrown_away.answer == "not_qualified", "a run that is not shown"
    shown = verify(good_bundle.root, good_bundle.trust, GATES)
    assert (shown.answer, shown.findings) == ("qualified", ())

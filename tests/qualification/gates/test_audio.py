"""Stored audio: the received bytes, and something like speech in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qualification.digest import sha256_bytes
from qualification.results import Outcome
from tests.qualification.gates.evidence import Changed

EOS = "samples/eos.jsonl"


def stored(changed: Changed) -> dict[str, Any]:
    """The first record with audio."""
    lines = [json.loads(line) for line in (changed.root / EOS).read_bytes().splitlines()]
    return next(line for line in lines if line["audio"])


def replaced(tmp_path: Path, samples: npt.NDArray[np.int16]) -> Changed:
    """The good bundle in which one utterance, and its record, are `samples`."""
    changed = Changed(tmp_path)
    record, pcm = stored(changed), samples.astype("<i2").tobytes()
    changed.audio(record["audio"], pcm)
    return changed.records(
        EOS,
        lambda r: r.update(samples=len(samples), pcm_sha256=sha256_bytes(pcm)),
        lambda r: r["request_id"] == record["request_id"],
    )


def tone(count: int, peak: float) -> npt.NDArray[np.int16]:
    return np.asarray(peak * np.sin(np.arange(count) / 12.0), dtype=np.int16)


def test_the_good_bundle_passes(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    for gate in ("audio.integrity", "audio.speech-present"):
        answer = changed.answer(gate)
        assert answer.outcome is Outcome.PASSED
        assert answer.n > 10


def test_other_samples_than_were_received_fail(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    record = stored(changed)
    answer = changed.audio(record["audio"], tone(record["samples"], 9_000).tobytes()).answer("audio.integrity")
    assert answer.outcome is Outcome.FAILED
    assert "not those that were received" in answer.detail


def test_a_file_that_no_record_names_fails(tmp_path: Path) -> None:
    answer = Changed(tmp_path).audio("audio/stray.wav", tone(9_600, 9_000).tobytes()).answer("audio.integrity")
    assert answer.outcome is Outcome.FAILED
    assert "no record names it" in answer.detail


def test_a_missing_file_fails(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    (changed.root / stored(changed)["audio"]).unlink()
    assert changed.answer("audio.integrity").outcome is Outcome.FAILED


def test_clipping_fails(tmp_path: Path) -> None:
    clipped = np.where(tone(9_600, 30_000) > 0, 32_767, -32_768).astype(np.int16)
    answer = replaced(tmp_path, clipped).answer("audio.integrity")
    assert answer.outcome is Outcome.FAILED
    assert "clipped" in answer.detail


def test_silence_fails_both(tmp_path: Path) -> None:
    changed = replaced(tmp_path, np.zeros(9_600, dtype=np.int16))
    assert "silence" in changed.answer("audio.integrity").detail
    speech = changed.answer("audio.speech-present")
    assert speech.outcome is Outcome.FAILED
    assert speech.observed == 0


def test_too_short_fails(tmp_path: Path) -> None:
    answer = replaced(tmp_path, tone(1_920, 9_000)).answer("audio.integrity")
    assert answer.outcome is Outcome.FAILED
    assert "0.08 s long" in answer.detail


STEADY = {
    "constant": np.full(24_000, 3_000, dtype=np.int16),
    "tone": tone(24_000, 9_000),
    "noise": (np.random.default_rng(1).standard_normal(24_000) * 3_000).astype(np.int16),
}


@pytest.mark.parametrize("name", STEADY)
def test_energy_alone_is_no_speech(tmp_path: Path, name: str) -> None:
    changed = replaced(tmp_path, STEADY[name])
    assert changed.answer("audio.integrity").outcome is Outcome.PASSED
    assert changed.answer("audio.speech-present").outcome is Outcome.FAILED


def test_a_blip_in_silence_is_no_speech(tmp_path: Path) -> None:
    mostly_silent = np.zeros(24_000, dtype=np.int16)
    mostly_silent[:2_400] = tone(2_400, 9_000)
    changed = replaced(tmp_path, mostly_silent)
    assert changed.answer("audio.integrity").outcome is Outcome.PASSED
    assert changed.answer("audio.speech-present").outcome is Outcome.FAILED


def test_without_stored_audio_nothing_is_claimed(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    for path in (changed.root / "samples").glob("*.jsonl"):
        changed.records(f"samples/{path.name}", lambda r: r.update(audio=None))
    for gate in ("audio.integrity", "audio.speech-present"):
        answer = changed.answer(gate)
        assert (answer.outcome, answer.reason_code) == (Outcome.NOT_PERFORMED, "no_stored_audio")

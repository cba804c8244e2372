"""Requests alone and beside others: equality by hash, distance from stored audio, and the picture of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from qualification import batch_invariance, cli, schema, strictjson
from qualification.batch_invariance import distance
from qualification.clip import encode_wav, facts
from qualification.evidence_view import EvidenceView
from qualification.report.beside import beside, shares
from qualification.tamper import bench
from qualification.tamper.good import Good


def _samples(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def test_distance_is_sample_by_sample() -> None:
    found = distance(_samples(1_000, -1_000, 1_000, -1_000), _samples(1_000, -1_000, 1_000, -990, 5))
    assert (found.samples, found.differing, found.max_abs) == (4, 1, 10)
    assert found.snr_db == pytest.approx(10 * np.log10(4_000_000 / 100), abs=0.005)
    one_late = distance(_samples(0, 1_000, -1_000), _samples(1_000, -1_000, 0))
    assert one_late.snr_db is not None
    assert one_late.snr_db < 0, "a shift is a difference: nothing is aligned"


def test_equal_and_silent_utterances_have_no_level() -> None:
    assert distance(_samples(5, 6), _samples(5, 6)).snr_db is None
    assert distance(_samples(0, 0), _samples(5, 6)).snr_db is None
    assert distance(_samples(32_767), _samples(-32_768)).max_abs == 65_535


def test_the_good_bundle_sounds_the_same_everywhere(good_bundle: Good) -> None:
    document = batch_invariance.document(EvidenceView(good_bundle.root))
    schema.validate("batch-invariance", document, "x")
    profiles = {item["profile"]: item for item in document["profiles"]}
    assert {"REPEAT", "B3", "B6"} <= profiles.keys()
    assert all(item["equal"] == item["pairs"] == item["with_audio"] for item in document["profiles"])
    assert profiles["B6"]["pairs"] == 6
    assert profiles["B6"]["snr_db_least"] is None
    assert not any(pair["profile"] == "EOS" for pair in document["pairs"]), "it was never sent alone"


def _other_sound(root: Path, change: Any, stored: bool = True) -> None:
    """Give the first request of B6 other samples, in its record and, where `stored`, in its WAV."""
    lines = list(strictjson.loads_lines((root / "samples/b6.jsonl").read_bytes(), "b6"))
    line = next(item for item in lines if item["phase"] == "measure")
    place = root / line["audio"]
    pcm = change(np.frombuffer(place.read_bytes()[44:], dtype="<i2").copy()).astype("<i2").tobytes()
    place.unlink()
    place.write_bytes(encode_wav(pcm))
    line.update(pcm_sha256=facts(pcm).pcm_sha256, samples=len(pcm) // 2, audio=line["audio"] if stored else None)
    (root / "samples/b6.jsonl").unlink()
    (root / "samples/b6.jsonl").write_bytes(b"".join(strictjson.dumps_line(item) for item in lines))


def _louder(samples: Any) -> Any:
    samples[100] += 7
    return samples


def _shorter(samples: Any) -> Any:
    return samples[:-1_920]


def test_other_samples_are_found_and_measured(good_bundle: Good, tmp_path: Path) -> None:
    root = bench.copy(good_bundle, tmp_path / "b").root
    _other_sound(root, _louder)
    document = batch_invariance.document(EvidenceView(root))
    found = next(item for item in document["profiles"] if item["profile"] == "B6")
    assert (found["pairs"], found["equal"], found["same_length"], found["max_abs_most"]) == (6, 5, 6, 7)
    assert found["snr_db_least"] > 60
    other = next(pair for pair in document["pairs"] if not pair["equal"])
    assert (other["distance"]["differing"], other["concurrency"]) == (1, 6)


def test_without_stored_audio_hash_and_length_are_left(good_bundle: Good, tmp_path: Path) -> None:
    root = bench.copy(good_bundle, tmp_path / "b").root
    _other_sound(root, _shorter, stored=False)
    document = batch_invariance.document(EvidenceView(root))
    found = next(item for item in document["profiles"] if item["profile"] == "B6")
    assert (found["equal"], found["same_length"], found["length_difference_most"]) == (5, 5, 1_920)
    assert next(pair for pair in document["pairs"] if not pair["equal"])["distance"] is None


def test_without_a_seed_nothing_is_compared(good_bundle: Good, tmp_path: Path) -> None:
    copy = bench.copy(good_bundle, tmp_path / "b")
    copy.edit("run.json", lambda run: run["subject"].update(leaves_open=["seed"]))
    document = batch_invariance.document(EvidenceView(copy.root))
    schema.validate("batch-invariance", document, "x")
    assert (document["reason"], document["pairs"]) == ("seed_not_controlled", [])
    assert beside(EvidenceView(copy.root)).told == "Not compared: the subject takes no seed."


def test_the_picture_shows_all_three_kinds_in_words_and_colour(good_bundle: Good, tmp_path: Path) -> None:
    drawn = ElementTree.fromstring(shares([("B3", 3, [0, 0, 1, 2]), ("B1", 1, [0])]))
    texts = [item.text for item in drawn.iter() if item.tag == "text"]
    told = "2 same samples \u00b7 1 same length, other samples \u00b7 1 another length"
    assert {told, "1 same samples", "alone again", "3 at once"} <= set(texts)
    widths = [float(item.attrib["width"]) for item in drawn.iter() if item.tag == "rect"]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.02)
    root = bench.copy(good_bundle, tmp_path / "b").root
    _other_sound(root, _shorter)
    shown = beside(EvidenceView(root))
    assert "B6: 5 of 6 gave the same samples" in shown.told
    assert shown.lengths is not None
    assert shown.lengths.count("<circle") == 1
    assert shown.levels is None, "what both have is equal"


def test_the_command_writes_the_same_document_every_time(
    good_bundle: Good, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert cli.main(["batch-invariance", str(good_bundle.root)]) == 0
    printed = capsysbinary.readouterr().out
    assert cli.main(["batch-invariance", str(good_bundle.root), "--out", str(tmp_path / "i.json")]) == 0
    assert (tmp_path / "i.json").read_bytes() == printed == strictjson.dumps(json.loads(printed))

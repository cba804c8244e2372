"""The shipped workload keeps its promises, and each kind of broken workload is refused by name."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from qualification import strictjson
from qualification.errors import InputError, SchemaError
from qualification.paths import data_file
from qualification.workload import LANGUAGE_FIELDS, Kind, load_workload, parse_workload

TWENTY_FOUR = {
    "zh", "en", "ja", "ko", "de", "fr", "ru", "pt", "es", "it", "tr", "nl",
    "pl", "sv", "cs", "el", "ar", "hi", "id", "vi", "uk", "fi", "hu", "ro",
}  # fmt: skip


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy(strictjson.load(data_file("workload.json")))


def test_covers_24_languages_once_each() -> None:
    workload = load_workload()
    assert len(workload.languages) == 24
    assert set(workload.languages) == TWENTY_FOUR


def test_named_languages_go_by_name_and_through_auto() -> None:
    workload = load_workload()
    fields = {entry.language: entry.language_field for entry in workload.of_kind(Kind.COVERAGE)}
    assert {language: field for language, field in fields.items() if field != "auto"} == LANGUAGE_FIELDS
    assert {entry.language for entry in workload.of_kind(Kind.AUTO)} == set(LANGUAGE_FIELDS)


def test_only_the_ten_are_claimed() -> None:
    claimed = {entry.language for entry in load_workload().entries if entry.claimed_by_checkpoint}
    assert claimed == set(LANGUAGE_FIELDS)


def test_voices_span_gender_pitch_and_pace() -> None:
    voices = " ".join(entry.voice_description for entry in load_workload().of_kind(Kind.COVERAGE))
    for word in (
        "male voice",
        "female voice",
        "low pitch",
        "medium pitch",
        "high pitch",
        "slow",
        "fast",
        "medium pace",
    ):
        assert word in voices


def test_each_script_is_its_own() -> None:
    marks = {"zh": "的", "ja": "の", "ko": "니다", "ru": "ы", "uk": "і", "el": "ι", "ar": "ا", "hi": "के", "vi": "ậ"}
    coverage = {entry.language: entry.text for entry in load_workload().of_kind(Kind.COVERAGE)}
    for language, mark in marks.items():
        assert mark in coverage[language], language


def test_enough_seeds_for_the_rate_gate() -> None:
    items = load_workload().items(Kind.COVERAGE, seeds=25)
    assert len(items) == 600  # 598 natural ends of 598 bound the failure rate at 0.5 %
    assert len({(item.entry.text, item.entry.voice_description, item.seed) for item in items}) == 600


def test_items_touch_every_entry_before_a_second_seed() -> None:
    items = load_workload().items(Kind.COVERAGE, seeds=2)
    assert len({item.entry.id for item in items[:24]}) == 24
    assert [item.entry.id for item in items[:24]] == [item.entry.id for item in items[24:]]


def test_asking_for_more_seeds_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="has 5 seeds, 6 are wanted"):
        load_workload().items(Kind.BENCH, seeds=6)


def test_unknown_entry_is_refused() -> None:
    with pytest.raises(InputError, match="no entry 'coverage-xx'"):
        load_workload().entry("coverage-xx")


def _first(document: dict[str, Any], entry_id: str) -> dict[str, Any]:
    return next(entry for entry in document["entries"] if entry["id"] == entry_id)


@pytest.mark.parametrize(
    ("entry_id", "change", "message"),
    [
        ("coverage-zh", {"id": "coverage-en"}, "id 'coverage-en' appears 2 times"),
        ("coverage-tr", {"language": "nl"}, "coverage sentence for language 'nl' appears 2 times"),
        ("coverage-zh", {"language_field": "english"}, "language zh cannot be asked for as 'english'"),
        ("coverage-tr", {"claimed_by_checkpoint": True}, "claimed_by_checkpoint must be true for the ten"),
        ("coverage-en", {"text": " " + "x" * 80}, "without space around it"),
        ("coverage-en", {"text": "e\u0301" + "x" * 80}, "normal form C"),
    ],
)
def test_contradictions_are_refused(
    document: dict[str, Any], entry_id: str, change: dict[str, Any], message: str
) -> None:
    _first(document, entry_id).update(change)
    with pytest.raises(InputError, match=message):
        parse_workload(document)


def test_two_requests_that_could_not_be_told_apart_are_refused(document: dict[str, Any]) -> None:
    bench, coverage = _first(document, "bench-en-short"), _first(document, "coverage-en")
    bench.update(text=coverage["text"], voice_description=coverage["voice_description"], seeds=coverage["seeds"][:1])
    with pytest.raises(InputError, match="combination of text, voice description and seed"):
        parse_workload(document)


@pytest.mark.parametrize(
    ("entry_id", "change"),
    [
        ("coverage-zh", {"text": "很" * 45}),
        ("coverage-ja", {"text": "の" * 61}),
        ("coverage-ko", {"text": "나" * 67}),
        ("coverage-vi", {"text": "x" * 131}),
        ("coverage-en", {"text": "x" * 59}),
        ("coverage-en", {"text": "x" * 141}),
        ("coverage-en", {"seeds": []}),
        ("coverage-en", {"seeds": [2**53]}),
        ("coverage-en", {"seeds": [1, 1]}),
        ("coverage-en", {"voice": "unknown field"}),
        ("auto-en", {"language_field": "english"}),
        ("switch-de-en", {"language": "de"}),
        ("coverage-en", {"language": "mul"}),
        ("coverage-en", {"claimed_by_checkpoint": False}),
    ],
)
def test_schema_refuses(document: dict[str, Any], entry_id: str, change: dict[str, Any]) -> None:
    _first(document, entry_id).update(change)
    with pytest.raises(SchemaError, match=r"workload\.json: \$\.entries"):
        parse_workload(document)

"""The workload: which sentences are spoken, in which voices, with which seeds.

It is data of the run (`data/workload.json`), not code, so that a bundle can carry what was asked and a verifier can
count languages from it. The published model names ten languages; the others are tried through `auto` and marked as not
claimed.
Not covered: how many seeds a gate uses (the policy says so) and how requests are sent.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from qualification import schema, strictjson
from qualification.errors import InputError
from qualification.paths import WORKLOAD, data_file

AUTO = "auto"
LANGUAGE_FIELDS = {
    "zh": "chinese", "en": "english", "ja": "japanese", "ko": "korean", "de": "german",
    "fr": "french", "ru": "russian", "pt": "portuguese", "es": "spanish", "it": "italian",
}  # fmt: skip


class Kind(StrEnum):
    """What an entry is for."""

    COVERAGE = "coverage"  # the one held-out sentence of a language
    AUTO = "auto"  # a named language through `auto`
    CODE_SWITCH = "code_switch"
    BENCH = "bench"


@dataclass(frozen=True, kw_only=True)
class WorkloadEntry:
    """One sentence. `language` is a BCP 47 tag, `language_field` the value on the wire."""

    id: str
    kind: Kind
    language: str
    language_field: str
    claimed_by_checkpoint: bool
    text: str
    voice_description: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class WorkItem:
    """One request to make: an entry and one of its seeds."""

    entry: WorkloadEntry
    seed: int


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Every entry in order of use, and the document that they came from (for the bundle's copy)."""

    version: str
    entries: tuple[WorkloadEntry, ...]
    document: Mapping[str, Any]

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages with a coverage sentence, in order of use."""
        return tuple(entry.language for entry in self.of_kind(Kind.COVERAGE))

    def of_kind(self, *kinds: Kind) -> tuple[WorkloadEntry, ...]:
        """The entries of these kinds, in order of use."""
        return tuple(entry for entry in self.entries if entry.kind in kinds)

    def entry(self, entry_id: str) -> WorkloadEntry:
        """The entry called `entry_id`. Raises `InputError` where there is none."""
        for entry in self.entries:
            if entry.id == entry_id:
                return entry
        raise InputError(f"the workload has no entry {entry_id!r}; use one of its ids")

    def items(self, *kinds: Kind, seeds: int) -> tuple[WorkItem, ...]:
        """Requests of these kinds with the first `seeds` seeds of each entry: all entries with their first seed, then
        all with their second, so that a run cut short has still touched every language.

        Raises:
            InputError: an entry has fewer seeds.
        """
        chosen = self.of_kind(*kinds)
        for entry in chosen:
            if len(entry.seeds) < seeds:
                raise InputError(
                    f"workload entry {entry.id} has {len(entry.seeds)} seeds, {seeds} are wanted; add seeds"
                )
        return tuple(WorkItem(entry=entry, seed=entry.seeds[turn]) for turn in range(seeds) for entry in chosen)


def load_workload(path: Path | None = None) -> Workload:
    """The workload in `path`, or the one that ships with the package.

    Raises:
        InputError: not strict JSON, not of the schema, or contradicting itself.
        OSError: the file cannot be read.
    """
    path = path or data_file(WORKLOAD)
    return parse_workload(strictjson.load(path), path.name)


def parse_workload(document: Any, name: str = WORKLOAD) -> Workload:
    """Read a parsed document; `name` opens every message. Raises `InputError` as `load_workload` does."""
    schema.validate(name="workload", document=document, source=name)
    entries = tuple(_entry(item) for item in document["entries"])
    for problem in _contradictions(entries):
        raise InputError(f"{name}: {problem}")
    return Workload(version=document["version"], entries=entries, document=document)


def _entry(item: Mapping[str, Any]) -> WorkloadEntry:
    return WorkloadEntry(**{**item, "kind": Kind(item["kind"]), "seeds": tuple(item["seeds"])})


def _contradictions(entries: tuple[WorkloadEntry, ...]) -> Iterable[str]:
    """What the schema cannot say: uniqueness across entries, language against wire value, Unicode form."""
    coverage = [entry.language for entry in entries if entry.kind is Kind.COVERAGE]
    yield from _repeated("id", [entry.id for entry in entries])
    yield from _repeated("coverage sentence for language", coverage)
    spoken = [(entry.text, entry.voice_description, seed) for entry in entries for seed in entry.seeds]
    yield from _repeated("combination of text, voice description and seed", spoken)
    for entry in entries:
        if entry.language_field not in (AUTO, LANGUAGE_FIELDS.get(entry.language)):
            yield f"entry {entry.id}: language {entry.language} cannot be asked for as {entry.language_field!r}"
        if entry.claimed_by_checkpoint != (entry.language in LANGUAGE_FIELDS):
            yield f"entry {entry.id}: claimed_by_checkpoint must be true for the ten named languages and them alone"
        if not unicodedata.is_normalized("NFC", entry.text) or entry.text != entry.text.strip():
            yield f"entry {entry.id}: write the text in Unicode normal form C, without space around it"


def _repeated(what: str, values: Iterable[object]) -> Iterable[str]:
    for value, times in Counter(values).items():
        if times > 1:
            yield f"{what} {value!r} appears {times} times; keep one"

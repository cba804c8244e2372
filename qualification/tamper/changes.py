"""The words in which tampers are written: small changes to one file of a bundle."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths, signing, strictjson
from qualification.tamper.bench import Bench, Reseal, find, measured

B1: Final = "samples/b1.jsonl"
B6: Final = "samples/b6.jsonl"
MS: Final = 1_000_000
Change = Callable[[Bench], object]


@dataclass(frozen=True, kw_only=True)
class Tamper:
    """One way to tamper, the finding that must come of it, and how far the attacker seals again."""

    name: str
    code: str
    change: Change
    reseal: Reseal


def case(name: str, code: str, change: Change, reseal: Reseal = Reseal.EVERYTHING) -> Tamper:
    """A row of the corpus."""
    return Tamper(name=name, code=code, change=change, reseal=reseal)


def record(path: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Bench], None]:
    """Change the first measured record of a file."""
    return lambda bench: bench.edit_lines(path, lambda lines: change(next(measured(lines))))


def set_fields(path: str, **values: Any) -> Callable[[Bench], None]:
    """Set fields of the first measured record of a file."""
    return record(path, lambda record: record.update(values))


def packet(number: int, **values: Any) -> Callable[[Bench], None]:
    """Set fields of one packet of the first measured record of B1."""
    return record(B1, lambda record: record["packets"][number].update(values))


def telemetry(change: Callable[[list[Any]], object]) -> Callable[[Bench], None]:
    return lambda bench: bench.edit_lines(paths.TELEMETRY, change)


def document(path: str, change: Callable[[Any], object]) -> Callable[[Bench], None]:
    return lambda bench: bench.edit(path, change)


def number(name: str, **values: Any) -> Callable[[Bench], None]:
    return lambda bench: bench.number(name, lambda number: number.update(values))


def scaled(name: str, factor: float) -> Callable[[Bench], None]:
    return lambda bench: bench.number(name, lambda number: number.update(value=number["value"] * factor))


def gate(gate: str, **values: Any) -> Callable[[Bench], None]:
    return document(paths.GATES, lambda document: find(document["results"], id=gate).update(values))


def phase(change: Callable[[dict[str, Any]], object], **wanted: object) -> Callable[[Bench], None]:
    return document(paths.PHASES, lambda document: change(find(document["phases"], **wanted)))


def rewrite(path: str, change: Callable[[bytes], bytes]) -> Callable[[Bench], None]:
    return lambda bench: bench.replace(path, change((bench.root / path).read_bytes()))


def manifest_entry(**values: Any) -> Callable[[Bench], None]:
    return document(paths.MANIFEST, lambda manifest: manifest["files"][0].update(values))


def audio_of(bench: Bench, profile: str) -> list[str]:
    lines = strictjson.loads_lines((bench.good.root / f"samples/{profile.lower()}.jsonl").read_bytes(), profile)
    return [line["audio"] for line in lines if line["audio"]]


def first_audio(bench: Bench) -> str:
    return audio_of(bench, "B1")[0]


def as_failure(record: dict[str, Any], **values: Any) -> None:
    record.update(
        outcome="refused", error_code="capacity_exhausted", error_detail="all slots are busy", http_status=429,
        finish_reason=None, server_metrics=None, audio=None, packets=[], samples=0, pcm_sha256=None, echoed_seed=None,
    )  # fmt: skip
    record.update(values)


def resign(bench: Bench) -> None:
    """Signed again over the changed bundle, with the attacker's own key."""
    pair = signing.generate()
    key = signing.private_key(pair.private_pem, "the attacker's key")
    envelope = bench.read(paths.STATEMENT)
    payload = base64.b64decode(envelope["payload"])
    bench.replace(paths.STATEMENT, strictjson.dumps(signing.sign(payload, key)))

"""Tampers with automatic audio reviews: layers that are added after sealing, whose figures follow from the samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qualification import paths, signing, strictjson
from qualification.audio_review import layer, policy, programs
from qualification.audio_review.checks import judge
from qualification.audio_review.record import Request, found_in, make
from qualification.evidence_view import EvidenceView
from qualification.tamper.bench import Bench, Reseal
from qualification.tamper.changes import Change, Tamper, case

Edit = Callable[[dict[str, Any]], object]


def make_record(bench: Bench) -> dict[str, Any]:
    """A sound review that asked no other program, the same on every day and machine."""
    rules = policy.load()
    request = Request(policy=rules, say=lambda _: None, without=frozenset(programs.ASKED))
    fixed: dict[str, Any] = {"made_utc": "2026-01-02T10:00:00Z", "programs": [], "resampler": None}
    return make(EvidenceView(bench.root), request) | fixed | {"harness": {"name": "tts-assay", "version": "1"}}


def _add(bench: Bench, record: dict[str, Any]) -> str:
    """Put the layer of a record into the bundle, signed by the trusted key; its directory."""
    name = layer.name_of(strictjson.dumps(record))
    bench.replace(f"{name}/{layer.RECORD}", strictjson.dumps(record))
    envelope = signing.sign(strictjson.dumps(layer.statement(record)), bench.good.key)
    bench.replace(f"{name}/{paths.STATEMENT}", strictjson.dumps(envelope))
    return name


def _signed(change: Edit) -> Change:
    """A record that the trusted key signed after `change`, with the checks that follow from what it now says."""

    def tamper(bench: Bench) -> None:
        record = make_record(bench)
        change(record)
        record["checks"] = [result.to_json() for result in judge(policy.load(), found_in(record))]
        _add(bench, record)

    return tamper


def _after(change: Callable[[Bench, str], object]) -> Change:
    """A sound layer that is changed afterwards."""
    return lambda bench: change(bench, _add(bench, make_record(bench)))


def _verdict_turned(bench: Bench) -> None:
    record = make_record(bench)
    record["checks"][0]["detail"] = "Better than ever."
    _add(bench, record)


def _nobody(bench: Bench, name: str) -> None:
    key = signing.private_key(signing.generate().private_pem, "the attacker's key")
    record = bench.read(f"{name}/{layer.RECORD}")
    bench.replace(
        f"{name}/{paths.STATEMENT}", strictjson.dumps(signing.sign(strictjson.dumps(layer.statement(record)), key))
    )


def _quieter(record: dict[str, Any]) -> None:
    record["clips"][0]["facts"]["peak"] /= 2


def _cleaner(record: dict[str, Any]) -> None:
    record["seams"]["highest"] = 0.5


def _without_a_clip(record: dict[str, Any]) -> None:
    record["clips"].pop()


AUDIO_LAYERS: Final[tuple[Tamper, ...]] = tuple(
    case(name, code, change, Reseal.NOTHING)
    for name, code, change in (
        ("an audio review of another form of name", "layer.unknown", lambda b: b.replace("layers/audio-1/record.json", b"{}\n")),
        ("an audio review with a file more", "layer.unknown", _after(lambda b, name: b.replace(f"{name}/a.wav", b"RIFF"))),
        (
            "an audio review without its record",
            "layer.incomplete",
            _after(lambda b, name: (b.root / name / layer.RECORD).unlink()),
        ),
        ("an audio review edited", "layer.name", _after(lambda b, name: b.edit(f"{name}/{layer.RECORD}", _quieter))),
        ("a peak halved by the reviewer", "layer.figure", _signed(_quieter)),
        ("borders made cleaner by the reviewer", "layer.figure", _signed(_cleaner)),
        ("an utterance left out of an audio review", "layer.figure", _signed(_without_a_clip)),
        ("another subject in an audio review", "layer.figure", _signed(lambda d: d.update(subject="better (release)"))),
        ("the words of a check exchanged", "layer.figure", _verdict_turned),
        ("an audio review of another bundle", "layer.moved", _signed(lambda d: d.update(manifest_sha256="a" * 64))),
        ("an audio review with a field more", "layer.malformed", _signed(lambda d: d.update(mos=5.0))),
        (
            "a check listed twice in its policy",
            "layer.malformed",
            _signed(lambda d: d["policy"]["checks"].append(d["policy"]["checks"][0])),
        ),
        ("an audio review signed by nobody known", "layer.untrusted", _after(_nobody)),
        (
            "a signature of an audio review that is no base64",
            "layer.signature",
            _after(lambda b, name: b.edit(f"{name}/{paths.STATEMENT}", lambda d: d["signatures"][0].update(sig="AAA"))),
        ),
    )
)  # fmt: skip

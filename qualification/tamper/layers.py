"""Tampers with listening reviews: the layers that are added after sealing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qualification import paths, signing, strictjson
from qualification.evidence_view import EvidenceView
from qualification.listening import layer
from qualification.tamper.bench import Bench, Reseal
from qualification.tamper.changes import Change, Tamper, case
from qualification.tamper.good_review import add_layer, make_record

OTHER_SESSION: Final = "5e551011-0000-4000-a000-000000000002"
Edit = Callable[[dict[str, Any]], object]


def _attached(bench: Bench, **more: Any) -> str:
    """A sound layer of the trusted listener; its directory."""
    return add_layer(bench.root, make_record([EvidenceView(bench.root)], **more), bench.good.reviewer)


def _signed(change: Edit) -> Change:
    """A record that the trusted listener signed after `change`, in a layer that fits it."""

    def tamper(bench: Bench) -> None:
        record = make_record([EvidenceView(bench.root)])
        change(record)
        add_layer(bench.root, record, bench.good.reviewer)

    return tamper


def _after(change: Callable[[Bench, str], object]) -> Change:
    """A sound layer that is changed afterwards."""
    return lambda bench: change(bench, _attached(bench))


def _record(change: Edit) -> Change:
    return _after(lambda bench, name: bench.edit(f"{name}/{layer.RECORD}", change))


def _better(record: dict[str, Any]) -> None:
    record["items"][0]["clips"][0]["ratings"]["naturalness"] = 5
    record["items"][0]["clips"][0]["ratings"]["intelligibility"] = 5


def _better_and_renamed(bench: Bench) -> None:
    """A rating is raised and the layer named anew; only the signature is left as it was."""
    name = _attached(bench)
    record = bench.read(f"{name}/{layer.RECORD}")
    _better(record)
    data = strictjson.dumps(record)
    envelope = (bench.root / name / paths.STATEMENT).read_bytes()
    for file in layer.FILES:
        (bench.root / name / file).unlink()
    (bench.root / name).rmdir()
    bench.replace(f"{layer.name_of(data)}/{layer.RECORD}", data)
    bench.replace(f"{layer.name_of(data)}/{paths.STATEMENT}", envelope)


def _other_manifest(record: dict[str, Any]) -> None:
    record["bundles"][0]["manifest_sha256"] = "a" * 64


def _other_clip(record: dict[str, Any]) -> None:
    record["items"][0]["clips"][0]["sha256"] = "b" * 64


def _own_key(bench: Bench) -> None:
    key = signing.private_key(signing.generate().private_pem, "the attacker's key")
    add_layer(bench.root, make_record([EvidenceView(bench.root)]), key)


def _copied(bench: Bench) -> None:
    name = _attached(bench)
    for file in layer.FILES:
        bench.replace(f"{paths.LAYERS_DIRECTORY}/review-{'0' * 16}/{file}", (bench.root / name / file).read_bytes())


def _twice(**more: Any) -> Change:
    def tamper(bench: Bench) -> None:
        _attached(bench)
        _attached(bench, **more)

    return tamper


def _no_signature(envelope: dict[str, Any]) -> None:
    envelope["signatures"][0]["sig"] = "AAA"


LAYERS: Final[tuple[Tamper, ...]] = tuple(
    case(name, code, change, Reseal.NOTHING)
    for name, code, change in (
        ("a file among the layers", "layer.unknown", lambda b: b.replace("layers/notes.txt", b"hello\n")),
        ("a layer of another kind", "layer.unknown", lambda b: b.replace("layers/review-1/record.json", b"{}\n")),
        (
            "a file more in a review",
            "layer.unknown",
            _after(lambda b, name: b.replace(f"{name}/key.pub", b"hello\n")),
        ),
        (
            "a review without its signature",
            "layer.incomplete",
            _after(lambda b, name: (b.root / name / paths.STATEMENT).unlink()),
        ),
        (
            "a review without its record",
            "layer.incomplete",
            _after(lambda b, name: (b.root / name / layer.RECORD).unlink()),
        ),
        ("a rating raised", "layer.name", _record(_better)),
        ("a rating raised, the layer renamed", "layer.statement", _better_and_renamed),
        ("a review copied beside itself", "layer.name", _copied),
        ("a review copied beside itself, counted", "layer.duplicate", _copied),
        ("a sitting signed twice", "layer.duplicate", _twice(ended_utc="2026-01-02T10:21:00.000Z")),
        ("a listener who rates twice", "layer.duplicate", _twice(session=OTHER_SESSION)),
        (
            "a listener under a second name",
            "layer.duplicate",
            _twice(session=OTHER_SESSION, reviewer="listener-2"),
        ),
        (
            "a signature that is no base64",
            "layer.signature",
            _after(lambda b, name: b.edit(f"{name}/{paths.STATEMENT}", _no_signature)),
        ),
        ("a review signed by nobody known", "layer.untrusted", _own_key),
        ("a review of another bundle", "layer.moved", _signed(_other_manifest)),
        ("a rating of a clip that is not there", "layer.clip", _signed(_other_clip)),
        ("a clip left unrated", "layer.coverage", _signed(lambda d: d["items"].pop())),
        ("a clip rated twice", "layer.coverage", _signed(lambda d: d["items"].append(d["items"][-1]))),
        (
            "a rating left out",
            "layer.malformed",
            _signed(lambda d: d["items"][0]["clips"][0]["ratings"].pop("naturalness")),
        ),
        ("a rating of six", "layer.malformed", _signed(lambda d: d["items"][0]["clips"][0]["ratings"].update(naturalness=6))),
        ("a clip that was not heard", "layer.malformed", _signed(lambda d: d["items"][0]["clips"][0].update(heard=False))),
        ("clips in an order of one's own", "layer.order", _signed(lambda d: d["items"].reverse())),
        ("a sitting shorter than its clips", "layer.times", _signed(lambda d: d.update(ended_utc=d["started_utc"]))),
    )
)  # fmt: skip

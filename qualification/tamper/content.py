"""Tampers with documents: form, binding to the run, and what is computed from the raw files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qualification import paths
from qualification.digest import sha256_bytes
from qualification.tamper.bench import Bench, Reseal, find
from qualification.tamper.changes import B1, Tamper, case, document, gate, number, rewrite


def _softer_policy(document: dict[str, Any]) -> None:
    document["tiers"]["reference"]["limits"]["bench"]["B1"]["rtf_median_max"] = 9.0


def _own_pins(document: dict[str, Any]) -> None:
    document["models"][0]["files"][0]["digest"]["value"] = sha256_bytes(b"another model")


def _selected(*gates: str) -> Callable[[Bench], None]:
    return document(paths.RUN, lambda run: run.update(gates_selected=list(gates)))


def _drop_selection(bench: Bench) -> None:
    """A run of two gates, honest in everything but that it no longer says so."""
    _selected("bench.b1", "bench.b3")(bench)
    bench.seal(Reseal.EVERYTHING)
    bench.edit(paths.RUN, lambda run: run.update(gates_selected=None))


def _qualified_subset(bench: Bench) -> None:
    _selected("bench.b1", "bench.b3")(bench)
    bench.seal(Reseal.EVERYTHING)
    bench.edit(paths.SUMMARY, lambda summary: summary["verdict"].update(outcome="qualified"))


CONTENT: Final[tuple[Tamper, ...]] = (
    case("a subset of the gates that no longer says so", "gates.differ", _drop_selection, Reseal.MANIFEST),
    case("a subset of the gates, called qualified", "summary.verdict-differs", _qualified_subset, Reseal.MANIFEST),
    case("a selection of a gate that the policy lacks", "gates.selection", _selected("bench.b1", "bench.b9")),
    case("a selection out of the policy's order", "gates.selection", _selected("bench.b3", "bench.b1")),
    case(
        "manifest of another run",
        "binding.run",
        document(paths.MANIFEST, lambda d: d.update(run_id="another-run-0001")),
        Reseal.NOTHING,
    ),
    case(
        "a key twice",
        "document.malformed",
        rewrite(paths.RUN, lambda d: d.replace(b'{\n  "ended', b'{\n  "tier": "release",\n  "ended', 1)),
        Reseal.MANIFEST,
    ),
    case(
        "an unknown field", "document.malformed", document(paths.RUN, lambda d: d.update(note="hello")), Reseal.MANIFEST
    ),
    case(
        "not a number",
        "document.malformed",
        rewrite(paths.SUMMARY, lambda d: d.replace(b'"value": 6\n', b'"value": NaN\n', 1)),
        Reseal.MANIFEST,
    ),
    case(
        "infinity by overflow",
        "document.malformed",
        rewrite(paths.SUMMARY, lambda d: d.replace(b'"value": 6\n', b'"value": 1e400\n', 1)),
        Reseal.MANIFEST,
    ),
    case("a byte-order mark", "document.malformed", rewrite(paths.RUN, lambda d: b"\xef\xbb\xbf" + d), Reseal.MANIFEST),
    case(
        "not UTF-8",
        "document.malformed",
        rewrite(paths.RUN, lambda d: d.replace(b"example", b"ex\xffmple", 1)),
        Reseal.MANIFEST,
    ),
    case("a passed gate with nothing counted", "document.malformed", gate("eos.rate", n=0), Reseal.MANIFEST),
    case("not canonical: a space", "document.not-canonical", rewrite(paths.RUN, lambda d: d + b" "), Reseal.MANIFEST),
    case(
        "not canonical: keys out of order",
        "document.not-canonical",
        rewrite(B1, lambda d: d.replace(b'{"audio":null,"concurrency":1,', b'{"concurrency":1,"audio":null,', 1)),
        Reseal.MANIFEST,
    ),
    case("raw records cut off in a line", "document.malformed", rewrite(B1, lambda d: d[:-20]), Reseal.MANIFEST),
    case("a file of records emptied", "document.malformed", rewrite(B1, lambda _: b""), Reseal.MANIFEST),
    case("policy softened", "policy.untrusted", document(paths.POLICY, _softer_policy)),
    case("pins of one's own", "pins.untrusted", document(paths.PINS, _own_pins)),
    case("tier claimed", "tier.not-derived", document(paths.RUN, lambda d: d.update(tier="release")), Reseal.MANIFEST),
    case(
        "weights of another digest",
        "tier.not-derived",
        document(paths.IDENTITY, lambda d: find(d["files"], role="weights").update(sha256="f" * 64)),
    ),
    case("phases of another run", "binding.run", document(paths.PHASES, lambda d: d.update(run_id="another-run-0001"))),
    case(
        "environment of another commit",
        "binding.commit",
        document(paths.ENVIRONMENT, lambda d: d["source"].update(commit="f" * 40)),
    ),
    case(
        "a weight file without a licence record",
        "licences.incomplete",
        document(paths.LICENCES, lambda d: d["model_files"][0].update(name="other.safetensors")),
    ),
    case(
        "a failed gate called passed",
        "gates.differ",
        gate("provenance", outcome="passed", n=1, reason_code=None, needed=None, owner=None),
        Reseal.MANIFEST,
    ),
    case(
        "a gate of one's own",
        "gates.unknown",
        document(paths.GATES, lambda d: d["results"].append({**d["results"][0], "id": "own.gate"})),
        Reseal.MANIFEST,
    ),
    case(
        "a gate twice",
        "gates.order",
        document(paths.GATES, lambda d: d["results"].append(d["results"][0])),
        Reseal.MANIFEST,
    ),
    case(
        "a number left out",
        "summary.number-missing",
        document(paths.SUMMARY, lambda d: d["numbers"].pop(5)),
        Reseal.MANIFEST,
    ),
    case(
        "a number of one's own",
        "summary.number-unknown",
        document(paths.SUMMARY, lambda d: d["numbers"].append({**d["numbers"][0], "id": "b1.quality"})),
        Reseal.MANIFEST,
    ),
    case(
        "a number derived otherwise",
        "summary.derivation-differs",
        number("b1.rtf.max", derivation={"file": B1, "field": "rtf", "estimator": "min", "where": {}}),
        Reseal.MANIFEST,
    ),
    case(
        "a bound removed",
        "summary.number-differs",
        number("b1.rtf.median", upper95=None, reason="too_few_samples"),
        Reseal.MANIFEST,
    ),
    case(
        "a verdict rewritten",
        "summary.verdict-differs",
        document(
            paths.SUMMARY, lambda d: d["verdict"].update(sentence="Qualified in every respect.", not_performed=[])
        ),
        Reseal.MANIFEST,
    ),
    case(
        "a limitation left out",
        "summary.differs",
        document(paths.SUMMARY, lambda d: d["limitations"].pop(0)),
        Reseal.MANIFEST,
    ),
    case(
        "informative called qualifying",
        "summary.differs",
        document(paths.SUMMARY, lambda d: d["profiles"][0].update(standing="informative")),
        Reseal.MANIFEST,
    ),
    case(
        "numbers twice",
        "summary.differs",
        document(paths.SUMMARY, lambda d: d["numbers"].append(d["numbers"][0])),
        Reseal.MANIFEST,
    ),
    case(
        "a report of one's own",
        "report.differs",
        lambda b: b.replace(paths.REPORT, b"<html>All is well.</html>\n"),
        Reseal.MANIFEST,
    ),
)

"""Bundles that must be refused: each changes one thing in the good bundle and names the finding that must come.

The corpus is the contract's list and what was found beside it. A tamper whose code does not come slips through, however
many other findings there are; a code of the verifier that no tamper raises is listed by the tests.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths, signing, strictjson
from qualification.clip import encode_wav
from qualification.digest import sha256_bytes
from qualification.tamper.bench import Bench, Reseal, find, measured, shift

B1: Final = "samples/b1.jsonl"
B3: Final = "samples/b3.jsonl"
B6: Final = "samples/b6.jsonl"
EOS: Final = "samples/eos.jsonl"
MS: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Tamper:
    """One way to tamper, and the finding that must come of it."""

    name: str
    code: str
    change: Callable[[Bench], object]
    reseal: Reseal = Reseal.EVERYTHING


def _record(path: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Bench], None]:
    """Change the first measured record of a file."""
    return lambda bench: bench.edit_lines(path, lambda lines: change(next(measured(lines))))


def _set(path: str, **values: Any) -> Callable[[Bench], None]:
    """Set fields of the first measured record of a file."""
    return _record(path, lambda record: record.update(values))


def _packet(number: int, **values: Any) -> Callable[[Bench], None]:
    """Set fields of one packet of the first measured record of B1."""
    return _record(B1, lambda record: record["packets"][number].update(values))


def _telemetry(change: Callable[[list[Any]], object]) -> Callable[[Bench], None]:
    return lambda bench: bench.edit_lines(paths.TELEMETRY, change)


def _document(path: str, change: Callable[[Any], object]) -> Callable[[Bench], None]:
    return lambda bench: bench.edit(path, change)


def _number(name: str, **values: Any) -> Callable[[Bench], None]:
    return lambda bench: bench.number(name, lambda number: number.update(values))


def _scaled(name: str, factor: float) -> Callable[[Bench], None]:
    return lambda bench: bench.number(name, lambda number: number.update(value=number["value"] * factor))


def _gate(gate: str, **values: Any) -> Callable[[Bench], None]:
    return _document(paths.GATES, lambda document: find(document["results"], id=gate).update(values))


def _phase(change: Callable[[dict[str, Any]], object], **wanted: object) -> Callable[[Bench], None]:
    return _document(paths.PHASES, lambda document: change(find(document["phases"], **wanted)))


def _raw(path: str, change: Callable[[bytes], bytes]) -> Callable[[Bench], None]:
    return lambda bench: bench.replace(path, change((bench.root / path).read_bytes()))


def _drop_measured(lines: list[dict[str, Any]], *, last: bool) -> None:
    chosen = list(measured(lines))
    lines.remove(chosen[-1] if last else chosen[0])


def _fewer_everywhere(bench: Bench) -> None:
    """A request removed from the raw file, the plan and the phase, with its audio: only the signature is left."""
    bench.edit_lines(B1, lambda lines: _drop_measured(lines, last=True))
    named = {line["audio"] for line in strictjson.loads_lines((bench.root / B1).read_bytes(), B1)}
    gone = [path for path in _audio_of(bench, "B1") if path not in named]
    for path in gone:
        (bench.root / path).unlink()
    bench.edit(paths.RUN, lambda run: find(run["profiles"], name="B1").update(entries=["bench-one-en"] * 5, repeats=1))
    bench.edit(paths.PHASES, lambda d: find(d["phases"], profile="B1", kind="measure").update(requests=5))


def _audio_of(bench: Bench, profile: str) -> list[str]:
    lines = strictjson.loads_lines((bench.good.root / f"samples/{profile.lower()}.jsonl").read_bytes(), profile)
    return [line["audio"] for line in lines if line["audio"]]


def _first_audio(bench: Bench) -> str:
    return _audio_of(bench, "B1")[0]


def _relabel_failure(record: dict[str, Any]) -> None:
    """A stream that broke off, called a success by the one word and what the schema asks of it."""
    record.update(server_metrics=None)


def _as_failure(record: dict[str, Any], **values: Any) -> None:
    record.update(
        outcome="refused", error_code="capacity_exhausted", error_detail="all slots are busy", http_status=429,
        finish_reason=None, server_metrics=None, audio=None, packets=[], samples=0, pcm_sha256=None, echoed_seed=None,
    )  # fmt: skip
    record.update(values)


def _same_audio(bench: Bench) -> None:
    """The second text gets the first one's samples, in the record and in the file."""

    def change(lines: list[dict[str, Any]]) -> None:
        first, second = list(measured(lines))[:2]
        second["pcm_sha256"] = first["pcm_sha256"]
        bench.replace(second["audio"], (bench.root / first["audio"]).read_bytes())

    bench.edit_lines(B1, change)


def _same_id(lines: list[dict[str, Any]]) -> None:
    first, second = list(measured(lines))[:2]
    second["request_id"] = first["request_id"]


def _overlap(lines: list[dict[str, Any]]) -> None:
    first, second = list(measured(lines))[:2]
    lines[lines.index(second)] = shift(second, first["t0_ns"] - second["t0_ns"] + MS)


def _late_wave(lines: list[dict[str, Any]]) -> None:
    last = list(measured(lines))[-1]
    lines[lines.index(last)] = shift(last, 110 * MS)


def _resign(bench: Bench) -> None:
    """Signed again over the changed bundle, with the attacker's own key."""
    pair = signing.generate()
    key = bench.root.parent / f"{bench.root.name}.key"
    key.write_bytes(pair.private_pem)
    envelope = bench.read(paths.STATEMENT)
    payload = base64.b64decode(envelope["payload"])
    bench.replace(paths.STATEMENT, strictjson.dumps(signing.sign(payload, signing.load_private(key))))
    key.unlink()


def _other_key_id(bench: Bench) -> None:
    """The attacker's signature under the trusted key's id."""
    trusted = bench.read(paths.STATEMENT)["signatures"][0]["keyid"]
    _resign(bench)
    bench.edit(paths.STATEMENT, lambda envelope: envelope["signatures"][0].update(keyid=trusted))


def _payload(change: Callable[[dict[str, Any]], object]) -> Callable[[Bench], None]:
    """Change the statement inside the envelope and leave the signature."""

    def tamper(bench: Bench) -> None:
        envelope = bench.read(paths.STATEMENT)
        statement = strictjson.loads(base64.b64decode(envelope["payload"]), "payload")
        change(statement)
        envelope["payload"] = base64.b64encode(strictjson.dumps(statement)).decode()
        bench.replace(paths.STATEMENT, strictjson.dumps(envelope))

    return tamper


def _link(bench: Bench) -> None:
    place = bench.root / paths.ENVIRONMENT
    target = bench.root.parent / f"{bench.root.name}.outside.json"
    target.write_bytes(place.read_bytes())
    place.unlink()
    place.symlink_to(target)


def _linked_directory(bench: Bench) -> None:
    target = bench.root.parent / f"{bench.root.name}.outside"
    (bench.root / "samples").rename(target)
    (bench.root / "samples").symlink_to(target, target_is_directory=True)


def _pipe(bench: Bench) -> None:
    os.mkfifo(bench.root / "logs.fifo")


def _softer_policy(document: dict[str, Any]) -> None:
    document["tiers"]["reference"]["limits"]["bench"]["B1"]["rtf_median_max"] = 9.0


def _own_pins(document: dict[str, Any]) -> None:
    document["models"][0]["files"][0]["digest"]["value"] = sha256_bytes(b"another model")


def _entry(**values: Any) -> Callable[[Bench], None]:
    return _document(paths.MANIFEST, lambda manifest: manifest["files"][0].update(values))


def _cut_telemetry(lines: list[Any]) -> None:
    del lines[len(lines) // 2 : len(lines) // 2 + 8]


def _rename_audio(bench: Bench) -> None:
    (bench.root / _first_audio(bench)).rename(bench.root / "audio" / "another-name.wav")


def _quieter(bench: Bench) -> None:
    path = _first_audio(bench)
    data = (bench.root / path).read_bytes()
    bench.replace(path, encode_wav(bytes(len(data) - 44)))


def _endless_header(bench: Bench) -> None:
    path = _first_audio(bench)
    data = bytearray((bench.root / path).read_bytes())
    data[40:44] = b"\xff\xff\xff\xff"
    bench.replace(path, bytes(data))


N, M, E = Reseal.NOTHING, Reseal.MANIFEST, Reseal.EVERYTHING
CORPUS: Final[tuple[Tamper, ...]] = (
    # The contract's list.
    Tamper(
        name="energy scaled, telemetry untouched",
        code="summary.number-differs",
        change=_scaled("b1.gpu.energy", 0.5),
        reseal=M,
    ),
    Tamper(
        name="memory peak of one byte in the summary",
        code="summary.number-differs",
        change=_number("run.memory.rss.peak", value=1),
        reseal=M,
    ),
    Tamper(
        name="memory of one byte in the telemetry",
        code="telemetry.memory",
        change=_telemetry(lambda lines: [line.update(rss_bytes=1) for line in lines]),
    ),
    Tamper(
        name="telemetry is a line of rubbish",
        code="document.malformed",
        change=_raw(paths.TELEMETRY, lambda _: b"rubbish\n"),
        reseal=M,
    ),
    Tamper(
        name="telemetry is a line of another shape",
        code="document.malformed",
        change=_raw(paths.TELEMETRY, lambda _: b'{"power":1}\n'),
        reseal=M,
    ),
    Tamper(
        name="scenario shorter than its requests allow",
        code="phase.too-short",
        change=_phase(lambda p: p.update(end_ns=p["start_ns"] + 50 * MS), profile="B1", kind="measure"),
    ),
    Tamper(name="audio hash of zeros", code="audio.placeholder-hash", change=_set(B1, pcm_sha256="0" * 64)),
    Tamper(name="audio hash of nothing", code="audio.placeholder-hash", change=_set(B1, pcm_sha256=sha256_bytes(b""))),
    Tamper(name="two texts with one audio", code="audio.repeated", change=_same_audio),
    Tamper(name="two requests with one id", code="request.duplicate-id", change=lambda b: b.edit_lines(B1, _same_id)),
    Tamper(name="a percentile lowered", code="summary.number-differs", change=_scaled("b1.rtf.median", 0.9), reseal=M),
    Tamper(
        name="average power above peak power",
        code="summary.power",
        change=_number("b1.gpu.power.mean", value=1e6),
        reseal=M,
    ),
    Tamper(
        name="first request removed from the raw file",
        code="plan.index",
        change=lambda b: b.edit_lines(B1, lambda x: _drop_measured(x, last=False)),
    ),
    Tamper(
        name="last request removed from the raw file",
        code="plan.count",
        change=lambda b: b.edit_lines(B1, lambda x: _drop_measured(x, last=True)),
    ),
    Tamper(name="request removed from record, plan and phase", code="statement.differs", change=_fewer_everywhere),
    Tamper(name="broken stream relabelled ok", code="request.outcome", change=_record(B1, _relabel_failure)),
    Tamper(
        name="failure relabelled by one word",
        code="document.malformed",
        change=_record(B1, lambda r: _as_failure(r, outcome="ok")),
        reseal=M,
    ),
    Tamper(
        name="gate results of another run",
        code="binding.run",
        change=_document(paths.GATES, lambda d: d.update(run_id="another-run-0001")),
        reseal=M,
    ),
    Tamper(
        name="gate results of another commit",
        code="binding.commit",
        change=_document(paths.GATES, lambda d: d.update(commit="f" * 40)),
        reseal=M,
    ),
    Tamper(
        name="gate results of another image",
        code="binding.image",
        change=_document(paths.GATES, lambda d: d.update(image="sha256:" + "f" * 64)),
        reseal=M,
    ),
    Tamper(
        name="gate results under another policy",
        code="binding.policy",
        change=_document(paths.GATES, lambda d: d.update(policy_sha256="f" * 64)),
        reseal=M,
    ),
    Tamper(
        name="a gate left out",
        code="gates.missing",
        change=_document(paths.GATES, lambda d: d["results"].pop(3)),
        reseal=M,
    ),
    Tamper(
        name="a placeholder for an explanation",
        code="wording.placeholder",
        change=_gate("provenance", needed="TODO"),
        reseal=M,
    ),
    Tamper(
        name="a placeholder limitation",
        code="wording.placeholder",
        change=_document(paths.SUMMARY, lambda d: d["limitations"][0].update(text="To be defined before the release.")),
        reseal=M,
    ),
    Tamper(
        name="summary computed from fewer requests",
        code="summary.number-differs",
        change=_number("b1.requests", value=5, n=5),
        reseal=M,
    ),
    Tamper(name="signed by a key that was not given", code="signature.untrusted", change=_resign, reseal=N),
    # Signature and statement.
    Tamper(name="another key under the trusted key's id", code="signature.untrusted", change=_other_key_id, reseal=N),
    Tamper(
        name="statement removed",
        code="signature.missing",
        change=lambda b: (b.root / paths.STATEMENT).unlink(),
        reseal=N,
    ),
    Tamper(
        name="statement is no envelope",
        code="signature.malformed",
        change=lambda b: b.replace(paths.STATEMENT, b"{}\n"),
        reseal=N,
    ),
    Tamper(
        name="signature is no base64",
        code="signature.malformed",
        change=_document(paths.STATEMENT, lambda d: d["signatures"][0].update(sig="AAA")),
        reseal=N,
    ),
    Tamper(
        name="verdict changed in the statement",
        code="signature.untrusted",
        change=_payload(lambda s: s["predicate"].update(verdict="not_qualified")),
        reseal=N,
    ),
    Tamper(
        name="a subject removed from the statement",
        code="statement.differs",
        change=_payload(lambda s: s["subject"].pop()),
        reseal=N,
    ),
    # Files and manifest.
    Tamper(
        name="manifest removed", code="manifest.missing", change=lambda b: (b.root / paths.MANIFEST).unlink(), reseal=N
    ),
    Tamper(
        name="manifest with an unknown field",
        code="manifest.malformed",
        change=_document(paths.MANIFEST, lambda d: d.update(note="hello")),
        reseal=N,
    ),
    Tamper(
        name="manifest names a path outside", code="manifest.malformed", change=_entry(path="../run.json"), reseal=N
    ),
    Tamper(
        name="manifest names an absolute path", code="manifest.malformed", change=_entry(path="/etc/hostname"), reseal=N
    ),
    Tamper(
        name="manifest names a file twice",
        code="manifest.order",
        change=_document(paths.MANIFEST, lambda d: d["files"].insert(0, d["files"][0])),
        reseal=N,
    ),
    Tamper(
        name="manifest out of order",
        code="manifest.order",
        change=_document(paths.MANIFEST, lambda d: d["files"].reverse()),
        reseal=N,
    ),
    Tamper(name="manifest with a wrong role", code="manifest.role", change=_entry(role="log"), reseal=N),
    Tamper(name="manifest lists itself", code="manifest.role", change=_entry(path=paths.MANIFEST), reseal=N),
    Tamper(name="manifest with a wrong size", code="file.size", change=_entry(bytes=1), reseal=N),
    Tamper(name="manifest with a wrong digest", code="file.digest", change=_entry(sha256="0" * 64), reseal=N),
    Tamper(
        name="manifest of another run",
        code="binding.run",
        change=_document(paths.MANIFEST, lambda d: d.update(run_id="another-run-0001")),
        reseal=N,
    ),
    Tamper(
        name="a file without a role", code="file.extra", change=lambda b: b.replace("notes.txt", b"hello\n"), reseal=N
    ),
    Tamper(name="a document is a symbolic link", code="file.irregular", change=_link, reseal=N),
    Tamper(name="a directory is a symbolic link", code="file.irregular", change=_linked_directory, reseal=N),
    Tamper(name="a pipe among the files", code="file.irregular", change=_pipe, reseal=N),
    Tamper(name="an empty directory", code="file.irregular", change=lambda b: (b.root / "logs").mkdir(), reseal=N),
    Tamper(
        name="environment left out",
        code="bundle.incomplete",
        change=lambda b: (b.root / paths.ENVIRONMENT).unlink(),
        reseal=M,
    ),
    # Documents.
    Tamper(
        name="a key twice",
        code="document.malformed",
        change=_raw(paths.RUN, lambda d: d.replace(b'{\n  "ended', b'{\n  "tier": "release",\n  "ended', 1)),
        reseal=M,
    ),
    Tamper(
        name="an unknown field",
        code="document.malformed",
        change=_document(paths.RUN, lambda d: d.update(note="hello")),
        reseal=M,
    ),
    Tamper(
        name="not a number",
        code="document.malformed",
        change=_raw(paths.SUMMARY, lambda d: d.replace(b'"value": 6\n', b'"value": NaN\n', 1)),
        reseal=M,
    ),
    Tamper(
        name="infinity by overflow",
        code="document.malformed",
        change=_raw(paths.SUMMARY, lambda d: d.replace(b'"value": 6\n', b'"value": 1e400\n', 1)),
        reseal=M,
    ),
    Tamper(
        name="a byte-order mark",
        code="document.malformed",
        change=_raw(paths.RUN, lambda d: b"\xef\xbb\xbf" + d),
        reseal=M,
    ),
    Tamper(
        name="not UTF-8",
        code="document.malformed",
        change=_raw(paths.RUN, lambda d: d.replace(b"example", b"ex\xffmple", 1)),
        reseal=M,
    ),
    Tamper(
        name="a passed gate with nothing counted", code="document.malformed", change=_gate("eos.rate", n=0), reseal=M
    ),
    Tamper(
        name="not canonical: a space",
        code="document.not-canonical",
        change=_raw(paths.RUN, lambda d: d + b" "),
        reseal=M,
    ),
    Tamper(
        name="not canonical: keys out of order",
        code="document.not-canonical",
        change=_raw(B1, lambda d: d.replace(b'{"audio":null,"concurrency":1,', b'{"concurrency":1,"audio":null,', 1)),
        reseal=M,
    ),
    Tamper(
        name="raw records cut off in a line", code="document.malformed", change=_raw(B1, lambda d: d[:-20]), reseal=M
    ),
    Tamper(name="a file of records emptied", code="document.malformed", change=_raw(B1, lambda _: b""), reseal=M),
    # Binding.
    Tamper(name="policy softened", code="policy.untrusted", change=_document(paths.POLICY, _softer_policy)),
    Tamper(name="pins of one's own", code="pins.untrusted", change=_document(paths.PINS, _own_pins)),
    Tamper(
        name="tier claimed",
        code="tier.not-derived",
        change=_document(paths.RUN, lambda d: d.update(tier="release")),
        reseal=M,
    ),
    Tamper(
        name="weights of another digest",
        code="tier.not-derived",
        change=_document(paths.IDENTITY, lambda d: find(d["files"], role="weights").update(sha256="f" * 64)),
    ),
    Tamper(
        name="phases of another run",
        code="binding.run",
        change=_document(paths.PHASES, lambda d: d.update(run_id="another-run-0001")),
    ),
    Tamper(
        name="environment of another commit",
        code="binding.commit",
        change=_document(paths.ENVIRONMENT, lambda d: d["source"].update(commit="f" * 40)),
    ),
    Tamper(
        name="a weight file without a licence record",
        code="licences.incomplete",
        change=_document(paths.LICENCES, lambda d: d["model_files"][0].update(name="other.safetensors")),
    ),
    # Recomputation.
    Tamper(
        name="a failed gate called passed",
        code="gates.differ",
        change=_gate("provenance", outcome="passed", n=1, reason_code=None, needed=None, owner=None),
        reseal=M,
    ),
    Tamper(
        name="a gate of one's own",
        code="gates.unknown",
        change=_document(paths.GATES, lambda d: d["results"].append({**d["results"][0], "id": "own.gate"})),
        reseal=M,
    ),
    Tamper(
        name="a gate twice",
        code="gates.order",
        change=_document(paths.GATES, lambda d: d["results"].append(d["results"][0])),
        reseal=M,
    ),
    Tamper(
        name="a number left out",
        code="summary.number-missing",
        change=_document(paths.SUMMARY, lambda d: d["numbers"].pop(5)),
        reseal=M,
    ),
    Tamper(
        name="a number of one's own",
        code="summary.number-unknown",
        change=_document(paths.SUMMARY, lambda d: d["numbers"].append({**d["numbers"][0], "id": "b1.quality"})),
        reseal=M,
    ),
    Tamper(
        name="a number derived otherwise",
        code="summary.derivation-differs",
        change=_number("b1.rtf.max", derivation={"file": B1, "field": "rtf", "estimator": "min", "where": {}}),
        reseal=M,
    ),
    Tamper(
        name="a bound removed",
        code="summary.number-differs",
        change=_number("b1.rtf.median", upper95=None, reason="too_few_samples"),
        reseal=M,
    ),
    Tamper(
        name="a verdict rewritten",
        code="summary.verdict-differs",
        change=_document(
            paths.SUMMARY, lambda d: d["verdict"].update(sentence="Qualified in every respect.", not_performed=[])
        ),
        reseal=M,
    ),
    Tamper(
        name="a limitation left out",
        code="summary.differs",
        change=_document(paths.SUMMARY, lambda d: d["limitations"].pop(0)),
        reseal=M,
    ),
    Tamper(
        name="informative called qualifying",
        code="summary.differs",
        change=_document(paths.SUMMARY, lambda d: d["profiles"][0].update(standing="informative")),
        reseal=M,
    ),
    Tamper(
        name="numbers twice",
        code="summary.differs",
        change=_document(paths.SUMMARY, lambda d: d["numbers"].append(d["numbers"][0])),
        reseal=M,
    ),
    Tamper(
        name="a report of one's own",
        code="report.differs",
        change=lambda b: b.replace(paths.REPORT, b"<html>All is well.</html>\n"),
        reseal=M,
    ),
    # Plausibility: one request.
    Tamper(
        name="end before the last packet",
        code="packet.time-order",
        change=_record(B1, lambda r: r.update(end_ns=r["t0_ns"] + 30 * MS)),
    ),
    Tamper(
        name="audio before the headers",
        code="request.time-order",
        change=_record(B1, lambda r: r["packets"][0].update(at_ns=r["t0_ns"] + 1)),
    ),
    Tamper(
        name="sent before it was scheduled",
        code="request.time-order",
        change=_record(B1, lambda r: r.update(scheduled_ns=r["t0_ns"] + MS)),
    ),
    Tamper(name="bytes that are no samples", code="packet.bytes", change=_packet(1, bytes=4)),
    Tamper(name="samples that are no frames", code="packet.frames", change=_packet(1, frames=4)),
    Tamper(name="a gap between packets", code="packet.position", change=_packet(1, first_frame=2)),
    Tamper(name="no final packet", code="packet.final", change=_packet(1, final=False)),
    Tamper(name="two final packets", code="packet.final", change=_packet(0, final=True)),
    Tamper(
        name="samples counted twice",
        code="request.samples",
        change=_record(B1, lambda r: r.update(samples=r["samples"] * 2)),
    ),
    Tamper(
        name="more frames than the ceiling",
        code="request.ceiling",
        change=_document(paths.RUN, lambda d: d["parameters"].update(max_duration_seconds=0.16)),
    ),
    Tamper(name="another seed came back", code="request.seed-echo", change=_set(B1, echoed_seed=1)),
    Tamper(
        name="the server tells of other frames",
        code="request.server-account",
        change=_record(B1, lambda r: r["server_metrics"].update(generated_codec_frames=400)),
    ),
    Tamper(
        name="the client was faster than the server",
        code="request.server-account",
        change=_record(B1, lambda r: r["server_metrics"].update(wall_microseconds=900_000)),
    ),
    Tamper(
        name="audio at the client before it was made",
        code="request.server-account",
        change=_record(B1, lambda r: r["server_metrics"].update(first_audio_microseconds=60_000)),
    ),
    Tamper(
        name="refused with status 200",
        code="request.outcome",
        change=_record("samples/eos.jsonl", lambda r: _as_failure(r, http_status=200)),
    ),
    # Plausibility: plan, load, time.
    Tamper(name="records of another profile", code="plan.profile", change=_set(B1, profile="B3")),
    Tamper(name="another concurrency in the records", code="plan.profile", change=_set(B1, concurrency=6)),
    Tamper(
        name="a profile without records",
        code="plan.profile",
        change=_document(paths.RUN, lambda d: d["profiles"][2].update(samples="samples/none.jsonl")),
        reseal=M,
    ),
    Tamper(name="another seed than planned", code="plan.entry", change=_set(B1, seed=7, echoed_seed=7)),
    Tamper(name="another sentence than planned", code="plan.entry", change=_set(B1, workload_id="bench-two-en")),
    Tamper(
        name="a sentence that does not exist",
        code="plan.entry",
        change=_document(paths.RUN, lambda d: d["profiles"][2].update(entries=["bench-one-en", "bench-three-en"])),
    ),
    Tamper(name="warm-up removed", code="plan.count", change=lambda b: b.edit_lines(B1, lambda x: x.pop(0))),
    Tamper(name="a round that was not planned", code="plan.count", change=_set(B1, round=1)),
    Tamper(
        name="more in flight than the concurrency", code="load.concurrency", change=lambda b: b.edit_lines(B1, _overlap)
    ),
    Tamper(name="a wave that did not start together", code="load.wave", change=lambda b: b.edit_lines(B6, _late_wave)),
    Tamper(
        name="a measured phase left out",
        code="phase.missing",
        change=_document(paths.PHASES, lambda d: d["phases"].remove(find(d["phases"], profile="B1", kind="measure"))),
    ),
    Tamper(
        name="a measured phase twice",
        code="phase.missing",
        change=_document(paths.PHASES, lambda d: d["phases"].append(find(d["phases"], profile="B1", kind="measure"))),
    ),
    Tamper(
        name="requests outside their phase",
        code="phase.cover",
        change=_phase(lambda p: p.update(start_ns=p["start_ns"] + 20 * MS), profile="B1", kind="measure"),
    ),
    Tamper(
        name="a phase that counts fewer requests",
        code="phase.requests",
        change=_phase(lambda p: p.update(requests=5), profile="B1", kind="measure"),
    ),
    Tamper(
        name="a phase at another hour",
        code="phase.clock",
        change=_phase(lambda p: p.update(start_utc="2026-01-01T05:00:00Z"), profile="B1", kind="measure"),
    ),
    Tamper(
        name="phases out of order", code="phase.clock", change=_document(paths.PHASES, lambda d: d["phases"].reverse())
    ),
    # Plausibility: audio and telemetry.
    Tamper(
        name="a stored utterance removed",
        code="audio.missing",
        change=lambda b: (b.root / _first_audio(b)).unlink(),
        reseal=E,
    ),
    Tamper(name="a record disowns its utterance", code="audio.missing", change=_set(B1, audio=None)),
    Tamper(name="a stored utterance renamed", code="audio.orphan", change=_rename_audio),
    Tamper(name="a stored utterance silenced", code="audio.differs", change=_quieter),
    Tamper(name="a WAV header without end", code="audio.malformed", change=_endless_header, reseal=M),
    Tamper(name="telemetry removed", code="telemetry.missing", change=lambda b: (b.root / paths.TELEMETRY).unlink()),
    Tamper(name="telemetry with a hole", code="telemetry.cover", change=_telemetry(_cut_telemetry)),
    Tamper(name="telemetry out of order", code="telemetry.order", change=_telemetry(lambda lines: lines.reverse())),
    Tamper(
        name="more processor time than processors",
        code="telemetry.cpu",
        change=_telemetry(lambda lines: [line.update(cpu_ns=line["cpu_ns"] * 10) for line in lines]),
    ),
    Tamper(name="percentiles out of order", code="summary.order", change=_number("b1.rtf.max", value=0.0001), reseal=M),
    Tamper(
        name="an estimate above its bound", code="summary.order", change=_number("b1.failure_rate", value=0.9), reseal=M
    ),
)

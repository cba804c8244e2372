"""The report as one HTML file: no request leaves it, and the same evidence gives the same bytes.

A content security policy in the page itself forbids every request and every script but the one that is written here (by
its hash). Without scripts everything is there but spectrograms and the re-check of hashes.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from qualification.bench.raw import SAMPLE_RATE_HZ, RequestRecord
from qualification.evidence_view import EvidenceView
from qualification.report import assets, charts, watching, words
from qualification.report.audio_reviews import audio_reviews, named
from qualification.report.beside import beside
from qualification.report.distribution import Group, Mark, distribution
from qualification.report.machine import machine_facts
from qualification.report.page import Page, read_page
from qualification.report.profiles import ProfileView
from qualification.report.voices import Voice, language_rows, voices

_LATENCIES = (
    ("requests", "measured requests"),
    ("failed", "failed"),
    ("failure_rate", "share that failed"),
    ("unnatural_rate", "share that did not end naturally"),
    ("audio", "audio delivered"),
    ("scenario_wall", "scenario wall"),
    ("rtf.aggregate", "scenario wall / audio delivered"),
    ("throughput.audio", "audio a second"),
    ("rtf.median", "real-time factor, median"),
    ("rtf.p95", "real-time factor, p95"),
    ("rtf.p99", "real-time factor, p99"),
    ("ttfa.median", "first audio, median"),
    ("ttfa.p95", "first audio, p95"),
    ("ttfa.p99", "first audio, p99"),
    ("underrun.rate", "share of streams with an underrun"),
    ("underrun.max", "longest underrun"),
)


def render(evidence: EvidenceView, *, added: bool = False) -> str:
    """The whole page; with `added`, also the audio reviews that were added after sealing.

    Raises:
        BundleError, StrictJsonError, SchemaError: a file is missing or malformed.
    """
    page, clips = read_page(evidence), voices(evidence)
    script, style = assets.script("report.js"), assets.text("report.css")
    return (
        assets.environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            words=words,
            machine_facts=machine_facts(page.environment),
            languages=language_rows(evidence),
            voices=clips,
            ring=_ring(page),
            ridges=_ridges(clips),
            ttfa=_distribution(evidence, page, "ttfa"),
            rtf=_distribution(evidence, page, "rtf"),
            buffers=[(profile, _buffers(evidence.records(profile=profile.name), profile)) for profile in page.profiles],
            telemetry=watching.picture(evidence),
            watched=watching.rows(page.profiles),
            watching_facts=watching.facts(evidence),
            latencies=_LATENCIES,
            audio_reviews=audio_reviews(evidence) if added else (),
            named=named,
            beside=beside(evidence),
            script=Markup(script),  # our own file
            style=Markup(style),  # our own file
            script_hash=assets.policy_hash(script),
        )
    )


def _ring(page: Page) -> Markup:
    segments = [
        charts.Segment(
            style=gate.wording.style, title=f"{gate.result.title}: {gate.wording.word}", required=gate.required
        )
        for gate in page.gates
    ]
    required = [gate for gate in page.gates if gate.required]
    met = sum(1 for gate in required if gate.wording.style == "passed")
    return charts.gate_ring(segments, f"{met}/{len(required)}", "required passed")


def _ridges(clips: Sequence[Voice]) -> Markup:
    rows = {clip.entry.language: clip for clip in reversed(clips) if clip.entry.language != "mul"}
    order = [clip.entry.language for clip in clips if clip.entry.language in rows]
    return charts.ridges(
        [charts.Ridge(label=language, windows=rows[language].clip.window_rms) for language in dict.fromkeys(order)]
    )


def _distribution(evidence: EvidenceView, page: Page, key: str) -> Markup:
    groups = [_group(evidence, profile, key) for profile in page.profiles if profile.name.startswith("B")]
    groups = groups or [_group(evidence, profile, key) for profile in page.profiles]
    if key == "rtf":
        return distribution(
            groups, "ratio", "Real-time factor of each request, by profile", Mark(value=1.0, label="as fast as speech")
        )
    return distribution(groups, "ms", "Time to first audio of each request, by profile")


def _group(evidence: EvidenceView, profile: ProfileView, key: str) -> Group:
    records = [record for record in evidence.records(profile=profile.name) if record.ok]
    return Group(
        label=profile.name,
        note=f"{words.grouped(len(records))} succeeded",
        values=[_ttfa_ms(record) if key == "ttfa" else _rtf(record) for record in records],
        median=profile.value(f"{key}.median"),
        median_upper=profile.upper(f"{key}.median"),
        p95=profile.value(f"{key}.p95"),
    )


def _ttfa_ms(record: RequestRecord) -> float:
    return (record.ttfa_ns or 0) / 1e6


def _rtf(record: RequestRecord) -> float:
    return record.wall_ns / 1e9 / record.audio_seconds


def _buffers(records: Sequence[RequestRecord], profile: ProfileView) -> Markup | None:
    """None where no stream had a second packet, so that there is nothing to wait for."""
    lines = [_in_hand(record) for record in records if len(record.packets) > 1]
    if not lines:
        return None
    return charts.buffers(lines, profile.name)


def _in_hand(record: RequestRecord) -> list[tuple[float, float]]:
    """(seconds since the first packet, seconds of audio already delivered and not yet played) at each later packet."""
    first = record.packets[0].at_ns
    return [
        (elapsed := (packet.at_ns - first) / 1e9, packet.first_sample / SAMPLE_RATE_HZ - elapsed)
        for packet in record.packets[1:]
    ]

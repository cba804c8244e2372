"""The client against a server that keeps the contract, and against one that breaks one rule at a time."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import uuid

import pytest

from qualification.bench.client import Observation, SpeechCall, fetch, open_for_speech, speak
from qualification.bench.clock import Clock
from qualification.bench.connection import Connection, Deadlines
from qualification.bench.target import parse_target
from qualification.errors import UsageError
from tests.qualification.fake_server import Behaviour, FakeServer, voice

FAST = Deadlines(connect=1.0, headers=0.4, silence=0.4, total=2.0)


def call(**changes: object) -> SpeechCall:
    values: dict[str, object] = {
        "request_id": str(uuid.uuid4()),
        "text": "a sentence of modest length, spoken twice",
        "voice_description": "calm",
        "language": "english",
        "seed": 7,
        "max_duration_seconds": 20.0,
        "sampling": {},
    }
    return SpeechCall(**{**values, **changes})  # type: ignore[arg-type]


async def ask(url: str, request: SpeechCall, deadlines: Deadlines = FAST) -> Observation:
    clock = Clock()
    opened = await open_for_speech(parse_target(url), clock, deadlines)
    return opened if isinstance(opened, Observation) else await speak(opened, request, clock)


def observe(behaviour: Behaviour, request: SpeechCall | None = None, deadlines: Deadlines = FAST) -> Observation:
    async def main() -> Observation:
        async with FakeServer(behaviour) as server:
            return await ask(server.url, request or call(), deadlines)

    return asyncio.run(main())


def test_a_good_stream_is_observed_whole() -> None:
    request = call()
    seen = observe(Behaviour(frame_seconds=0.01), request)
    assert (seen.outcome, seen.http_status, seen.finish_reason, seen.echoed_seed) == ("ok", 200, "stop", 7)
    frames = sum(packet.frames for packet in seen.packets)
    assert seen.pcm == voice(request.text, "calm", 7, frames).tobytes()
    assert seen.pcm_sha256 == hashlib.sha256(seen.pcm).hexdigest()
    assert seen.server_metrics is not None and seen.server_metrics.emitted_samples == frames * 1_920
    assert seen.packets[0].frames == 1 and seen.packets[-1].final
    assert seen.headers_ns is not None
    stamps = [seen.t0_ns, seen.headers_ns, *(packet.at_ns for packet in seen.packets), seen.end_ns]
    assert stamps == sorted(stamps)
    assert seen.packets[-1].at_ns - seen.packets[0].at_ns >= 0.01e9 * (frames - 1) * 0.9


def test_a_stream_in_small_chunks_is_the_same_stream() -> None:
    request = call()
    assert observe(Behaviour(fault="byte_by_byte"), request).pcm_sha256 == observe(Behaviour(), request).pcm_sha256


def test_the_ceiling_reads_length() -> None:
    seen = observe(Behaviour(), call(max_duration_seconds=0.16))
    assert (seen.outcome, seen.finish_reason, len(seen.packets)) == ("ok", "length", 2)


STREAM_FAULTS = {
    "wrong_content_type": "bad_content_type",
    "wrong_boundary": "bad_boundary",
    "gap": "position_gap",
    "no_end": "missing_end",
    "wrong_seed": "seed_not_echoed",
    "wrong_seed_header": "seed_not_echoed",
    "wrong_request_id": "wrong_request_id",
    "bare_line_feeds": "bad_boundary",
    "no_length": "bad_part_length",
    "wrong_length": "size_mismatch",
    "frames_lie": "size_mismatch",
    "fat_first_packet": "first_packet_size",
    "fat_packet": "packet_size",
    "no_final": "no_final_packet",
    "early_final": "packet_after_final",
    "second_start": "bad_end",
    "odd_start": "missing_start",
    "no_audio": "no_audio",
    "metrics_lie": "metrics_mismatch",
    "odd_reason": "bad_end",
    "duplicate_key": "bad_json",
    "doubled_header": "bad_part_header",
    "wrong_rate": "bad_audio_format",
    "unclosed": "truncated_body",
    "trailing_data": "trailing_data",
    "error_part": "internal_error",
}


@pytest.mark.parametrize("fault", STREAM_FAULTS)
def test_each_broken_rule_is_a_stream_error_with_its_code(fault: str) -> None:
    seen = observe(Behaviour(fault=fault))
    assert (seen.outcome, seen.error_code) == ("stream_error", STREAM_FAULTS[fault])
    assert seen.finish_reason is None and seen.end_ns > seen.t0_ns and seen.error_detail


@pytest.mark.parametrize("fault", ["dies_mid_stream", "closes_mid_stream"])
def test_a_lost_connection_keeps_the_packets_so_far(fault: str) -> None:
    seen = observe(Behaviour(fault=fault))
    assert (seen.outcome, seen.error_code) == ("transport_error", "connection_lost")
    assert len(seen.packets) == 1 and seen.pcm_sha256


@pytest.mark.parametrize(
    ("fault", "code"), [("silent_before_headers", "headers_timeout"), ("silent_after_start", "silence_timeout")]
)
def test_silence_is_a_timeout(fault: str, code: str) -> None:
    seen = observe(Behaviour(fault=fault))
    assert (seen.outcome, seen.error_code) == ("timeout", code)


def test_a_stream_that_trickles_for_ever_meets_the_total_deadline() -> None:
    seen = observe(Behaviour(frame_seconds=0.05), deadlines=Deadlines(connect=1, headers=1, silence=1, total=0.3))
    assert (seen.outcome, seen.error_code) == ("timeout", "total_timeout")
    assert seen.packets


def test_refusals_carry_the_problem_code() -> None:
    busy = observe(Behaviour(fault="busy"))
    assert (busy.outcome, busy.http_status, busy.error_code) == ("refused", 429, "capacity_exhausted")
    language = observe(Behaviour(), call(language="klingon"))
    assert (language.outcome, language.http_status, language.error_code) == ("refused", 422, "unsupported_language")


def test_more_audio_than_asked_for_is_a_violation() -> None:
    class Generous(FakeServer):
        def _pcm(self, request, fault):  # type: ignore[no-untyped-def]
            return super()._pcm({**request, "max_duration_seconds": 10.0}, fault)

    async def main() -> Observation:
        async with Generous() as server:
            return await ask(server.url, call(max_duration_seconds=0.16))

    assert asyncio.run(main()).error_code == "over_the_ceiling"


def test_nobody_listening_is_a_transport_error_that_sent_nothing() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    seen = asyncio.run(ask(f"http://127.0.0.1:{port}", call()))
    assert (seen.outcome, seen.error_code, seen.t0_ns) == ("transport_error", "connect_failed", seen.end_ns)


def test_something_that_is_not_http_is_named() -> None:
    async def main() -> Observation:
        async def rubbish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"\x00\x01 nonsense\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(rubbish, "127.0.0.1", 0)
        async with server:
            return await ask(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", call())

    seen = asyncio.run(main())
    assert (seen.outcome, seen.error_code) == ("transport_error", "malformed_http")


def test_t0_comes_after_the_connection_is_open_and_before_the_request_is_read() -> None:
    async def main() -> tuple[int, int, int]:
        clock = Clock()
        async with FakeServer() as server:
            connection = await Connection.open(parse_target(server.url), clock, FAST)
            opened_ns = clock.now_ns()
            await asyncio.sleep(0.05)
            seen = await speak(connection, call(), clock)
            assert seen.headers_ns is not None
            return opened_ns, seen.t0_ns, seen.headers_ns

    opened_ns, t0_ns, headers_ns = asyncio.run(main())
    assert opened_ns + 0.04e9 < t0_ns < headers_ns


def test_plain_answers_are_read_whole() -> None:
    async def main() -> None:
        async with FakeServer() as server:
            answer = await fetch(parse_target(server.url), "GET", "/v1/capabilities", clock=Clock(), deadlines=FAST)
            assert answer.status == 200 and answer.json()["max_concurrent_requests"] == 8

    asyncio.run(main())


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://u:p@h", "http://h?q=1", "localhost:80", "http://h:99999"]
)
def test_impossible_endpoints_are_refused(url: str) -> None:
    with pytest.raises(UsageError):
        parse_target(url)

"""A ticket numbers its packets and accounts for itself."""

from __future__ import annotations

import time

from engine.contract import SAMPLES_PER_FRAME, SpeechEnd, StopReason
from engine.prompt import PromptPlan
from engine.stream import BoundedStream
from engine.ticket import Ticket, now
from tests.engine.speech import audio, drain, ending, speech

PLAN = PromptPlan(text=(1,), codec=(None,), trailing=())


def take_all(ticket: Ticket, sizes: list[int]) -> list[object]:
    found: list[object] = []
    for index, frames in enumerate(sizes):
        ticket.deliver(bytes(2 * SAMPLES_PER_FRAME * frames), frames, final=index == len(sizes) - 1)
        found.append(ticket.stream.take(timeout=0))
    return found


def new_ticket() -> Ticket:
    request = speech()
    return Ticket(request=request, plan=PLAN, stream=BoundedStream(request.request_id, lambda: None))


def test_packets_are_contiguous_and_only_the_last_is_final() -> None:
    packets = take_all(new_ticket(), [1, 2, 4, 3])
    assert [(p.sequence, p.first_frame, p.frames, p.final) for p in audio(packets)] == [  # type: ignore[arg-type]
        (0, 0, 1, False), (1, 1, 2, False), (2, 3, 4, False), (3, 7, 3, True),
    ]  # fmt: skip


def test_the_account_counts_frames_samples_and_packets_and_orders_its_times() -> None:
    ticket = new_ticket()
    ticket.prefill_started = now()
    time.sleep(0.002)
    ticket.prefill_ended = ticket.first_frame = now()
    take_all(ticket, [1, 2])
    ticket.end(StopReason.EOS, reserved=77, on_host=True)
    end = ending(drain(ticket.stream))
    assert isinstance(end, SpeechEnd)
    assert end.reason is StopReason.EOS
    metrics = end.metrics
    assert (metrics.generated_codec_frames, metrics.emitted_samples, metrics.emitted_packets) == (3, 3 * 1_920, 2)
    assert metrics.prefill_microseconds >= 2_000
    times = [
        metrics.queue_microseconds, metrics.first_codec_frame_microseconds, metrics.first_audio_microseconds,
        metrics.wall_microseconds,
    ]  # fmt: skip
    assert times == sorted(times)
    assert metrics.first_codec_frame_microseconds >= metrics.queue_microseconds + metrics.prefill_microseconds - 1
    assert (metrics.peak_request_device_bytes, metrics.peak_request_host_bytes) == (None, 77)
    assert metrics.talker_gpu_microseconds is None  # not measured is never zero

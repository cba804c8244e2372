"""One admitted request on its way through the engine: what was asked, how it is delivered, when things happened."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from engine.contract import (
    SAMPLES_PER_FRAME,
    AudioPacket,
    SpeechEnd,
    SpeechFailure,
    SpeechMetrics,
    SpeechRequest,
    StopReason,
)
from engine.prompt import PromptPlan
from engine.stream import BoundedStream


def now() -> int:
    """Monotonic nanoseconds."""
    return time.perf_counter_ns()


@dataclass(kw_only=True, eq=False)
class Ticket:
    """Owned by the engine's thread, except `cancelled`, which any thread may set."""

    request: SpeechRequest
    plan: PromptPlan
    stream: BoundedStream
    submitted: int = field(default_factory=now)
    cancelled: bool = False
    spoilt: bool = False  # its audio is no audio
    in_flight: bool = False  # a packet is being decoded
    prefill_started: int = 0
    prefill_ended: int = 0
    first_frame: int = 0
    first_audio: int = 0
    frames: int = 0
    packets: int = 0

    def deliver(self, pcm: bytes, frames: int, *, final: bool) -> None:
        """Hand one packet to the listener."""
        if not self.packets:
            self.first_audio = now()
        self.stream.offer(
            AudioPacket(sequence=self.packets, first_frame=self.frames, frames=frames, pcm=pcm, final=final)
        )
        self.frames += frames
        self.packets += 1

    def end(self, reason: StopReason, *, reserved: int, on_host: bool) -> None:
        """Close the stream with the request's own account; its row reserves `reserved` bytes, on the host or not."""
        self.stream.finish(SpeechEnd(reason=reason, metrics=self._metrics(reserved, on_host=on_host)))

    def fail(self, reason: StopReason, code: str, detail: str) -> None:
        """Close the stream without success; `code` is a wire code, `detail` reaches the client."""
        self.stream.finish(SpeechFailure(reason=reason, code=code, detail=detail))

    def _metrics(self, reserved: int, *, on_host: bool) -> SpeechMetrics:
        return SpeechMetrics(
            queue_microseconds=(self.prefill_started - self.submitted) // 1_000,
            prefill_microseconds=(self.prefill_ended - self.prefill_started) // 1_000,
            first_codec_frame_microseconds=(self.first_frame - self.submitted) // 1_000,
            first_audio_microseconds=(self.first_audio - self.submitted) // 1_000,
            wall_microseconds=(now() - self.submitted) // 1_000,
            generated_codec_frames=self.frames,
            emitted_samples=self.frames * SAMPLES_PER_FRAME,
            emitted_packets=self.packets,
            peak_request_device_bytes=None if on_host else reserved,
            peak_request_host_bytes=reserved if on_host else None,
        )

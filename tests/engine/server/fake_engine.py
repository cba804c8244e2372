"""A speech engine without a model: same contract, counted steps, and faults on demand.

One thread steps all rows in lockstep, as the real engine does. A stream holds one undelivered packet, and a row whose
packet has not been taken is parked. With `gate`, each frame step needs a permit, so a test decides how far it gets.
Words in a request's text steer its row: `frames=30` (natural end), `fail_at=3`, `oom_at=3`, `die_at=3` (the engine
fails), `hang_at=3` (the thread blocks, with the lock free), `deaf=1` (cancellation is ignored).
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable
from uuid import UUID

from engine.contract import (
    CLOSE_SECONDS,
    FIRST_PACKET_FRAMES,
    LATER_PACKET_FRAMES,
    SAMPLES_PER_FRAME,
    AudioPacket,
    EngineCounters,
    EngineInfo,
    EngineState,
    SpeechEnd,
    SpeechEvent,
    SpeechFailure,
    SpeechMetrics,
    SpeechRequest,
    StopReason,
)
from engine.errors import CapacityExhausted, EngineUnavailable, RequestIdInUse

DEFAULT_FRAMES = 6
STEPS_KEPT = 1_000
FRAME_BYTES = SAMPLES_PER_FRAME * 2


def frame_pcm(seed: int, frame: int) -> bytes:
    """3,840 bytes that depend on seed and frame alone."""
    return hashlib.shake_128(f"{seed}:{frame}".encode()).digest(FRAME_BYTES)


def speech_pcm(seed: int, frames: int) -> bytes:
    return b"".join(frame_pcm(seed, frame) for frame in range(frames))


class FakeStream:
    """One undelivered packet at most, then one last event."""

    def __init__(self, request: SpeechRequest, changed: threading.Condition) -> None:
        self.request = request
        self.packet: AudioPacket | None = None
        self.last: SpeechEvent | None = None
        self._changed = changed
        self._wake: Callable[[], None] = lambda: None

    @property
    def request_id(self) -> UUID:
        return self.request.request_id

    def take(self, timeout: float | None = None) -> SpeechEvent | None:
        with self._changed:
            self._changed.wait_for(lambda: self.packet is not None or self.last is not None, timeout)
            if self.packet is not None:
                packet, self.packet = self.packet, None
                self._changed.notify_all()
                return packet
            last, self.last = self.last, None
            return last

    def notify(self, wake: Callable[[], None]) -> None:
        with self._changed:
            self._wake = wake

    def put(self, event: SpeechEvent) -> None:
        """Called by the engine with the lock held."""
        if isinstance(event, AudioPacket):
            assert self.packet is None, "the engine put a packet onto an untaken one"
            self.packet = event
        else:
            self.last = event
        self._changed.notify_all()
        self._wake()


class Row:
    """The state of one request."""

    def __init__(self, stream: FakeStream) -> None:
        self.stream = stream
        self.steps = 0
        self.sent_frames = 0
        self.sequence = 0
        self.submitted = time.perf_counter()
        self.first_audio = 0.0
        self.cancelled = False
        self.orders = {key: int(value) for key, value in re.findall(r"\b(\w+)=(\d+)", stream.request.text)}
        self.natural = self.orders.get("frames", DEFAULT_FRAMES)
        self.total = min(self.natural, stream.request.max_frames)

    @property
    def due(self) -> int:
        """Frames of the packet that waits to be handed over; 0 when none does."""
        waiting = self.steps - self.sent_frames
        size = FIRST_PACKET_FRAMES if self.sequence == 0 else LATER_PACKET_FRAMES
        return waiting if waiting >= size or (waiting and self.steps == self.total) else 0


class FakeEngine:
    """See the module. `steps_of` and `counters` say what it has done; `puts` how many packets left."""

    def __init__(
        self,
        *,
        slots: int = 2,
        frame_seconds: float = 0.0,
        start_seconds: float = 0.0,
        gate: threading.Semaphore | None = None,
        max_codec_frames: int = 1_500,
        start_error: Exception | None = None,
    ) -> None:
        self.steps_of: dict[UUID, int] = {}
        self.closed = False
        self.unhang = threading.Event()
        self._slots = slots
        self._frame_seconds = frame_seconds
        self._start_seconds = start_seconds
        self._start_error = start_error
        self._gate = gate
        self._max_codec_frames = max_codec_frames
        self._changed = threading.Condition()
        self._rows: dict[UUID, Row] = {}
        self._state = EngineState.STARTING
        self._frame_steps = 0
        self._rows_advanced = 0
        self._thread: threading.Thread | None = None

    @property
    def info(self) -> EngineInfo:
        return EngineInfo(
            model="assay-fake",
            device="cpu",
            precision="fp32",
            max_concurrent_requests=self._slots,
            max_codec_frames=self._max_codec_frames,
        )

    @property
    def state(self) -> EngineState:
        return self._state

    @property
    def active_requests(self) -> int:
        return len(self._rows)

    @property
    def counters(self) -> EngineCounters:
        return EngineCounters(frame_steps=self._frame_steps, rows_advanced=self._rows_advanced)

    def start(self) -> None:
        time.sleep(self._start_seconds)
        if self._start_error is not None:
            raise self._start_error
        self._thread = threading.Thread(target=self._run, name="fake-engine", daemon=True)
        self._thread.start()
        self._state = EngineState.READY

    def submit(self, request: SpeechRequest) -> FakeStream:
        with self._changed:
            if self._state is not EngineState.READY:
                raise EngineUnavailable("backend_unavailable", f"the engine is {self._state.value}")
            if request.request_id in self._rows:
                raise RequestIdInUse(request.request_id)
            if len(self._rows) >= self._slots:
                raise CapacityExhausted(self._slots)
            stream = FakeStream(request, self._changed)
            self._rows[request.request_id] = Row(stream)
            self.steps_of[request.request_id] = 0
            if len(self.steps_of) > STEPS_KEPT:  # a soak must not find the fake's own growth
                del self.steps_of[next(iter(self.steps_of))]
            self._changed.notify_all()
            return stream

    def cancel(self, request_id: UUID) -> bool:
        with self._changed:
            row = self._rows.get(request_id)
            if row is None:
                return False
            row.cancelled = "deaf" not in row.orders
            self._changed.notify_all()
            return True

    def close(self, grace_seconds: float = 30.0) -> bool:
        with self._changed:
            self.closed = True
            self._state = EngineState.DRAINING
            self._changed.wait_for(lambda: not self._rows, grace_seconds)
            for row in list(self._rows.values()):
                self._fail(row, StopReason.FAILED, "server_shutting_down", "the engine was closed")
            self._changed.notify_all()
        if self._thread is None:
            return True
        self._thread.join(CLOSE_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self.closed:
            with self._changed:
                self._hand_over()
                self._changed.wait_for(lambda: self.closed or self._work(), 0.5)
                self._hand_over()
                rows = [row for row in self._rows.values() if self._can_step(row)]
                hang = any(row.orders.get("hang_at") == row.steps for row in rows)
            if hang:
                self.unhang.wait(120)
                continue
            if rows and self._permitted():
                time.sleep(self._frame_seconds)
                with self._changed:
                    self._step(rows)
            elif rows:
                time.sleep(0.001)

    def _permitted(self) -> bool:
        return self._gate is None or self._gate.acquire(blocking=False)

    def _work(self) -> bool:
        return any(
            row.cancelled or self._can_step(row) or (row.due and not row.stream.packet) for row in self._rows.values()
        )

    def _can_step(self, row: Row) -> bool:
        return not row.due and row.steps < row.total

    def _step(self, rows: list[Row]) -> None:
        self._frame_steps += 1
        for row in rows:
            if row.stream.request_id not in self._rows or row.cancelled:
                continue
            fault = next((name for name in ("fail_at", "oom_at", "die_at") if row.orders.get(name) == row.steps), None)
            if fault == "die_at":
                self._die()
                return
            if fault is not None:
                detail = "out of memory" if fault == "oom_at" else "the step failed"
                self._fail(row, StopReason.FAILED, "internal_error", detail)
                continue
            row.steps += 1
            self._rows_advanced += 1
            self.steps_of[row.stream.request_id] = row.steps

    def _hand_over(self) -> None:
        for row in list(self._rows.values()):
            if row.cancelled:
                self._fail(row, StopReason.CANCELLED, "request_cancelled", "cancelled")
            elif row.due and row.stream.packet is None:
                self._emit(row, row.due)

    def _emit(self, row: Row, frames: int) -> None:
        first = row.sent_frames
        pcm = b"".join(frame_pcm(row.stream.request.seed, frame) for frame in range(first, first + frames))
        final = row.steps == row.total
        row.first_audio = row.first_audio or time.perf_counter()
        row.stream.put(AudioPacket(sequence=row.sequence, first_frame=first, frames=frames, pcm=pcm, final=final))
        row.sent_frames += frames
        row.sequence += 1
        if final:
            del self._rows[row.stream.request_id]
            reason = StopReason.EOS if row.natural <= row.stream.request.max_frames else StopReason.MAX_FRAMES
            row.stream.put(SpeechEnd(reason=reason, metrics=_metrics(row)))

    def _fail(self, row: Row, reason: StopReason, code: str, detail: str) -> None:
        self._rows.pop(row.stream.request_id, None)
        row.stream.put(SpeechFailure(reason=reason, code=code, detail=detail))

    def _die(self) -> None:
        self._state = EngineState.FAILED
        for row in list(self._rows.values()):
            self._fail(row, StopReason.FAILED, "backend_unavailable", "the device failed")


def _metrics(row: Row) -> SpeechMetrics:
    now = time.perf_counter()
    first = round((row.first_audio - row.submitted) * 1e6)
    return SpeechMetrics(
        queue_microseconds=0,
        prefill_microseconds=0,
        first_codec_frame_microseconds=first,
        first_audio_microseconds=first,
        wall_microseconds=round((now - row.submitted) * 1e6),
        generated_codec_frames=row.steps,
        emitted_samples=row.steps * SAMPLES_PER_FRAME,
        emitted_packets=row.sequence,
    )

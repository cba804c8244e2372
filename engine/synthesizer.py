"""The engine: one thread that owns the device, and the thread-safe door in front of it.

Callers submit and cancel; the engine's thread loads the model, warms it up with one real request, and then repeats one turn: collect what
arrived, prefill newcomers, advance the lockstep batch by a frame, decode and hand over the packets that are due, retire what ended. A prefill that
fails takes only its own request with it. A step that fails takes the requests that were in it; the engine then proves itself with a request of
its own before it goes on, and turns FAILED when that fails too.
"""

from __future__ import annotations

import logging
import threading
from uuid import UUID, uuid4

import torch

from engine.checkpoint import load_model
from engine.contract import (
    EngineCounters,
    EngineInfo,
    EngineState,
    SpeechEvent,
    SpeechFailure,
    SpeechRequest,
    StopReason,
)
from engine.device import resolve_device, resolve_precision, weight_dtype
from engine.errors import CapacityExhausted, EngineError, EngineUnavailable, InvalidRequest, RequestIdInUse
from engine.prompt import PromptBuilder
from engine.prompt_mode import TextMode
from engine.rows import RowLimits
from engine.runner import Runner
from engine.scheduler import PacketJob, Scheduler
from engine.settings import EngineSettings
from engine.stream import BoundedStream
from engine.ticket import Ticket, now

log = logging.getLogger("engine")

WARM_UP_FRAMES = 6  # reaches every packet size


class Synthesizer:
    """A `SpeechEngine` over one model on one device."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._device = resolve_device(settings.device)
        self._precision = resolve_precision(settings.precision, self._device)
        self._state = EngineState.STARTING
        self._wake = threading.Condition()
        self._arrivals: list[Ticket] = []
        self._live: dict[UUID, Ticket] = {}
        self._stopping = False
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._counters = EngineCounters()
        self._scheduler: Scheduler[Ticket] = Scheduler(capacity=settings.rows)
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)
        self._runner: Runner
        self._prompts: PromptBuilder

    # The door: any thread.

    @property
    def info(self) -> EngineInfo:
        return EngineInfo(
            model=self._settings.display_name,
            device=str(self._device),
            precision=self._precision.value,
            max_concurrent_requests=self._settings.rows,
            max_codec_frames=self._settings.max_frames,
        )

    @property
    def state(self) -> EngineState:
        return self._state

    @property
    def active_requests(self) -> int:
        return len(self._live)

    @property
    def counters(self) -> EngineCounters:
        return self._counters

    def start(self) -> None:
        """Load, warm up and return once READY.

        Raises:
            EngineError: what failed and how to mend it.
        """
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def submit(self, request: SpeechRequest) -> BoundedStream:
        """See `SpeechEngine.submit`."""
        self._require_ready()
        plan = self._prompts.plan(
            text=request.text,
            instruction=request.voice_description,
            language=request.language,
            mode=self._settings.text_mode,
        )
        self._require_fit(plan.length, len(plan.trailing), request.max_frames)
        ticket = Ticket(request=request, plan=plan, stream=BoundedStream(request.request_id, self._nudge))
        with self._wake:
            self._require_ready()
            if request.request_id in self._live:
                raise RequestIdInUse(request.request_id)
            if len(self._live) >= self._settings.rows:
                raise CapacityExhausted(self._settings.rows)
            self._live[request.request_id] = ticket
            self._arrivals.append(ticket)
            self._wake.notify_all()
        return ticket.stream

    def cancel(self, request_id: UUID) -> bool:
        """See `SpeechEngine.cancel`."""
        with self._wake:
            ticket = self._live.get(request_id)
            if ticket is None:
                return False
            ticket.cancelled = True
            self._wake.notify_all()
        return True

    def close(self, grace_seconds: float = 30.0) -> None:
        """See `SpeechEngine.close`."""
        with self._wake:
            if self._state is not EngineState.FAILED:
                self._state = EngineState.DRAINING
            self._wake.wait_for(lambda: not self._live, grace_seconds)
            self._stopping = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _require_ready(self) -> None:
        if self._state is EngineState.DRAINING:
            raise EngineUnavailable("server_shutting_down", "the engine is shutting down; retry elsewhere")
        if self._state is not EngineState.READY:
            raise EngineUnavailable("backend_unavailable", f"the engine is {self._state.value}; retry when it is ready")

    def _require_fit(self, prompt: int, trailing: int, frames: int) -> None:
        if frames > self._settings.max_frames:
            raise InvalidRequest(
                "invalid_max_duration",
                f"{frames} frames are asked for, the engine makes at most {self._settings.max_frames}; ask for less",
            )
        if max(prompt, trailing) + frames > self._settings.positions:
            raise InvalidRequest(
                "invalid_text",
                f"the prompt needs {prompt} positions and the audio {frames}, the engine has {self._settings.positions}; "
                "shorten the text or lower max_duration_seconds",
            )

    def _nudge(self) -> None:
        with self._wake:
            self._wake.notify_all()

    # The engine's thread.

    def _main(self) -> None:
        try:
            self._prepare()
        except Exception as error:  # noqa: BLE001  # whatever it is, the caller of start() must hear of it
            self._failure = (
                error if isinstance(error, EngineError) else EngineError(f"the engine cannot start: {error}")
            )
            self._failure.__cause__ = None if self._failure is error else error
            self._state = EngineState.FAILED
            self._started.set()
            return
        if self._state is EngineState.STARTING:
            self._state = EngineState.READY
        self._started.set()
        while self._collect():
            try:
                self._turn()
            except Exception:
                log.exception("a step failed")
                self._recover()
        self._fail_all("server_shutting_down", "the engine is shutting down")

    def _prepare(self) -> None:
        settings = self._settings
        if settings.threads and self._device.type == "cpu":
            torch.set_num_threads(settings.threads)
        model = load_model(
            settings.model,
            device=self._device,
            dtype=weight_dtype(self._precision),
            allow_symlinks=settings.allow_symlinks,
        )
        trailing = settings.positions if settings.text_mode is TextMode.STREAMING else 0
        limits = RowLimits(
            rows=settings.rows, positions=settings.positions, frames=settings.max_frames, trailing=trailing
        )
        self._prompts = model.prompts
        self._runner = Runner(model, limits)
        self._prove()

    def _prove(self) -> None:
        """Run one real request through prefill, frames, sampling and codec."""
        request = SpeechRequest(
            request_id=uuid4(),
            text="One real request before the first.",
            voice_description="A calm voice.",
            seed=0,
            max_frames=min(WARM_UP_FRAMES, self._settings.max_frames),
        )
        plan = self._prompts.plan(
            text=request.text, instruction=request.voice_description, mode=self._settings.text_mode
        )
        events: list[SpeechEvent] = []
        stream = BoundedStream(request.request_id, lambda: None)
        stream.notify(lambda: events.extend(filter(None, [stream.take(timeout=0)])))
        self._admit(Ticket(request=request, plan=plan, stream=stream))
        while self._scheduler.tracks:
            self._turn()
        if not events or isinstance(events[-1], SpeechFailure):
            raise EngineError("the engine's own warm-up request failed; see the log")

    def _collect(self) -> bool:
        """Wait for work; take in what arrived. False when the engine is to stop."""
        with self._wake:
            self._wake.wait_for(lambda: self._stopping or self._arrivals or self._can_move())
            if self._stopping:
                return False
            arrivals, self._arrivals = self._arrivals, []
        for ticket in arrivals:
            if not ticket.cancelled:
                self._admit(ticket)
            else:
                self._fail(ticket, StopReason.CANCELLED, "request_cancelled", "cancelled before it began")
        return True

    def _can_move(self) -> bool:
        scheduler = self._scheduler
        if any(track.owner.cancelled for track in scheduler.tracks):
            return True
        return bool(scheduler.advancing()) or bool(scheduler.due())

    def _admit(self, ticket: Ticket) -> None:
        """Prefill one newcomer; its failure is its own."""
        request = ticket.request
        row = self._scheduler.admit(ticket, max_frames=request.max_frames, has_room=lambda: ticket.stream.has_room)
        ticket.prefill_started = now()
        try:
            self._runner.prefill(row, ticket.plan, seed=request.seed, sampling=request.sampling)
        except Exception:
            log.exception("prefill failed")
            self._retire(row)
            self._fail(ticket, StopReason.FAILED, "internal_error", "the engine could not process this request")
            return
        ticket.prefill_ended = now()

    def _turn(self) -> None:
        """One frame of everybody who may advance, then the packets that are due."""
        self._drop_cancelled()
        self._step()
        for job in self._scheduler.due():
            self._decode(job)
        self._finish_delivered()

    def _drop_cancelled(self) -> None:
        for row in reversed(range(len(self._scheduler.tracks))):
            ticket = self._scheduler.tracks[row].owner
            if ticket.cancelled:
                self._retire(row)
                self._fail(ticket, StopReason.CANCELLED, "request_cancelled", "the request was cancelled")

    def _step(self) -> None:
        advance = self._scheduler.advancing()
        if not advance:
            return
        following = self._runner.step(advance)
        self._scheduler.commit(advance, [code == self._runner.eos for code in following])
        moment = now()
        for track, advanced in zip(self._scheduler.tracks, advance, strict=False):
            if advanced and track.frames == 1:
                track.owner.first_frame = moment
        self._counters = EngineCounters(
            frame_steps=self._counters.frame_steps + 1,
            rows_advanced=self._counters.rows_advanced + sum(advance),
            graph_replays=self._counters.graph_replays,
        )

    def _decode(self, job: PacketJob) -> None:
        tracks = [self._scheduler.tracks[row] for row in job.rows]
        packets = self._runner.decode(job.rows, [track.emitted for track in tracks], job.frames)
        for track, pcm in zip(tracks, packets, strict=True):
            track.emitted += job.frames
            track.packets += 1
            track.owner.deliver(pcm, job.frames, final=track.delivered)

    def _finish_delivered(self) -> None:
        for row in reversed(range(len(self._scheduler.tracks))):
            track = self._scheduler.tracks[row]
            if track.delivered and track.stop is not None:
                self._retire(row)
                self._forget(track.owner)
                on_host = self._device.type == "cpu"
                reserved = self._runner.bytes_per_row
                track.owner.end(
                    track.stop, device_bytes=None if on_host else reserved, host_bytes=reserved if on_host else None
                )

    def _retire(self, row: int) -> None:
        source = self._scheduler.release(row)
        if source is not None:
            self._runner.move(source, row)

    def _recover(self) -> None:
        """After a failed step: its requests fail, and the engine proves itself or turns FAILED."""
        tickets = [track.owner for track in self._scheduler.tracks]
        self._scheduler.tracks.clear()
        for ticket in tickets:
            self._fail(ticket, StopReason.FAILED, "internal_error", "the engine failed while it made this audio")
        try:
            self._prove()
        except Exception:
            log.exception("the engine does not recover")
            with self._wake:
                self._state = EngineState.FAILED
            self._fail_all("backend_unavailable", "the engine has failed; restart it")

    def _fail_all(self, code: str, detail: str) -> None:
        with self._wake:
            tickets = list(self._live.values())
        self._scheduler.tracks.clear()
        for ticket in tickets:
            self._fail(ticket, StopReason.FAILED, code, detail)

    def _fail(self, ticket: Ticket, reason: StopReason, code: str, detail: str) -> None:
        self._forget(ticket)
        ticket.stream.finish(SpeechFailure(reason=reason, code=code, detail=detail))

    def _forget(self, ticket: Ticket) -> None:
        with self._wake:
            self._live.pop(ticket.request.request_id, None)
            self._wake.notify_all()

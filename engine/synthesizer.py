"""The engine: one thread that owns the device, and the thread-safe door in front of it.

Callers submit and cancel. The engine's thread loads the model, warms it up with one real request, and then repeats:
wait for something to do, take in what arrived, one turn of the batch. A turn that fails takes the requests that were
in it; the engine then proves itself with a request of its own before it goes on, and turns FAILED when that fails
too.
"""

from __future__ import annotations

import logging
import threading
from uuid import UUID, uuid4

import torch

from engine.batch import Batch
from engine.checkpoint import LoadedModel, load_model
from engine.contract import (
    CLOSE_SECONDS,
    LANGUAGES,
    EngineCounters,
    EngineInfo,
    EngineState,
    SpeechEvent,
    SpeechFailure,
    SpeechRequest,
    StopReason,
)
from engine.device import cpu_threads, make_runner, resolve_device, resolve_precision, weight_dtype
from engine.errors import (
    CapacityExhausted,
    EngineError,
    EngineUnavailable,
    InvalidRequest,
    RequestIdInUse,
    UsageError,
)
from engine.prompt import PromptBuilder, PromptPlan
from engine.prompt_mode import TextMode
from engine.rows import RowLimits
from engine.settings import EngineSettings, Precision
from engine.stream import BoundedStream
from engine.ticket import Ticket

log = logging.getLogger("engine")

WARM_UP_FRAMES = 8  # reaches every packet size


class Synthesizer:
    """A `SpeechEngine` over one model on one device."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._device = resolve_device(settings.device)
        self._precision = resolve_precision(settings.precision, self._device)
        self._state = EngineState.STARTING
        self._wake = threading.Condition()
        self._arrivals: list[Ticket] = []  # admitted, not yet on a row
        self._live: dict[UUID, Ticket] = {}
        self._stopping = False
        self._started = threading.Event()
        self._failure: EngineError | None = None
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)
        self._prompts: PromptBuilder | None = None
        self._batch: Batch | None = None

    # The door: any thread.

    @property
    def info(self) -> EngineInfo:
        """What the engine offers; the languages are the checkpoint's own once it is loaded."""
        return EngineInfo(
            model=self._settings.display_name,
            device=str(self._device),
            precision=self._precision.value,
            max_concurrent_requests=self._settings.rows,
            max_codec_frames=self._settings.max_frames,
            languages=self._prompts.languages if self._prompts else LANGUAGES,
        )

    @property
    def state(self) -> EngineState:
        return self._state

    @property
    def active_requests(self) -> int:
        return len(self._live)

    @property
    def counters(self) -> EngineCounters:
        return self._batch.counters if self._batch else EngineCounters()

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
        plan = self._plan(request)
        self._require_fit(plan, request.max_frames)
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

    def close(self, grace_seconds: float = 30.0) -> bool:
        """See `SpeechEngine.close`."""
        with self._wake:
            if self._state is not EngineState.FAILED:
                self._state = EngineState.DRAINING
            self._wake.wait_for(lambda: not self._live, grace_seconds)
            self._stopping = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            return True
        log.error("the device does not come back; the engine's thread is left behind")
        with self._wake:
            self._state = EngineState.FAILED
            left = list(self._live.values())
        self._fail(left, "backend_unavailable", "the engine has failed; restart it")
        return False

    def _require_ready(self) -> None:
        if self._state is EngineState.DRAINING:
            raise EngineUnavailable("server_shutting_down", "the engine is shutting down; retry elsewhere")
        if self._state is not EngineState.READY:
            raise EngineUnavailable("backend_unavailable", f"the engine is {self._state.value}; retry when it is ready")

    def _plan(self, request: SpeechRequest) -> PromptPlan:
        assert self._prompts is not None, "plans are made once the model is loaded"
        return self._prompts.plan(
            text=request.text,
            instruction=request.voice_description,
            language=request.language,
            mode=self._settings.text_mode,
        )

    def _require_fit(self, plan: PromptPlan, frames: int) -> None:
        limit, positions = self._settings.max_frames, self._settings.positions
        if frames > limit:
            raise InvalidRequest(
                "invalid_max_duration", f"{frames} frames are asked for, the engine makes at most {limit}; ask for less"
            )
        if plan.length + frames >= positions or len(plan.trailing) > positions:
            needed = max(plan.length, len(plan.trailing))
            raise InvalidRequest(
                "invalid_text",
                f"the prompt needs {needed} positions and the audio {frames}, the engine has {positions - 1}; "
                "shorten the text or lower max_duration_seconds",
            )

    def _nudge(self) -> None:
        with self._wake:
            self._wake.notify_all()

    # The engine's thread.

    def _main(self) -> None:
        try:
            batch = self._prepare()
        except Exception as error:  # noqa: BLE001  # whatever it is, the caller of start() must hear of it
            self._cannot_start(error)
            return
        with self._wake:
            if self._state is EngineState.STARTING:
                self._state = EngineState.READY
        self._started.set()
        while (arrivals := self._wait(batch)) is not None:
            try:
                for ticket in arrivals:
                    batch.admit(ticket)
                batch.turn()
            except Exception:
                log.exception("a turn failed")
                self._recover(batch)
        self._fail_all(batch, "server_shutting_down", "the engine is shutting down")

    def _cannot_start(self, error: Exception) -> None:
        if isinstance(error, EngineError):
            self._failure = error
        else:
            self._failure = EngineError(f"the engine cannot start: {error}")
            self._failure.__cause__ = error
        with self._wake:
            self._state = EngineState.FAILED
        self._started.set()

    def _prepare(self) -> Batch:
        settings = self._settings
        model = load_model(
            settings.model,
            device=self._device,
            dtype=weight_dtype(self._precision, self._device),
            allow_symlinks=settings.allow_symlinks,
        )
        self._check_reach(model)
        if self._device.type == "cpu":
            torch.set_num_threads(settings.threads or cpu_threads(model.talker.config.transformer.hidden))
        trailing = settings.positions if settings.text_mode is TextMode.STREAMING else 0
        limits = RowLimits(
            rows=settings.rows, positions=settings.positions, frames=settings.max_frames, trailing=trailing
        )
        self._prompts = model.prompts
        self._batch = Batch(
            make_runner(model, limits, int8=self._precision is Precision.INT8),
            capacity=settings.rows,
            on_leave=self._forget,
        )
        self._prove(self._batch)
        return self._batch

    def _check_reach(self, model: LoadedModel) -> None:
        """Refuse settings beyond the positions that the networks were made for."""
        talker, codec = model.talker.config.transformer, model.codec.config.transformer
        if self._settings.positions > talker.max_positions:
            raise UsageError(f"the talker reaches {talker.max_positions} positions; lower --max-positions to that")
        if self._settings.max_frames > codec.max_positions:
            raise UsageError(f"the codec reaches {codec.max_positions} frames; lower --max-frames to that")

    def _prove(self, batch: Batch) -> None:
        """Run one real request through prefill, frames, sampling and codec."""
        request = SpeechRequest(
            request_id=uuid4(),
            text="One real request before the first.",
            voice_description="A calm voice.",
            seed=0,
            max_frames=min(WARM_UP_FRAMES, self._settings.max_frames),
        )
        plan = self._plan(request)
        if plan.length + request.max_frames >= self._settings.positions:
            raise UsageError(
                f"{self._settings.positions} positions are too few for one sentence; raise --max-positions"
            )
        events: list[SpeechEvent] = []
        stream = BoundedStream(request.request_id, lambda: None)
        stream.notify(lambda: events.extend(filter(None, [stream.take(timeout=0)])))
        batch.admit(Ticket(request=request, plan=plan, stream=stream))
        while not batch.empty:
            batch.turn()
        if not events or isinstance(events[-1], SpeechFailure):
            raise EngineError("the engine's own warm-up request failed; see the log")

    def _wait(self, batch: Batch) -> list[Ticket] | None:
        """Wait for work and return the newcomers; None when the engine is to stop."""
        with self._wake:
            self._wake.wait_for(lambda: self._stopping or self._arrivals or batch.can_move)
            if self._stopping:
                return None
            arrivals, self._arrivals = self._arrivals, []
            return arrivals

    def _recover(self, batch: Batch) -> None:
        """After a failed turn: its requests fail, and the engine proves itself or turns FAILED."""
        with self._wake:
            struck = [ticket for ticket in self._live.values() if ticket not in self._arrivals]
        batch.drop()
        self._fail(struck, "internal_error", "the engine failed while it made this audio")
        try:
            self._prove(batch)
        except Exception:
            log.exception("the engine does not recover")
            with self._wake:
                self._state = EngineState.FAILED
            self._fail_all(batch, "backend_unavailable", "the engine has failed; restart it")

    def _fail_all(self, batch: Batch, code: str, detail: str) -> None:
        batch.drop()
        with self._wake:
            everybody = list(self._live.values())
            self._arrivals.clear()
        self._fail(everybody, code, detail)

    def _fail(self, tickets: list[Ticket], code: str, detail: str) -> None:
        for ticket in tickets:
            self._forget(ticket)
            ticket.fail(StopReason.FAILED, code, detail)

    def _forget(self, ticket: Ticket) -> None:
        with self._wake:
            self._live.pop(ticket.request.request_id, None)
            self._wake.notify_all()

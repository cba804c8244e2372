"""The vocabulary that the engine, its server and its command line share. No torch here.

Sources: the wire contract (field names, limits, defaults) and the published model (rates, languages).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable
from uuid import UUID

from engine.errors import InvalidRequest

SAMPLE_RATE_HZ = 24_000
SAMPLES_PER_FRAME = 1_920
FRAMES_PER_SECOND = SAMPLE_RATE_HZ / SAMPLES_PER_FRAME  # 12.5, never 12.0
MODEL_KIND = "voice_design"

MAX_TEXT_BYTES = 32_768
MAX_VOICE_DESCRIPTION_BYTES = 4_096
MAX_SEED = 2**53 - 1
MIN_DURATION_SECONDS = 0.08
DEFAULT_DURATION_SECONDS = 120.0
FIRST_PACKET_FRAMES = 1
LATER_PACKET_FRAMES = 4

CLOSE_SECONDS = 4.0  # after the grace, how long `SpeechEngine.close` waits for a step under way

AUTO = "auto"
EXPLICIT_LANGUAGES = (
    "chinese", "english", "japanese", "korean", "german", "french", "russian", "portuguese", "spanish", "italian",
)  # fmt: skip
LANGUAGES = (AUTO, *EXPLICIT_LANGUAGES)


class StopReason(StrEnum):
    """Why a request stopped; set where it is decided."""

    EOS = "stop"  # the talker drew codec EOS by itself
    MAX_FRAMES = "length"  # the request's own ceiling
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class StageSampling:
    """How one stage (talker or predictor) draws a code. `top_k` 0 and `top_p` 1 switch the filter off."""

    strategy: Literal["sample", "greedy"] = "sample"
    temperature: float = 0.9
    top_p: float = 1.0
    top_k: int = 50

    def __post_init__(self) -> None:
        _require(0.01 <= self.temperature <= 2.0, "invalid_sampling", "temperature must be within 0.01 and 2")
        _require(0.0 < self.top_p <= 1.0, "invalid_sampling", "top_p must be above 0 and at most 1")
        _require(0 <= self.top_k <= 3_072, "invalid_sampling", "top_k must be within 0 and 3072")

    @property
    def greedy(self) -> bool:
        return self.strategy == "greedy"


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling of one request: talker, predictor, and the talker's repetition penalty."""

    talker: StageSampling = field(default_factory=StageSampling)
    predictor: StageSampling = field(default_factory=StageSampling)
    repetition_penalty: float = 1.05

    def __post_init__(self) -> None:
        _require(
            0.1 <= self.repetition_penalty <= 2.0, "invalid_sampling", "repetition_penalty must be within 0.1 and 2"
        )
        _require(self.predictor.top_k <= 2_048, "invalid_sampling", "predictor.top_k must be within 0 and 2048")


@dataclass(frozen=True, kw_only=True)
class SpeechRequest:
    """One utterance to speak. Values are checked here, so that HTTP and command line refuse alike.

    Raises:
        InvalidRequest: with the wire code of the offending field.
    """

    request_id: UUID
    text: str
    voice_description: str
    seed: int
    max_frames: int
    language: str = AUTO
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        _check_text(self.text, "text", MAX_TEXT_BYTES, "invalid_text")
        _check_text(
            self.voice_description, "voice_description", MAX_VOICE_DESCRIPTION_BYTES, "invalid_voice_description"
        )
        _require(
            self.language in LANGUAGES,
            "unsupported_language",
            f"language {self.language!r} is not one of {', '.join(LANGUAGES)}",
        )
        _require(0 <= self.seed <= MAX_SEED, "invalid_seed", f"seed must be within 0 and {MAX_SEED}")
        _require(self.max_frames >= 1, "invalid_max_duration", "max_duration_seconds must allow at least one frame")


def frames_for(seconds: float) -> int:
    """Codec frames that cover `seconds` of audio (12.5 frames a second, rounded up)."""
    exact = Fraction(repr(seconds))  # 0.56 as written: a double times 12.5 would round up to 8 frames, not 7
    return math.ceil(exact * SAMPLE_RATE_HZ / SAMPLES_PER_FRAME)


@dataclass(frozen=True, kw_only=True)
class AudioPacket:
    """Consecutive PCM of one request: `frames` x 1,920 samples, signed 16-bit little-endian mono."""

    sequence: int
    first_frame: int
    frames: int
    pcm: bytes
    final: bool

    @property
    def samples(self) -> int:
        return self.frames * SAMPLES_PER_FRAME


@dataclass(frozen=True, kw_only=True)
class SpeechMetrics:
    """The engine's own account of one request. Times in microseconds, sizes in bytes.

    `queue` is submission to prefill, `prefill` its duration; `first_codec_frame`, `first_audio` and `wall` count from
    submission. The peaks are the memory that the request's row reserves, on the device and on the host.
    `None` means not measured on this device, never zero by default.
    """

    queue_microseconds: int
    prefill_microseconds: int
    first_codec_frame_microseconds: int
    first_audio_microseconds: int
    wall_microseconds: int
    generated_codec_frames: int
    emitted_samples: int
    emitted_packets: int
    talker_gpu_microseconds: int | None = None
    codec_gpu_microseconds: int | None = None
    peak_request_device_bytes: int | None = None
    peak_request_host_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class SpeechEnd:
    """The natural or bounded end of a request; always the last event of a successful stream."""

    reason: StopReason
    metrics: SpeechMetrics


@dataclass(frozen=True, kw_only=True)
class SpeechFailure:
    """The request failed or was cancelled; always the last event of an unsuccessful stream."""

    reason: StopReason
    code: str
    detail: str


SpeechEvent = AudioPacket | SpeechEnd | SpeechFailure


class EngineState(StrEnum):
    """Life of an engine. Only READY admits requests."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """What an engine says of itself: model identity, limits and execution settings."""

    model: str
    device: str
    precision: str
    max_concurrent_requests: int
    max_codec_frames: int
    languages: tuple[str, ...] = LANGUAGES


class SpeechStream(Protocol):
    """The consumer's end of one request. Thread-safe; holds at most one undelivered audio packet."""

    @property
    def request_id(self) -> UUID: ...

    def take(self, timeout: float | None = None) -> SpeechEvent | None:
        """The next event, waiting up to `timeout` seconds (None: for ever); None when none came."""
        ...

    def notify(self, wake: Callable[[], None]) -> None:
        """Register a zero-argument callable, run from the engine's thread whenever an event can be taken."""
        ...


class SpeechEngine(Protocol):
    """What a server needs of an engine. Every method may be called from any thread."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def state(self) -> EngineState: ...

    @property
    def active_requests(self) -> int: ...

    def start(self) -> None:
        """Load, verify, capture, warm up; returns once READY. Raises EngineError where it cannot."""
        ...

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Admit a request at once or raise `CapacityExhausted`, `RequestIdInUse`, `EngineUnavailable`
        or `InvalidRequest` (prompt and frames do not fit the cache)."""
        ...

    def cancel(self, request_id: UUID) -> bool:
        """Stop a live request within one frame; False when no live request has that id."""
        ...

    def close(self, grace_seconds: float = 30.0) -> bool:
        """Admit nothing more, let active requests finish for `grace_seconds`, then fail the rest and stop.

        Returns at most `CLOSE_SECONDS` after the grace. False means that the device hangs in a step: the engine is FAILED,
        its requests have failed, and nothing that the device still brings reaches a listener.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class EngineCounters:
    """What an engine has done since it started; each only grows."""

    frame_steps: int = 0
    rows_advanced: int = 0  # summed over frame steps: divided by `frame_steps` it is the mean batch occupancy
    graph_replays: int = 0


@runtime_checkable
class CountingEngine(Protocol):
    """An engine that also counts its steps; a server exports the counters, callable from any thread."""

    @property
    def counters(self) -> EngineCounters: ...


@runtime_checkable
class ComposedEngine(Protocol):
    """An engine made of several; where they do not belong together, readiness says so."""

    @property
    def complaint(self) -> str | None:
        """What is wrong with the composition, in words for an operator; None while nothing is."""
        ...


def _require(condition: bool, code: str, detail: str) -> None:
    if not condition:
        raise InvalidRequest(code, detail)


def _check_text(value: str, name: str, limit: int, code: str) -> None:
    _require(bool(value.strip()), code, f"{name} is empty; give at least one visible character")
    _require("\0" not in value, code, f"{name} contains a NUL character; remove it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequest(code, f"{name} contains a lone surrogate; send valid Unicode") from error
    _require(size <= limit, code, f"{name} has {size} UTF-8 bytes, more than {limit}; shorten it")

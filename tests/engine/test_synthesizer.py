"""The engine as a whole on a tiny model: what it delivers, refuses, isolates and survives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, count, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.audio_work import Packet
from engine.checkpoint import LoadedModel
from engine.codec import CodecDecoder
from engine.codec_state import CodecState
from engine.contract import (
    LANGUAGES,
    SAMPLES_PER_FRAME,
    CountingEngine,
    EngineCounters,
    EngineState,
    Sampling,
    SpeechEvent,
    SpeechFailure,
    StageSampling,
    StopReason,
)
from engine.errors import (
    CapacityExhausted,
    EngineError,
    EngineUnavailable,
    InvalidRequest,
    ModelError,
    RequestIdInUse,
    UsageError,
)
from engine.prompt_mode import TextMode
from engine.runner import Runner
from engine.settings import EngineSettings
from engine.stream import BoundedStream
from engine.synthesizer import Synthesizer
from tests.engine.speech import PATIENCE, audio, drain, ending, failure, pcm, speech
from tests.engine.tiny_checkpoint import LANGUAGES as TINY_LANGUAGES

ROWS, FRAMES, POSITIONS = 3, 40, 160
ROUNDING = 1  # step of 16 bits: FP32 sums in another order
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


def settings(directory: Path, **changes: Any) -> EngineSettings:
    values: dict[str, Any] = {
        "model": directory, "device": "cpu", "rows": ROWS, "max_frames": FRAMES, "positions": POSITIONS,
    }  # fmt: skip
    return EngineSettings(**{**values, **changes})


@pytest.fixture(scope="module", autouse=True)
def _loaded_once(quick_model: LoadedModel) -> Iterator[None]:
    """Every engine of this file but those about loading gets the model that the session loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.synthesizer.load_model", lambda *_args, **_options: quick_model)
        yield


@pytest.fixture
def start(quick_directory: Path) -> Iterator[Callable[..., Synthesizer]]:
    engines: list[Synthesizer] = []

    def started(**changes: Any) -> Synthesizer:
        engines.append(Synthesizer(settings(quick_directory, **changes)))
        engines[-1].start()
        return engines[-1]

    yield started
    for engine in engines:
        engine.close(grace_seconds=0)


@pytest.fixture(scope="module")
def engines(quick_directory: Path) -> Iterator[list[Synthesizer]]:
    made: list[Synthesizer] = []
    yield made
    for engine in made:
        engine.close(grace_seconds=0)


@pytest.fixture
def engine(engines: list[Synthesizer], quick_directory: Path) -> Iterator[Synthesizer]:
    """An idle engine that is ready: the one of the test before, unless that test left it otherwise."""
    if not engines or engines[-1].state is not EngineState.READY:
        engines.append(Synthesizer(settings(quick_directory)))
        engines[-1].start()
    yield engines[-1]
    if engines[-1].active_requests:
        engines[-1].close(grace_seconds=0)


def difference(shorter: list[SpeechEvent], longer: list[SpeechEvent]) -> int:
    """The largest difference of two samples, over the length of the first."""
    first, second = (np.frombuffer(pcm(events), "<i2").astype(int) for events in (shorter, longer))
    assert 0 < first.size <= second.size
    return int(np.abs(first - second[: first.size]).max())


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


class Gate:
    """Stands before a runner's method: counts calls, lets them pass while open, may raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        self.calls = 0
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Semaphore(0)
        self.faults: list[Exception] = []
        original = getattr(Runner, method)

        def guarded(runner: Runner, *arguments: Any, **options: Any) -> Any:
            self.calls += 1
            self.reached.release()
            assert self.open.wait(PATIENCE)
            if self.faults:
                raise self.faults.pop(0)
            return original(runner, *arguments, **options)

        monkeypatch.setattr(Runner, method, guarded)

    def wait_reached(self) -> None:
        """Until the engine stands at the gate once more than before."""
        assert self.reached.acquire(timeout=PATIENCE)


@pytest.fixture
def steps(engine: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate before the frame step, put up after the warm-up."""
    return Gate(monkeypatch, "begin_step")


# What is delivered.


def test_packets_are_one_one_two_four_contiguous_and_only_the_last_is_final(engine: Synthesizer) -> None:
    events = drain(engine.submit(speech(max_frames=13, seed=never_ending(engine, 13))))
    packets = audio(events)
    assert [packet.frames for packet in packets] == [1, 1, 2, 4, 4, 1]
    assert [packet.sequence for packet in packets] == list(range(6))
    assert [packet.first_frame for packet in packets] == list(accumulate([0, 1, 1, 2, 4, 4]))
    assert [packet.final for packet in packets] == [False] * 5 + [True]
    assert all(len(packet.pcm) == 2 * SAMPLES_PER_FRAME * packet.frames for packet in packets)
    end = ending(events)
    assert end.reason is StopReason.MAX_FRAMES
    metrics = end.metrics
    assert (metrics.generated_codec_frames, metrics.emitted_packets) == (13, 6)
    assert metrics.emitted_samples * 2 == len(pcm(events)) == 13 * SAMPLES_PER_FRAME * 2
    assert 0 <= metrics.queue_microseconds <= metrics.first_codec_frame_microseconds
    assert metrics.first_codec_frame_microseconds <= metrics.first_audio_microseconds <= metrics.wall_microseconds
    assert metrics.peak_request_device_bytes is None
    assert metrics.peak_request_host_bytes is not None
    assert metrics.peak_request_host_bytes > 0


OPEN = Sampling(talker=StageSampling(temperature=1.5, top_k=0))


def lengths(engine: Synthesizer) -> Iterator[tuple[int, int, StopReason]]:
    """(seed, frames, reason) of the same sentence under one seed after another."""
    for seed in count():
        end = ending(drain(engine.submit(speech(seed=seed, sampling=OPEN, max_frames=FRAMES))))
        yield seed, end.metrics.generated_codec_frames, end.reason


REACHED: dict[tuple[int, TextMode], int] = {}


def never_ending(engine: Synthesizer, frames: int, mode: TextMode = TextMode.FULL) -> int:
    """The first seed whose default sampling reaches this many frames; looked for once."""
    if (frames, mode) not in REACHED:
        REACHED[frames, mode] = next(
            seed
            for seed in count()
            if ending(drain(engine.submit(speech(seed=seed, max_frames=frames)))).reason is StopReason.MAX_FRAMES
        )
    return REACHED[frames, mode]


def test_a_natural_end_is_stop_even_exactly_at_the_ceiling_and_one_frame_less_is_length(engine: Synthesizer) -> None:
    seed, frames = next((s, n) for s, n, why in islice(lengths(engine), 40) if why is StopReason.EOS and n > 2)
    whole = drain(engine.submit(speech(seed=seed, sampling=OPEN, max_frames=FRAMES)))
    exact = drain(engine.submit(speech(seed=seed, sampling=OPEN, max_frames=frames)))
    assert ending(exact).reason is StopReason.EOS
    assert pcm(exact) == pcm(whole)  # the ceiling has no influence on what is said below it
    shorter = drain(engine.submit(speech(seed=seed, sampling=OPEN, max_frames=frames - 1)))
    assert ending(shorter).reason is StopReason.MAX_FRAMES
    assert len(pcm(shorter)) == 2 * SAMPLES_PER_FRAME * (frames - 1)
    assert audio(shorter)[-1].final
    assert difference(shorter, whole) <= ROUNDING  # its last packet is shorter: other FP32 sums in the codec


def test_a_single_frame_is_one_final_packet(engine: Synthesizer) -> None:
    events = drain(engine.submit(speech(max_frames=1)))
    assert [(packet.frames, packet.final) for packet in audio(events)] == [(1, True)]
    assert ending(events).reason is StopReason.MAX_FRAMES


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(engine: Synthesizer) -> None:
    first, again, other = (pcm(drain(engine.submit(speech(seed=seed)))) for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize("mode", list(TextMode))
def test_concurrent_requests_sound_as_they_do_alone(start: Callable[..., Synthesizer], mode: TextMode) -> None:
    """Rows join, end and move while the others go on."""
    engine = start(text_mode=mode)
    requests = [
        {"text": text, "seed": seed, "max_frames": frames}
        for text, seed, frames in (("One.", 1, 4), ("A second, longer one.", 2, 15), ("Three", 3, 9), ("Four!", 4, 11))
    ]
    alone = [drain(engine.submit(speech(**changes))) for changes in requests]
    found: list[list[SpeechEvent]] = [[] for _ in requests]
    streams = [engine.submit(speech(**changes)) for changes in requests[:ROWS]]
    readers = [threading.Thread(target=lambda i=i: found[i].extend(drain(streams[i]))) for i in range(ROWS)]
    for reader in readers:
        reader.start()
    readers[0].join(PATIENCE)
    found[3].extend(drain(engine.submit(speech(**requests[3]))))
    for reader in readers:
        reader.join(PATIENCE)
    for together, single in zip(found, alone, strict=True):
        assert ending(together).reason is ending(single).reason
        assert [packet.frames for packet in audio(together)] == [packet.frames for packet in audio(single)]
        assert difference(together, single) <= ROUNDING


def test_audio_arrives_before_the_utterance_is_complete(engine: Synthesizer, steps: Gate) -> None:
    steps.open.clear()
    stream = engine.submit(speech(max_frames=30))
    steps.wait_reached()
    assert stream.take(timeout=0) is None
    steps.open.set()
    first = stream.take(timeout=PATIENCE)
    assert first is not None
    assert steps.calls < 30
    assert len(audio([first])) == 1


# Back-pressure.


def test_a_reader_that_takes_nothing_parks_its_row_and_no_other(engine: Synthesizer, steps: Gate) -> None:
    slow = engine.submit(speech(max_frames=30, seed=never_ending(engine, 30)))
    assert eventually(lambda: not slow.has_room)
    quick = drain(engine.submit(speech(max_frames=20)))
    assert len(audio(quick)) > 1
    before = steps.calls
    time.sleep(0.1)
    assert steps.calls == before  # with everybody else gone, nothing is computed for nobody
    rest = drain(slow)
    assert sum(packet.frames for packet in audio(rest)) == 30
    assert ending(rest).reason is StopReason.MAX_FRAMES


def test_a_parked_request_says_the_same_as_one_that_never_waited(engine: Synthesizer) -> None:
    expected = drain(engine.submit(speech(max_frames=20, seed=3)))
    slow = engine.submit(speech(max_frames=20, seed=3))
    other = engine.submit(speech(max_frames=FRAMES, seed=4))
    assert eventually(lambda: not slow.has_room)
    drain(other)
    assert difference(drain(slow), expected) <= ROUNDING


def test_a_complete_request_at_the_engines_own_ceiling_may_wait_while_others_go_on(engine: Synthesizer) -> None:
    """Its row has used every frame that there is; the steps of the others must neither fail nor overwrite it."""
    seed = never_ending(engine, FRAMES)
    expected = drain(engine.submit(speech(max_frames=FRAMES, seed=seed)))
    slow = engine.submit(speech(max_frames=FRAMES, seed=seed))
    taken = [slow.take(timeout=PATIENCE) for _ in range(10)]  # 1 + 2 + 8 x 4 = 35 frames: the last five are two packets
    assert eventually(lambda: not slow.has_room)
    for seed in range(2):
        ending(drain(engine.submit(speech(max_frames=20, seed=seed))))
    events = [event for event in taken if event is not None] + drain(slow)
    assert difference(events, expected) <= ROUNDING


# Admission.


def test_beyond_the_slots_a_request_is_refused_at_once_and_the_next_free_slot_serves(
    engine: Synthesizer, steps: Gate
) -> None:
    steps.open.clear()
    streams = [engine.submit(speech()) for _ in range(ROWS)]
    with pytest.raises(CapacityExhausted) as refusal:
        engine.submit(speech())
    assert refusal.value.code == "capacity_exhausted"
    assert engine.active_requests == ROWS
    steps.open.set()
    for stream in streams:
        ending(drain(stream))
    assert engine.active_requests == 0
    ending(drain(engine.submit(speech())))


def test_the_slot_is_free_when_the_end_is_heard(engine: Synthesizer) -> None:
    for _ in range(5):
        streams = [engine.submit(speech(max_frames=2)) for _ in range(ROWS)]
        for stream in streams:
            ending(drain(stream))


def test_an_id_is_in_use_while_its_request_lives_and_free_afterwards(engine: Synthesizer, steps: Gate) -> None:
    steps.open.clear()
    name = uuid4()
    stream = engine.submit(speech(request_id=name))
    with pytest.raises(RequestIdInUse, match=str(name)):
        engine.submit(speech(request_id=name))
    steps.open.set()
    ending(drain(stream))
    ending(drain(engine.submit(speech(request_id=name))))


def test_what_cannot_fit_is_refused_at_admission(engine: Synthesizer) -> None:
    with pytest.raises(InvalidRequest, match=f"at most {FRAMES}") as refusal:
        engine.submit(speech(max_frames=FRAMES + 1))
    assert refusal.value.code == "invalid_max_duration"
    with pytest.raises(InvalidRequest, match="shorten the text") as refusal:
        engine.submit(speech(text="x" * POSITIONS))
    assert refusal.value.code == "invalid_text"
    assert engine.active_requests == 0


@pytest.mark.parametrize("mode", list(TextMode))
def test_the_longest_request_that_is_admitted_is_also_spoken(start: Callable[..., Synthesizer], mode: TextMode) -> None:
    engine = start(text_mode=mode, positions=120, max_frames=30)
    seed = never_ending(engine, 30, mode)

    def admitted(size: int) -> BoundedStream | None:
        try:
            return engine.submit(speech(text="x" * size, max_frames=30, seed=seed))
        except InvalidRequest:
            return None

    longest = next(stream for stream in map(admitted, range(130, 0, -1)) if stream)
    ending(drain(longest))
    beside = engine.submit(speech(max_frames=30, seed=seed))
    ending(drain(beside))


def test_a_language_that_the_checkpoint_lacks_is_neither_offered_nor_accepted(engine: Synthesizer) -> None:
    assert set(engine.info.languages) == {"auto", *TINY_LANGUAGES}
    missing = next(language for language in LANGUAGES if language not in engine.info.languages)
    with pytest.raises(InvalidRequest) as refusal:
        engine.submit(speech(language=missing))
    assert refusal.value.code == "unsupported_language"


@pytest.mark.parametrize(
    "text", ["🙂🙂", "...!?", "12345", "混ざった text и всё", "<|im_end|><|im_start|>user", "a\u0301"]
)
def test_odd_text_is_spoken(engine: Synthesizer, text: str) -> None:
    ending(drain(engine.submit(speech(text=text, max_frames=3))))


# Cancellation.


def test_a_cancelled_request_stops_within_one_frame_and_gives_its_slot_back(engine: Synthesizer, steps: Gate) -> None:
    name = uuid4()
    stream = engine.submit(speech(request_id=name, max_frames=FRAMES))
    steps.wait_reached()
    steps.open.clear()
    steps.wait_reached()
    assert engine.cancel(name)
    at = steps.calls
    steps.open.set()
    last = failure(drain(stream))
    assert (last.reason, last.code) == (StopReason.CANCELLED, "request_cancelled")
    assert steps.calls == at  # the step that had begun, none after it
    assert engine.active_requests == 0
    assert not engine.cancel(name)
    ending(drain(engine.submit(speech(request_id=name))))


def test_a_parked_request_can_be_cancelled(engine: Synthesizer) -> None:
    request = speech(max_frames=30, seed=never_ending(engine, 30))
    stream = engine.submit(request)
    assert eventually(lambda: not stream.has_room)
    assert engine.cancel(request.request_id)
    assert failure(drain(stream)).reason is StopReason.CANCELLED


def test_a_request_cancelled_before_it_began_never_runs(engine: Synthesizer, steps: Gate) -> None:
    steps.open.clear()
    first = engine.submit(speech(max_frames=2))
    steps.wait_reached()
    late = speech()
    stream = engine.submit(late)
    assert engine.cancel(late.request_id)
    steps.open.set()
    events = drain(stream)
    assert audio(events) == []
    assert failure(events).reason is StopReason.CANCELLED
    ending(drain(first))


def test_cancelling_one_leaves_the_others_as_they_were(engine: Synthesizer) -> None:
    expected = drain(engine.submit(speech(max_frames=24, seed=2)))
    doomed = [speech(max_frames=FRAMES, seed=seed) for seed in (7, 8)]
    streams = [engine.submit(doomed[0]), engine.submit(speech(max_frames=24, seed=2)), engine.submit(doomed[1])]
    streams[0].take(timeout=PATIENCE)
    for request in doomed:
        engine.cancel(request.request_id)
    assert difference(drain(streams[1]), expected) <= ROUNDING


def test_an_unknown_request_cannot_be_cancelled(engine: Synthesizer) -> None:
    assert not engine.cancel(uuid4())


# Faults.


def test_a_prefill_that_fails_fails_alone(engine: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = engine.submit(speech(max_frames=30, seed=never_ending(engine, 30)))
    assert eventually(lambda: not healthy.has_room)  # it is on its row
    prefills = Gate(monkeypatch, "prefill")
    prefills.faults = [torch.OutOfMemoryError("no memory")]
    broken = drain(engine.submit(speech()))
    assert audio(broken) == []
    assert (failure(broken).reason, failure(broken).code) == (StopReason.FAILED, "internal_error")
    assert "memory" not in failure(broken).detail  # what the client reads names no internals
    assert sum(packet.frames for packet in audio(drain(healthy))) == 30
    ending(drain(engine.submit(speech())))
    assert engine.state is EngineState.READY


@pytest.mark.parametrize("method", ["begin_step", "start_decode"])
def test_a_turn_that_fails_fails_its_requests_and_the_engine_proves_itself(
    engine: Synthesizer, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    expected = pcm(drain(engine.submit(speech(seed=9))))
    gate = Gate(monkeypatch, method)
    gate.open.clear()
    doomed = engine.submit(speech(max_frames=30))
    gate.wait_reached()
    newcomer = engine.submit(speech(seed=9))
    gate.faults = [RuntimeError("device fault")]
    gate.open.set()
    assert failure(drain(doomed)).code == "internal_error"
    assert pcm(drain(newcomer)) == expected  # it had not begun, so it is served after the proof
    assert engine.state is EngineState.READY
    assert engine.active_requests == 0


def test_samples_that_are_no_numbers_fail_their_request_alone(
    engine: Synthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Runner._synthesise

    def spoilt(runner: Runner, selected: Sequence[int], codes: Tensor) -> list[Packet]:
        packets = original(runner, selected, codes)
        return [None if row == 1 else packet for row, packet in zip(selected, packets, strict=True)]

    monkeypatch.setattr(Runner, "_synthesise", spoilt)
    healthy = engine.submit(speech(max_frames=30, seed=never_ending(engine, 30)))
    assert eventually(lambda: not healthy.has_room)  # it is on row 0
    broken = drain(engine.submit(speech()))
    assert audio(broken) == []
    assert (failure(broken).reason, failure(broken).code) == (StopReason.FAILED, "internal_error")
    assert sum(packet.frames for packet in audio(drain(healthy))) == 30
    monkeypatch.undo()
    ending(drain(engine.submit(speech())))
    assert (engine.state, engine.active_requests) == (EngineState.READY, 0)


def test_a_move_that_fails_leaves_nobody_waiting_for_ever(engine: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row was already released when its successor could not be moved there: its request must hear of it too."""
    moves = Gate(monkeypatch, "move")
    moves.faults = [RuntimeError("device fault")]
    doomed = speech(max_frames=FRAMES, seed=never_ending(engine, FRAMES))
    streams = [engine.submit(doomed), engine.submit(speech(max_frames=FRAMES))]
    for stream in streams:
        assert stream.take(timeout=PATIENCE) is not None
    engine.cancel(doomed.request_id)
    for stream in streams:
        assert failure(drain(stream)).reason is StopReason.FAILED
    assert moves.calls == 1
    assert engine.active_requests == 0
    ending(drain(engine.submit(speech())))


def test_an_engine_that_cannot_prove_itself_turns_failed_and_says_so_to_everybody(
    engine: Synthesizer, steps: Gate
) -> None:
    steps.open.clear()
    stream = engine.submit(speech(max_frames=30))
    steps.wait_reached()
    newcomer = engine.submit(speech())
    steps.faults = [RuntimeError("device fault")] * 2
    steps.open.set()
    assert failure(drain(stream)).code == "internal_error"
    assert failure(drain(newcomer)).code == "backend_unavailable"
    assert eventually(lambda: engine.state is EngineState.FAILED)
    with pytest.raises(EngineUnavailable) as refusal:
        engine.submit(speech())
    assert refusal.value.code == "backend_unavailable"
    engine.close(grace_seconds=0)
    assert engine.state is EngineState.FAILED
    assert newcomer.take(timeout=0.05) is None  # one terminal event, not two
    assert engine.active_requests == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_of_the_codec_fail_their_request_alone(
    engine: Synthesizer, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """From its second packet on one row's codec state is poisoned; the others' audio is as it would be alone."""
    expected = drain(engine.submit(speech(max_frames=24, seed=2)))
    first = speech(max_frames=24, seed=never_ending(engine, 24))
    original = CodecDecoder.waveform
    poisoned: list[float] = []

    def poison(codec: CodecDecoder, latent: torch.Tensor, state: CodecState | None = None) -> torch.Tensor:
        samples = original(codec, latent, state)
        if state is not None and not poisoned and int(state.frames()[0]) > 1:
            poisoned.append(value)
            samples[0, -1] = value
        return samples

    monkeypatch.setattr(CodecDecoder, "waveform", poison)
    streams = [engine.submit(first), engine.submit(speech(max_frames=24, seed=2))]
    results = [drain(stream) for stream in streams]
    assert poisoned
    lost, healthy = sorted(results, key=lambda events: hasattr(events[-1], "metrics"))
    assert (failure(lost).reason, failure(lost).code) == (StopReason.FAILED, "internal_error")
    ending(healthy)
    assert engine.active_requests == 0
    assert engine.state is EngineState.READY
    assert pcm(drain(engine.submit(speech(max_frames=24, seed=2)))) == pcm(expected)


def test_a_state_that_is_no_number_fails_its_request_alone_and_leaves_no_residue(
    engine: Synthesizer, steps: Gate
) -> None:
    """NaN in a row's whole cache: the next request there must not meet it behind its mask."""
    requests: list[dict[str, Any]] = [
        {"max_frames": 4, "seed": 3},
        {"text": "Hello there, and on.", "max_frames": 24, "seed": 2},
    ]
    expected = [drain(engine.submit(speech(**fields))) for fields in requests]
    while steps.reached.acquire(blocking=False):
        pass  # calls of the requests before
    steps.open.clear()
    lost = engine.submit(speech(max_frames=30))
    steps.wait_reached()
    batch = engine._batch
    assert batch is not None
    batch._runner.rows.cache.data[:, :, 0] = float("nan")
    steps.open.set()
    events = drain(lost)
    assert audio(events) == []
    assert (failure(events).reason, failure(events).code) == (StopReason.FAILED, "internal_error")
    again = [
        engine.submit(speech(**fields)) for fields in requests
    ]  # the longer one makes the shorter's row be read further
    for stream, whole in zip(again, expected, strict=True):
        assert difference(drain(stream), whole) <= ROUNDING
    assert engine.state is EngineState.READY


def test_a_listener_that_raises_does_not_stop_the_engine(engine: Synthesizer) -> None:
    stream = engine.submit(speech())

    def broken() -> None:
        raise RuntimeError("Event loop is closed")

    stream.notify(broken)
    ending(drain(stream))
    ending(drain(engine.submit(speech())))


# Life.


def test_it_knows_what_it_is(engine: Synthesizer, quick_directory: Path) -> None:
    info = engine.info
    assert engine.state is EngineState.READY
    assert (info.model, info.device, info.precision) == (quick_directory.name, "cpu", "fp32")
    assert (info.max_concurrent_requests, info.max_codec_frames) == (ROWS, FRAMES)


def test_it_counts_its_steps(engine: Synthesizer) -> None:
    assert isinstance(engine, CountingEngine)
    before = engine.counters
    end = ending(drain(engine.submit(speech(max_frames=7))))
    after = engine.counters
    frames = end.metrics.generated_codec_frames
    assert (after.frame_steps - before.frame_steps, after.rows_advanced - before.rows_advanced) == (frames, frames)


def test_before_start_nothing_is_admitted(quick_directory: Path) -> None:
    engine = Synthesizer(settings(quick_directory))
    assert engine.state is EngineState.STARTING
    assert engine.info.languages == LANGUAGES
    assert engine.counters == EngineCounters()
    with pytest.raises(EngineUnavailable) as refusal:
        engine.submit(speech())
    assert refusal.value.code == "backend_unavailable"
    engine.close(grace_seconds=0)


def test_closing_lets_active_requests_finish_and_admits_no_more(engine: Synthesizer, steps: Gate) -> None:
    steps.open.clear()
    stream = engine.submit(speech())
    steps.wait_reached()
    closer = threading.Thread(target=engine.close)
    closer.start()
    assert eventually(lambda: engine.state is EngineState.DRAINING)
    with pytest.raises(EngineUnavailable) as refusal:
        engine.submit(speech())
    assert refusal.value.code == "server_shutting_down"
    steps.open.set()
    ending(drain(stream))
    closer.join(PATIENCE)
    assert not closer.is_alive()


def test_closing_gives_up_on_a_device_that_hangs(
    engine: Synthesizer, steps: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.synthesizer.CLOSE_SECONDS", 0.2)
    steps.open.clear()
    stream = engine.submit(speech())
    steps.wait_reached()
    before = time.monotonic()
    assert not engine.close(grace_seconds=0.1)
    assert time.monotonic() - before < PATIENCE / 2
    assert engine.state is EngineState.FAILED
    assert failure(drain(stream)).code == "backend_unavailable"
    assert engine.active_requests == 0
    steps.open.set()  # the thread may end now


@pytest.mark.parametrize("taken", [True, False], ids=["failure_taken", "failure_waiting"])
def test_a_device_that_comes_back_after_the_close_has_nothing_more_to_say(
    engine: Synthesizer, steps: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, taken: bool
) -> None:
    """The step under way is the last of the request: its packet and its end come after the failure, and are dropped."""
    monkeypatch.setattr("engine.synthesizer.CLOSE_SECONDS", 0.1)
    steps.open.clear()
    stream = engine.submit(speech(max_frames=1))
    steps.wait_reached()
    assert not engine.close(grace_seconds=0)
    events = drain(stream) if taken else []
    steps.open.set()
    assert eventually(lambda: engine.close(grace_seconds=0)), "the thread ends once the device is back"
    events = events or drain(stream)
    assert [type(event) for event in events] == [SpeechFailure]
    assert stream.take(timeout=0) is None
    assert "a turn failed" not in caplog.text


def test_closing_fails_what_has_not_finished_in_its_grace(engine: Synthesizer) -> None:
    streams = [engine.submit(speech(max_frames=30, seed=never_ending(engine, 30))) for _ in range(2)]
    started = time.monotonic()
    engine.close(grace_seconds=0.1)
    assert time.monotonic() - started < PATIENCE / 2
    for stream in streams:
        last = failure(drain(stream))
        assert (last.reason, last.code) == (StopReason.FAILED, "server_shutting_down")
    assert engine.active_requests == 0


def test_a_model_that_cannot_be_loaded_is_the_callers_to_hear(
    quick_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = ValueError("the reason behind")

    def refuse(*_args: Any, **_options: Any) -> LoadedModel:
        raise ModelError("vocab.json is damaged; fetch it again") from cause

    monkeypatch.setattr("engine.synthesizer.load_model", refuse)
    engine = Synthesizer(settings(quick_directory))
    with pytest.raises(ModelError, match=r"vocab\.json is damaged") as error:
        engine.start()
    assert error.value.__cause__ is cause
    assert engine.state is EngineState.FAILED


def test_a_start_that_fails_inside_is_an_engine_error_with_its_cause(
    quick_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: Any, **_options: Any) -> None:
        raise MemoryError("rows do not fit")

    monkeypatch.setattr(Runner, "__init__", broken)
    engine = Synthesizer(settings(quick_directory))
    with pytest.raises(EngineError, match="rows do not fit") as error:
        engine.start()
    assert isinstance(error.value.__cause__, MemoryError)


def test_an_engine_whose_warm_up_fails_never_becomes_ready(
    quick_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Gate(monkeypatch, "prefill").faults = [RuntimeError("bad kernel")]
    engine = Synthesizer(settings(quick_directory))
    with pytest.raises(EngineError, match="warm-up"):
        engine.start()
    assert engine.state is EngineState.FAILED


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"positions": 20, "max_frames": 8}, "--max-positions"),
        ({"positions": 5_000}, "--max-positions"),
        ({"positions": 4_096, "max_frames": 1_000}, None),
    ],
)
def test_settings_beyond_the_model_are_refused_at_start(
    start: Callable[..., Synthesizer], changes: dict[str, int], flag: str | None
) -> None:
    if flag is None:
        assert start(rows=1, **changes).state is EngineState.READY
        return
    with pytest.raises(UsageError, match=flag):
        start(rows=1, **changes)

"""`python -m engine say`: one utterance to a WAV file, with progress and a closing line."""

from __future__ import annotations

import argparse
import math
import secrets
import sys
import time
from pathlib import Path
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from engine.contract import (
    AUTO,
    MAX_SEED,
    SAMPLE_RATE_HZ,
    SAMPLES_PER_FRAME,
    AudioPacket,
    Sampling,
    SpeechEnd,
    SpeechRequest,
    SpeechStream,
    StageSampling,
    frames_for,
)
from engine.errors import EngineError, UsageError
from engine.options import add_engine_arguments, engine_settings
from engine.server import wav


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", help="what to say; read from standard input when absent or '-'")
    parser.add_argument("--voice", required=True, help="description of the voice, in words")
    parser.add_argument("--language", default=AUTO, help="language name or auto")
    parser.add_argument("--seed", type=int, help="0 .. 2^53-1; drawn and printed when absent")
    parser.add_argument("--seconds", type=float, default=60.0, help="ceiling on the audio (default 60)")
    parser.add_argument("--greedy", action="store_true", help="take the most probable code instead of sampling")
    parser.add_argument("-o", "--output", type=Path, required=True, help="WAV file to write")
    add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Speak one text. Returns 0, also when the ceiling stopped the utterance (the closing line says so)."""
    if not arguments.output.parent.is_dir() or arguments.output.is_dir():
        raise UsageError(f"{arguments.output} cannot be a file there; create the directory or choose another -o")
    settings = engine_settings(arguments, rows=1)
    request = _request(arguments, settings.max_frames)
    from engine.synthesizer import Synthesizer  # takes seconds, which `serve` beside this command would wait for

    engine = Synthesizer(settings)
    console = Console(stderr=True)
    with console.status("loading the model"):
        engine.start()
    try:
        started = time.perf_counter()
        pcm, end = _collect(engine.submit(request), request.max_frames, console)
        wall = time.perf_counter() - started
    finally:
        engine.close(grace_seconds=0)
    seconds = _write(arguments.output, pcm)
    print(
        f"{arguments.output}: {seconds:.2f} s of audio in {wall:.2f} s, RTF {wall / seconds:.3f}, "
        f"stop reason {end.reason.value}, seed {request.seed}"
    )
    return 0


def _request(arguments: argparse.Namespace, longest: int) -> SpeechRequest:
    if not 0 < arguments.seconds < math.inf:
        raise UsageError(f"--seconds={arguments.seconds} cannot be used; give a number above 0")
    stage = StageSampling(strategy="greedy" if arguments.greedy else "sample")
    return SpeechRequest(
        request_id=uuid4(),
        text=_text(arguments.text).strip(),
        voice_description=arguments.voice,
        language=arguments.language.lower(),
        seed=secrets.randbelow(MAX_SEED + 1) if arguments.seed is None else arguments.seed,
        max_frames=min(frames_for(arguments.seconds), longest),
        sampling=Sampling(talker=stage, predictor=stage),
    )


def _text(given: str | None) -> str:
    if given is not None and given != "-":
        return given
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not {error.encoding} text; convert it first") from error


def _write(path: Path, pcm: bytes) -> float:
    """Write the WAV file and return its seconds."""
    try:
        path.write_bytes(wav.header(len(pcm)) + pcm)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error}); choose another -o") from error
    return len(pcm) / (wav.SAMPLE_BYTES * SAMPLE_RATE_HZ)


def _collect(stream: SpeechStream, max_frames: int, console: Console) -> tuple[bytes, SpeechEnd]:
    pieces: list[bytes] = []
    columns = (TextColumn("speaking"), BarColumn(), TextColumn("{task.fields[seconds]:.1f} s"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=max_frames, seconds=0.0)
        while True:
            event = stream.take()
            if isinstance(event, AudioPacket):
                pieces.append(event.pcm)
                seconds = (event.first_frame + event.frames) * SAMPLES_PER_FRAME / SAMPLE_RATE_HZ
                progress.update(task, advance=event.frames, seconds=seconds)
            elif isinstance(event, SpeechEnd):
                return b"".join(pieces), event
            else:
                raise EngineError("no audio: " + (event.detail if event else "the stream ended without an event"))

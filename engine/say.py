"""`python -m engine say`: one utterance to a WAV file, with progress and a closing line."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import soundfile
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
from engine.synthesizer import Synthesizer


HELP = "speak one text to a WAV file"


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
    text = arguments.text if arguments.text not in {None, "-"} else sys.stdin.read()
    if not arguments.output.parent.is_dir():
        raise UsageError(f"{arguments.output.parent} is not a directory; create it or choose another -o")
    stage = StageSampling(strategy="greedy" if arguments.greedy else "sample")
    settings = engine_settings(arguments, rows=1)
    request = SpeechRequest(
        request_id=uuid4(),
        text=text.strip(),
        voice_description=arguments.voice,
        language=arguments.language.lower(),
        seed=secrets.randbelow(MAX_SEED + 1) if arguments.seed is None else arguments.seed,
        max_frames=min(frames_for(arguments.seconds), settings.max_frames),
        sampling=Sampling(talker=stage, predictor=stage),
    )
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
    samples = np.frombuffer(pcm, dtype="<i2")
    soundfile.write(arguments.output, samples, SAMPLE_RATE_HZ, subtype="PCM_16")
    seconds = samples.size / SAMPLE_RATE_HZ
    print(
        f"{arguments.output}: {seconds:.2f} s of audio in {wall:.2f} s, RTF {wall / seconds:.3f}, "
        f"stop reason {end.reason.value}, seed {request.seed}"
    )
    return 0


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

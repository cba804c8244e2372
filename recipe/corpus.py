"""Files that pass from stage to stage in the working directory, and nothing else: sentences as JSON lines, audio as
shards.

A shard is one `int16` array of utterances end to end and their lengths. It appears under its final name only when it
is complete, so a
later stage may read while the rendering goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from recipe.errors import RecipeError
from recipe.sentence import Sentence
from recipe.voices import VOICES

Samples = npt.NDArray[np.int16]

SENTENCES, AUDIO, RENDERED = "sentences.jsonl", "audio", "audio/complete"
CODES, FRAMES = "codes.npy", "frames.npy"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Utterances `first` .. `first + len(lengths) - 1`; `samples` holds them end to end at 24 kHz."""

    first: int
    samples: Samples
    lengths: npt.NDArray[np.int64]

    def utterances(self) -> Iterator[Samples]:
        start = 0
        for length in self.lengths:
            yield self.samples[start : start + length]
            start += length


def write_sentences(work: Path, items: Iterable[Sentence]) -> int:
    """Write the sentences and return their number."""
    work.mkdir(parents=True, exist_ok=True)
    count = 0
    with (work / SENTENCES).open("w", encoding="utf-8") as stream:
        for item in items:
            row = {"language": item.language, "text": item.text, "spoken": item.spoken, "voice": item.voice.index}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def read_sentences(work: Path) -> list[Sentence]:
    """All sentences in order.

    Raises:
        RecipeError: the text stage has not run.
    """
    path = work / SENTENCES
    if not path.exists():
        raise RecipeError(f"{path} is missing; run the text stage first")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [
        Sentence(language=row["language"], text=row["text"], spoken=row["spoken"], voice=VOICES[row["voice"]])
        for row in rows
    ]


def write_shard(work: Path, first: int, utterances: list[Samples]) -> int:
    """Write one shard and return its number of samples."""
    folder = work / AUDIO
    folder.mkdir(parents=True, exist_ok=True)
    lengths = np.array([len(utterance) for utterance in utterances], dtype=np.int64)
    samples = np.concatenate(utterances)
    part = folder / f"{first:07d}.part"
    with part.open("wb") as stream:
        np.save(stream, lengths)
        np.save(stream, samples)
    part.rename(folder / f"{first:07d}.shard")
    return len(samples)


def read_shards(work: Path) -> Iterator[Shard]:
    """The shards that are complete by now, in order."""
    for path in sorted((work / AUDIO).glob("*.shard")):
        with path.open("rb") as stream:
            lengths = np.load(stream)
            samples = np.load(stream)
        yield Shard(first=int(path.stem), samples=samples, lengths=lengths)


def rendered_hours(work: Path) -> float:
    """Hours of audio in complete shards, from their sizes."""
    return sum(path.stat().st_size for path in (work / AUDIO).glob("*.shard")) / 2 / 24_000 / 3_600


def rendering_complete(work: Path) -> bool:
    return (work / RENDERED).exists()


def write_codes(work: Path, codes: list[npt.NDArray[np.uint8]]) -> None:
    """Codes [T, 16] of every utterance in order, as one array and the numbers of frames."""
    np.save(work / CODES, np.concatenate(codes))
    np.save(work / FRAMES, np.array([len(item) for item in codes], dtype=np.int64))


def read_codes(work: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """All codes end to end [sum of frames, 16], and the frames of each utterance.

    Raises:
        RecipeError: the codec stage has not run.
    """
    for name in (CODES, FRAMES):
        if not (work / name).exists():
            raise RecipeError(f"{work / name} is missing; run the codec stage first")
    return np.load(work / CODES), np.load(work / FRAMES)


def write_record(path: Path, values: dict[str, object]) -> None:
    """What a stage measured, as JSON."""
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


def read_record(path: Path, stage: str) -> dict[str, object]:
    """A stage's record.

    Raises:
        RecipeError: the stage has not run.
    """
    if not path.exists():
        raise RecipeError(f"{path} is missing; run the {stage} stage first")
    values: dict[str, object] = json.loads(path.read_text("utf-8"))
    return values

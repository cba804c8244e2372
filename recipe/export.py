"""Put the trained weights into the published layout, and note the hashes.

Training wrote state dicts of the engine's own modules, so exporting adds the names' prefixes and nothing else. What
is written is loaded back through the engine's
strict loader before the stage is called done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint import CODEC_FILE, CODEC_PREFIX, TALKER_FILE, load_model
from recipe import onset, talker_training
from recipe.corpus import write_record
from recipe.errors import RecipeError

HASHES = "hashes.json"
LARGEST_BYTES = 16 * 1024 * 1024  # all safetensors of the embedded model together
METADATA = {"format": "pt"}


def export_model(work: Path, directory: Path, report: Callable[[str], None]) -> None:
    """Write `model.safetensors` and `speech_tokenizer/model.safetensors` into `directory`, check them, and record all
    hashes.

    Raises:
        RecipeError: a training stage has not run, or the weights are larger than allowed.
    """
    save_file(_trained(work / talker_training.TALKER_FILE, "talker"), directory / TALKER_FILE, METADATA)
    decoder = _trained(work / onset.ONSET_FILE, "codec")
    save_file({CODEC_PREFIX + name: tensor for name, tensor in decoder.items()}, directory / CODEC_FILE, METADATA)
    for name in (TALKER_FILE, CODEC_FILE):
        (directory / name).chmod(0o644)  # safetensors writes files that only their owner may read
    size = sum((directory / name).stat().st_size for name in (TALKER_FILE, CODEC_FILE))
    if size > LARGEST_BYTES:
        raise RecipeError(f"the weights have {size} bytes, more than {LARGEST_BYTES}; choose a smaller shape")
    model = load_model(directory, device=torch.device("cpu"), dtype=torch.float32)
    parameters = sum(p.numel() for p in model.talker.parameters()), sum(p.numel() for p in model.codec.parameters())
    write_record(work / HASHES, dict(file_hashes(directory)))
    report(
        f"{size} bytes of weights, {parameters[0]} talker and {parameters[1]} codec parameters, loaded back strictly"
    )


def file_hashes(directory: Path) -> dict[str, str]:
    """SHA-256 of every file of the model but the card, by path."""
    return {
        path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.suffix != ".md"
    }


def _trained(path: Path, stage: str) -> dict[str, torch.Tensor]:
    if not path.exists():
        raise RecipeError(f"{path} is missing; run the {stage} stage first")
    return load_file(path)

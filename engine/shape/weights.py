"""Synthetic weights of the published shapes: streamed to a directory, or made in memory.

A tensor's values are a table of normal quantiles, read through seeded counter-based random 16-bit numbers, so the bytes
depend on the seed and the tensor's name alone and gigabytes take seconds. The file's metadata, its config and a notice
beside it say that it is synthetic. End of speech has a zero row in the head: its logit stays in the middle of
thousands, so an utterance runs to the length that was asked for.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import models
from torch import Tensor, nn

from engine.checkpoint import CODEC_CONFIG_FILE, CODEC_FILE, CODEC_PREFIX, CONFIG_FILE, TALKER_FILE, LoadedModel
from engine.codec import CodecDecoder
from engine.config import read_codec_config, read_talker_config
from engine.errors import UsageError
from engine.prompt import PromptBuilder
from engine.published import generation_config
from engine.shape.configs import SYNTHETIC_KEY, SYNTHETIC_NOTICE, codec_config, model_config
from engine.shape.vocabulary import byte_vocabulary
from engine.talker import SpeechModel
from engine.tokenizer import TextTokenizer, qwen2_pipeline

NOTICE_FILE = "SYNTHETIC.txt"
CHUNK = 1 << 24  # values made at once
CODEC_GAIN = 0.5  # keeps the random decoder's output well inside [-1, 1]
ONES = ("norm.weight", "cluster_usage", "scale", "gamma")
NAMES = {torch.bfloat16: "BF16", torch.float32: "F32"}

Values = npt.NDArray[np.uint16] | npt.NDArray[np.float32]


def write_shape_checkpoint(directory: Path, *, seed: int = 0) -> Path:
    """Write a complete model directory (about 4.3 GB) and return it.

    Raises:
        UsageError: the directory exists and is not empty.
    """
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty; give a new directory for the synthetic checkpoint")
    write_shape_files(directory, seed=seed)
    talker, codec = shape_modules(directory)
    _write_tensors(directory / TALKER_FILE, _inventory(talker, "", torch.bfloat16), seed=seed, gain=1.0)
    _write_tensors(directory / CODEC_FILE, _inventory(codec, CODEC_PREFIX, torch.float32), seed=seed, gain=CODEC_GAIN)
    return directory


def write_shape_files(directory: Path, *, seed: int) -> None:
    """Write everything but the weights."""
    (directory / "speech_tokenizer").mkdir(parents=True, exist_ok=True)
    _write_json(directory / CONFIG_FILE, model_config(seed))
    _write_json(directory / CODEC_CONFIG_FILE, codec_config(seed))
    _write_json(directory / "generation_config.json", generation_config())
    vocabulary, merges = byte_vocabulary()
    _write_json(directory / "vocab.json", vocabulary)
    (directory / "merges.txt").write_text("".join(f"{left} {right}\n" for left, right in merges), "utf-8")
    (directory / NOTICE_FILE).write_text(f"{SYNTHETIC_NOTICE}\nseed {seed}\n", "utf-8")


def shape_modules(directory: Path) -> tuple[SpeechModel, CodecDecoder]:
    """The networks of a directory's configs, without storage."""
    with torch.device("meta"):
        return (
            SpeechModel(read_talker_config(directory / CONFIG_FILE)),
            CodecDecoder(read_codec_config(directory / CODEC_CONFIG_FILE)),
        )


def synthetic_model(directory: Path, *, device: torch.device, dtype: torch.dtype, seed: int = 0) -> LoadedModel:
    """The networks of a directory's configs with random weights made on `device`; the directory's weights are not read.

    The values are of the same distributions as those of `write_shape_checkpoint`, not the same values.
    """
    talker, codec = shape_modules(directory)
    generator = torch.Generator(device).manual_seed(seed)
    _fill_module(talker, gain=1.0, dtype=dtype, generator=generator)
    _fill_module(codec, gain=CODEC_GAIN, dtype=torch.float32, generator=generator)
    talker.talker.codec_head.weight[talker.talker.config.codec_ids.eos] = 0.0
    vocabulary, merges = byte_vocabulary()
    tokenizer = TextTokenizer(qwen2_pipeline(models.BPE(vocab=vocabulary, merges=merges)))
    prompts = PromptBuilder(tokenizer, talker.talker.config)
    return LoadedModel(talker=talker.talker, codec=codec, prompts=prompts, device=device, dtype=dtype)


def _fill_module(module: nn.Module, *, gain: float, dtype: torch.dtype, generator: torch.Generator) -> None:
    tensors: dict[str, Tensor] = {}
    for name, shape in ((name, tuple(value.shape)) for name, value in module.state_dict().items()):
        mean, spread = _distribution(name, shape, gain)
        value = torch.empty(shape, dtype=dtype, device=generator.device)
        tensors[name] = value.normal_(mean, spread, generator=generator)
    module.load_state_dict(tensors, strict=True, assign=True)
    module.requires_grad_(False).eval()


def _inventory(module: nn.Module, prefix: str, dtype: torch.dtype) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    return {prefix + name: (tuple(value.shape), dtype) for name, value in module.state_dict().items()}


def _distribution(name: str, shape: tuple[int, ...], gain: float) -> tuple[float, float]:
    """Mean and standard deviation that keep activations near one."""
    if name.endswith(ONES):
        return 1.0, 0.1
    if len(shape) == 1:
        return 0.0, 0.1
    if "embedding" in name:
        return 0.0, gain
    return 0.0, gain / float(np.prod(shape[1:])) ** 0.5


def _write_tensors(
    path: Path, inventory: Mapping[str, tuple[tuple[int, ...], torch.dtype]], *, seed: int, gain: float
) -> None:
    """A safetensors file, tensor by tensor: 8 bytes header length, JSON header, data."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt", SYNTHETIC_KEY: SYNTHETIC_NOTICE, "seed": str(seed)}}
    offset = 0
    for name, (shape, dtype) in inventory.items():
        size = int(np.prod(shape)) * dtype.itemsize
        header[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for name, (shape, dtype) in inventory.items():
            for values in _values(name, shape, dtype, seed=seed, gain=gain):
                file.write(values.data)


def _values(name: str, shape: tuple[int, ...], dtype: torch.dtype, *, seed: int, gain: float) -> Iterator[Values]:
    """The tensor's values in storage order and type, in chunks."""
    mean, spread = _distribution(name, shape, gain)
    table = _quantiles(mean, spread, dtype)
    stream = np.random.SFC64(np.random.SeedSequence([seed, zlib.crc32(name.encode())]))
    left = int(np.prod(shape))
    row = shape[-1]
    silent = range(2150 * row, 2151 * row) if name.endswith("codec_head.weight") else range(0)
    done = 0
    while left:
        count = min(left, CHUNK)
        values = table[stream.random_raw(-(-count // 4)).view(np.uint16)[:count]]
        start, stop = max(silent.start, done) - done, min(silent.stop, done + count) - done
        if start < stop:
            values[start:stop] = 0
        yield values
        done, left = done + count, left - count


def _quantiles(mean: float, spread: float, dtype: torch.dtype) -> Values:
    """65,536 equally probable values of a normal distribution in the storage of `dtype`."""
    levels = (torch.arange(1 << 16, dtype=torch.float64) + 0.5) / (1 << 16)
    values = (torch.special.ndtri(levels) * spread + mean).to(dtype)
    stored: Values = values.view(torch.uint16).numpy() if dtype is torch.bfloat16 else values.numpy()
    return stored


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")

"""From a model directory to verified modules: strict, unconverted, nothing silently skipped.

The directory has the published layout. Every tensor of `model.safetensors` must be expected by the modules and the
other way round, with the published type and the shape that `config.json` implies. Of the speech tokenizer only
`decoder.*` is loaded; `encoder.*` may be present and is ignored. Hashes are not checked here: which bytes are the
right ones is a question for whoever qualifies them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from engine.codec import CodecDecoder
from engine.config import RESERVED_CODEC_IDS, CodecConfig, TalkerConfig, read_codec_config, read_talker_config
from engine.errors import ModelError
from engine.prompt import PromptBuilder
from engine.talker import SpeechModel, Talker
from engine.tokenizer import TextTokenizer

TALKER_FILE = "model.safetensors"
CODEC_FILE = "speech_tokenizer/model.safetensors"
CONFIG_FILE = "config.json"
CODEC_CONFIG_FILE = "speech_tokenizer/config.json"
REQUIRED_FILES = (CONFIG_FILE, TALKER_FILE, "vocab.json", "merges.txt", CODEC_CONFIG_FILE, CODEC_FILE)
TALKER_DTYPE = "BF16"
CODEC_DTYPE = "F32"
CODEC_PREFIX = "decoder."
IGNORED_PREFIX = "encoder."
SHOWN = 5  # names listed in an error before "and N more"


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """Networks on their device, and the prompt builder that belongs to them."""

    talker: Talker
    codec: CodecDecoder
    prompts: PromptBuilder
    device: torch.device
    dtype: torch.dtype


def load_model(
    directory: Path, *, device: torch.device, dtype: torch.dtype, allow_symlinks: bool = False
) -> LoadedModel:
    """Load a checkpoint directory.

    Args:
        directory: published layout. device: where weights live. dtype: of talker and predictor; the codec stays FP32.
        allow_symlinks: accept a downloader's cache snapshot, whose files are links.

    Raises:
        ModelError: names the file or tensors and what to do.
    """
    check_files(directory, allow_symlinks=allow_symlinks)
    talker_config = read_talker_config(directory / CONFIG_FILE)
    codec_config = read_codec_config(directory / CODEC_CONFIG_FILE)
    tokenizer = TextTokenizer.from_directory(directory)
    _check_agreement(directory, talker_config, codec_config, tokenizer)
    talker = load_talker(directory / TALKER_FILE, talker_config, device=device, dtype=dtype)
    codec = load_codec(directory / CODEC_FILE, codec_config, device=device)
    return LoadedModel(
        talker=talker, codec=codec, prompts=PromptBuilder(tokenizer, talker_config), device=device, dtype=dtype
    )


def check_files(directory: Path, *, allow_symlinks: bool) -> None:
    """Refuse a directory that is incomplete or made of links."""
    if not directory.is_dir():
        raise ModelError(f"{directory} is not a directory; give a model directory with --model")
    for name in REQUIRED_FILES:
        path = directory / name
        linked = [part for part in (path, path.parent) if part != directory and part.is_symlink()]
        if linked and not allow_symlinks:
            raise ModelError(f"{linked[0]} is a symbolic link; copy the regular files, or pass --allow-symlinks")
        if not path.is_file():
            raise ModelError(f"{path} is missing; a model directory holds {', '.join(REQUIRED_FILES)}")


def _check_agreement(directory: Path, talker: TalkerConfig, codec: CodecConfig, tokenizer: TextTokenizer) -> None:
    """Refuse parts that were not made for each other: an id of one would index beyond a table of another."""
    codes = max(talker.vocab - RESERVED_CODEC_IDS, talker.predictor.vocab)
    if codec.codebooks != talker.code_groups or codec.codebook_size < codes:
        raise ModelError(
            f"{directory / CODEC_CONFIG_FILE} has {codec.codebooks} codebooks of {codec.codebook_size} codes, "
            f"{CONFIG_FILE} speaks {talker.code_groups} of {codes}; use the speech tokenizer of the same checkpoint"
        )
    if tokenizer.largest_id >= talker.text_vocab:
        raise ModelError(
            f"{directory / 'vocab.json'} has ids up to {tokenizer.largest_id}, "
            f"{CONFIG_FILE} embeds {talker.text_vocab}; use the text tokenizer of the same checkpoint"
        )


def load_talker(path: Path, config: TalkerConfig, *, device: torch.device, dtype: torch.dtype) -> Talker:
    """Load talker and predictor in `dtype`."""
    with torch.device("meta"):
        model = SpeechModel(config)
    _fill(model, path, prefix="", ignored="", stored=TALKER_DTYPE, device=device, dtype=dtype)
    return model.talker


def load_codec(path: Path, config: CodecConfig, *, device: torch.device) -> CodecDecoder:
    """Load the decoder part of the speech tokenizer in FP32."""
    with torch.device("meta"):
        decoder = CodecDecoder(config)
    _fill(
        decoder,
        path,
        prefix=CODEC_PREFIX,
        ignored=IGNORED_PREFIX,
        stored=CODEC_DTYPE,
        device=device,
        dtype=torch.float32,
    )
    return decoder


def _fill(
    module: nn.Module, path: Path, *, prefix: str, ignored: str, stored: str, device: torch.device, dtype: torch.dtype
) -> None:
    expected = {prefix + name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    with _open(path, device) as file:
        _check_inventory(file, path, expected, ignored=ignored, stored=stored)
        tensors: dict[str, Tensor] = {name.removeprefix(prefix): file.get_tensor(name).to(dtype) for name in expected}
    module.load_state_dict(tensors, strict=True, assign=True)
    module.requires_grad_(False).eval()


@contextmanager
def _open(path: Path, device: torch.device) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is damaged or not a safetensors file ({error}); fetch it again") from error


def _check_inventory(file: Any, path: Path, expected: dict[str, tuple[int, ...]], *, ignored: str, stored: str) -> None:
    found = {name for name in file.keys() if not (ignored and name.startswith(ignored))}  # noqa: SIM118  # not a dict
    problems = _named("missing tensors", sorted(expected.keys() - found))
    problems += _named("unexpected tensors", sorted(found - expected.keys()))
    wrong: list[str] = []
    for name in sorted(expected.keys() & found):
        tensor = file.get_slice(name)
        shape, kind = tuple(tensor.get_shape()), tensor.get_dtype()
        if shape != expected[name] or kind != stored:
            wrong.append(f"{name} is {kind}{list(shape)}, expected {stored}{list(expected[name])}")
    problems += _named("wrong shape or type", wrong)
    if problems:
        raise ModelError(f"{path} does not match its config: {'; '.join(problems)}; use the unmodified checkpoint")


def _named(title: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"{title}: {', '.join(names[:SHOWN])}{more}"]

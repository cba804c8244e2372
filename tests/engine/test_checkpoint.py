"""A checkpoint loads whole or not at all: one fault a test, and the refusal names the file and the mend."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.checkpoint import CODEC_FILE, REQUIRED_FILES, TALKER_FILE, LoadedModel, load_model
from engine.errors import ModelError

CPU = torch.device("cpu")
Change = Callable[[dict[str, Tensor]], object]
HEAD = "talker.codec_head.weight"
ALPHA = "decoder.decoder.1.block.0.alpha"


@pytest.fixture
def directory(quick_directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(quick_directory, tmp_path / "model"))


def load(directory: Path, **options: Any) -> LoadedModel:
    return load_model(directory, device=CPU, dtype=torch.float32, **options)


def refused(directory: Path, *words: str, **options: Any) -> None:
    """Loading fails with a ModelError that holds all these words."""
    with pytest.raises(ModelError) as error:
        load(directory, **options)
    for word in words:
        assert word in str(error.value)


def change(path: Path, changed: Change) -> None:
    tensors = load_file(path)
    changed(tensors)
    save_file(tensors, path)


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | values), "utf-8")


def test_every_tensor_arrives_unchanged_in_the_type_asked_for(directory: Path) -> None:
    stored = load_file(directory / TALKER_FILE)
    for dtype in (torch.float32, torch.bfloat16):
        model = load_model(directory, device=CPU, dtype=dtype)
        loaded = {f"talker.{name}": value for name, value in model.talker.state_dict().items()}
        assert loaded.keys() == stored.keys()
        assert all(value.dtype is dtype for value in loaded.values())
        assert all(torch.equal(loaded[name].to(torch.bfloat16), value) for name, value in stored.items())
    decoder = {f"decoder.{name}": value for name, value in model.codec.state_dict().items()}
    assert all(torch.equal(decoder[name], value) for name, value in load_file(directory / CODEC_FILE).items())
    assert all(value.dtype is torch.float32 for value in decoder.values())


def test_nothing_trains_and_nothing_stays_without_data(directory: Path) -> None:
    model = load(directory)
    for module in (model.talker, model.codec):
        assert not module.training
        assert all(not value.requires_grad and not value.is_meta for value in module.parameters())


def test_encoder_tensors_are_ignored(directory: Path) -> None:
    change(
        directory / CODEC_FILE,
        lambda tensors: tensors.update({"encoder.conv.weight": torch.zeros(2, dtype=torch.int64)}),
    )
    load(directory)


def test_no_directory(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "nowhere", "--model")


@pytest.mark.parametrize("name", REQUIRED_FILES)
def test_a_missing_file(directory: Path, name: str) -> None:
    (directory / name).unlink()
    refused(directory, f"{directory / name} is missing", "vocab.json")


@pytest.mark.parametrize("name", REQUIRED_FILES)
def test_a_symbolic_link(directory: Path, tmp_path: Path, name: str) -> None:
    path = directory / name
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    refused(directory, f"{path} is a symbolic link", "--allow-symlinks")
    load(directory, allow_symlinks=True)


def test_a_linked_folder(directory: Path, tmp_path: Path) -> None:
    folder = directory / "speech_tokenizer"
    shutil.move(folder, tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    refused(directory, f"{folder} is a symbolic link", "--allow-symlinks")
    load(directory, allow_symlinks=True)


def test_a_broken_link_is_missing(directory: Path) -> None:
    (directory / "vocab.json").unlink()
    (directory / "vocab.json").symlink_to(directory / "nothing")
    refused(directory, "vocab.json is missing", allow_symlinks=True)


@pytest.mark.parametrize("name", [TALKER_FILE, CODEC_FILE])
@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_truncated_file(directory: Path, name: str, kept: int) -> None:
    data = (directory / name).read_bytes()
    (directory / name).write_bytes(data[:kept])
    refused(directory, str(directory / name), "damaged", "fetch it again")


def _longer_header(data: bytes) -> bytes:
    return struct.pack("<Q", 2**40) + data[8:]


def _broken_header(data: bytes) -> bytes:
    return data[:8] + b"[" + data[9:]


def _appended(data: bytes) -> bytes:
    return data + b"\0" * 64


@pytest.mark.parametrize("altered", [_longer_header, _broken_header, _appended])
def test_an_altered_header_or_length(directory: Path, altered: Callable[[bytes], bytes]) -> None:
    path = directory / TALKER_FILE
    path.write_bytes(altered(path.read_bytes()))
    refused(directory, str(path), "damaged")


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        (TALKER_FILE, lambda t: t.pop(HEAD), ("missing tensors", HEAD)),
        (TALKER_FILE, lambda t: t.update(extra=torch.zeros(1)), ("unexpected tensors", "extra")),
        (TALKER_FILE, lambda t: t.update({"encoder.x": torch.zeros(1)}), ("unexpected tensors", "encoder.x")),
        (TALKER_FILE, lambda t: t.update({HEAD: t[HEAD][:, :-1].contiguous()}), ("wrong shape", HEAD, "[1088, 32]")),
        (TALKER_FILE, lambda t: t.update({HEAD: t[HEAD].float()}), ("wrong shape or type", HEAD, "F32", "BF16")),
        (TALKER_FILE, lambda t: t.update({HEAD: t[HEAD].half()}), ("wrong shape or type", HEAD, "F16")),
        (TALKER_FILE, lambda t: t.clear(), ("missing tensors", "more")),
        (CODEC_FILE, lambda t: t.pop(ALPHA), ("missing tensors", ALPHA)),
        (CODEC_FILE, lambda t: t.update({"decoder.new": torch.zeros(1)}), ("unexpected tensors", "decoder.new")),
        (CODEC_FILE, lambda t: t.update({ALPHA: t[ALPHA].to(torch.bfloat16)}), ("wrong shape or type", ALPHA, "BF16")),
        (CODEC_FILE, lambda t: t.update({ALPHA: t[ALPHA][None]}), ("wrong shape", ALPHA)),
    ],
)
def test_tensors_that_are_not_the_configs(directory: Path, name: str, changed: Change, words: tuple[str, ...]) -> None:
    change(directory / name, changed)
    refused(directory, str(directory / name), "use the unmodified checkpoint", *words)


def test_a_long_list_of_faults_is_cut_short(directory: Path) -> None:
    change(directory / TALKER_FILE, lambda tensors: tensors.update({f"x{i:02}": torch.zeros(1) for i in range(9)}))
    refused(directory, "x04", "and 4 more")


def test_another_model_type(directory: Path) -> None:
    edit(directory / "config.json", tts_model_type="custom_voice")
    refused(directory, "config.json", "tts_model_type", "not served")


@pytest.mark.parametrize("change_to", [{"num_quantizers": 5}, {"codebook_size": 63}])
def test_a_speech_tokenizer_of_another_checkpoint(directory: Path, change_to: dict[str, int]) -> None:
    path = directory / "speech_tokenizer/config.json"
    edit(path, decoder_config=json.loads(path.read_bytes())["decoder_config"] | change_to)
    refused(directory, str(path), "same checkpoint")


def test_a_text_tokenizer_of_another_checkpoint(directory: Path) -> None:
    path = directory / "vocab.json"
    edit(path, beyond=100_000)
    refused(directory, str(path), "same checkpoint")

"""Export: what training wrote loads strictly, under the published names; what is missing or too large is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint import load_model
from engine.codec import CodecDecoder
from engine.talker import SpeechModel
from recipe import export
from recipe.corpus import read_record
from recipe.errors import RecipeError
from recipe.export import export_model, file_hashes
from recipe.onset import ONSET_FILE
from recipe.talker_training import TALKER_FILE
from tests.recipe.conftest import Tiny


@pytest.fixture
def work(tiny: Tiny, tmp_path: Path) -> Path:
    torch.manual_seed(0)
    shutil.copytree(tiny.directory, tmp_path / "model")
    talker = {name: tensor.bfloat16() for name, tensor in SpeechModel(tiny.talker).state_dict().items()}
    save_file(talker, tmp_path / TALKER_FILE)
    save_file(CodecDecoder(tiny.codec).state_dict(), tmp_path / ONSET_FILE)
    return tmp_path


def test_an_exported_model_loads_strictly_and_holds_the_trained_values(work: Path) -> None:
    export_model(work, work / "model", lambda line: None)
    model = load_model(work / "model", device=torch.device("cpu"), dtype=torch.bfloat16)
    trained = load_file(work / TALKER_FILE)
    assert torch.equal(model.talker.codec_head.weight, trained["talker.codec_head.weight"])
    stored = load_file(work / "model" / "speech_tokenizer" / "model.safetensors")
    assert all(name.startswith("decoder.") and tensor.dtype is torch.float32 for name, tensor in stored.items())
    assert read_record(work / export.HASHES, "export") == file_hashes(work / "model")


def test_an_untrained_talker_is_refused(work: Path) -> None:
    (work / TALKER_FILE).unlink()
    with pytest.raises(RecipeError, match="talker stage"):
        export_model(work, work / "model", lambda line: None)


def test_too_many_bytes_are_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "LARGEST_BYTES", 1_000)
    with pytest.raises(RecipeError, match="smaller shape"):
        export_model(work, work / "model", lambda line: None)

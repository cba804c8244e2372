"""Shared pieces of the engine's tests: one tiny checkpoint, loaded once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.checkpoint import LoadedModel, load_model
from tests.engine.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture(scope="session")
def tiny_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_model(tiny_directory: Path) -> LoadedModel:
    return load_model(tiny_directory, device=torch.device("cpu"), dtype=torch.float32)

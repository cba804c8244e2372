"""The speaker behind the adapter says what the package itself computes, and knows how each utterance ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from qualification.subjects.official_model import OfficialSpeaker
from qualification.subjects.official_sampling import to_arguments
from tests.engine.tiny_checkpoint import TinyShape, write_tiny_checkpoint
from tests.parity.official import OfficialModel, Utterance

pytestmark = pytest.mark.parity

FRAMES = 12
ASKED = Utterance(text="The kettle is on.", instruction="A calm voice.", language="English")
GREEDY = {"strategy": "greedy", "repetition_penalty": 1.05, "predictor": {"strategy": "greedy"}}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("speaker"), TinyShape(seed=1, ends=False))


@pytest.fixture(scope="module")
def speaker(directory: Path) -> OfficialSpeaker:
    return OfficialSpeaker(directory, device="cpu", dtype=torch.float32)


def spoken(speaker: OfficialSpeaker, sampling: dict[str, object], *, seed: int = 1):
    return speaker.speak(
        text=ASKED.text, instruction=ASKED.instruction, language=ASKED.language, seed=seed, frames=FRAMES,
        arguments=to_arguments(sampling),
    )  # fmt: skip


def test_greedy_speech_is_the_package_s_own(directory: Path, speaker: OfficialSpeaker) -> None:
    official = OfficialModel(directory)
    codes = official.generate([ASKED], frames=FRAMES, full_text=True).codes[0]
    expected = np.rint(official.decode(codes).numpy().clip(-1, 1) * 32_767)
    said = spoken(speaker, GREEDY)
    assert (said.frames, said.ended) == (FRAMES, False)
    assert np.array_equal(np.frombuffer(said.pcm, "<i2"), expected)


def test_a_seed_decides_what_is_drawn(speaker: OfficialSpeaker) -> None:
    first, again, other = (spoken(speaker, {}, seed=seed).pcm for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_an_end_drawn_by_the_model_is_known(speaker: OfficialSpeaker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = spoken(speaker, GREEDY)
    drawn: list[torch.Tensor] = []
    inner = speaker._model.talker.generate

    def recorded(**given: object) -> object:
        result = inner(**given)
        drawn.append(result.sequences)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(speaker._model.talker, "generate", recorded)
        spoken(speaker, GREEDY)
    monkeypatch.setattr(speaker, "_eos", int(drawn[0][0, -1]))
    assert spoken(speaker, GREEDY).ended
    assert not first.ended

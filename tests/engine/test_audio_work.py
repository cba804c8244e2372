"""From samples to packets: exact at the ends, and what is no number is never audio."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.audio_work import as_pcm, packets_of


def test_full_scale_and_silence_are_exact() -> None:
    pcm = as_pcm(torch.tensor([[-7.0, -1.0, 0.0, 1.0, 7.0]])).to(torch.int16).numpy()
    assert packets_of(pcm) == [np.array([-32_767, -32_767, 0, 32_767, 32_767], "<i2").tobytes()]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_sample_that_is_no_number_spoils_its_row_alone(place: int, value: float) -> None:
    samples = torch.zeros(2, 3)
    samples[1, place] = value
    whole, spoilt = packets_of(as_pcm(samples).to(torch.int16).numpy())
    assert (whole, spoilt) == (bytes(6), None)

"""Encoder and quantiser: causal, bounded, and codebooks that follow and revive."""

from __future__ import annotations

import pytest
import torch

from engine.codec import Codebook
from recipe.codec_training import Codec
from recipe.encoder import follow, nearest, quantise
from tests.recipe.conftest import SHAPE, Tiny


@pytest.fixture
def codec(tiny: Tiny) -> Codec:
    torch.manual_seed(0)
    return Codec(tiny.codec, width=SHAPE.encoder_width, device=torch.device("cpu"))


def test_a_frame_hears_nothing_after_itself(codec: Codec) -> None:
    wave = torch.randn(1, 6 * 1_920) * 0.1
    changed = wave.clone()
    changed[:, 4 * 1_920 :] = 0.0
    before, after = codec.encoder(wave), codec.encoder(changed)
    assert before.shape == (1, SHAPE.codebook_dim, 6)
    assert torch.allclose(before[..., :4], after[..., :4], atol=1e-5)
    assert not torch.allclose(before[..., 4:], after[..., 4:], atol=1e-3)


def test_latents_have_unit_variance_whatever_the_level(codec: Codec) -> None:
    latent = codec.encoder(torch.randn(1, 4 * 1_920) * 3.0)
    assert torch.allclose(latent.var(dim=1, correction=0), torch.ones(1, 4), atol=1e-2)


def test_fresh_output_depends_on_the_latent(codec: Codec) -> None:
    with torch.no_grad():
        one, other = (codec.decoder.synthesize(torch.randn(1, SHAPE.codebook_dim, 4)) for _ in range(2))
    assert float((one - other).std()) > 0.3 * float(one.std()), "a signal must not die out in a fresh decoder"


def test_quantised_latent_is_what_the_engine_decodes_from_the_codes(codec: Codec) -> None:
    latent = codec.encoder(torch.randn(2, 5 * 1_920) * 0.1)
    for _ in range(20):
        found = quantise(codec.decoder, latent, learn=True)
    found = quantise(codec.decoder, latent, learn=False)
    assert torch.allclose(found.latent, codec.decoder.quantizer.decode(found.codes), atol=1e-4)
    assert found.codes.shape == (2, 16, 5)
    assert int(found.codes.max()) < SHAPE.codebook_size


def test_codebooks_follow_the_points_and_unused_entries_restart() -> None:
    torch.manual_seed(1)
    codebook = Codebook(8, 2).requires_grad_(False)
    codebook.cluster_usage.zero_()
    centres = torch.tensor([[4.0, 0.0], [-4.0, 0.0], [0.0, 4.0], [0.0, -4.0]])
    for _ in range(300):
        points = centres[torch.randint(4, (64,))] + 0.05 * torch.randn(64, 2)
        follow(codebook, points, nearest(codebook.vectors(), points))
    error = torch.cdist(centres, codebook.vectors()).min(dim=1).values
    assert float(error.max()) < 0.3
    assert float(codebook.cluster_usage.min()) > 0.0

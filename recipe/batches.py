"""Training batches of the talker, assembled on the device from tables: nothing waits for the host, so a whole step
can be one captured graph.

Everything is index arithmetic with fixed shapes. Rows beyond an utterance's end are padding and carry no loss;
attention is causal, so they disturb nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.config import TalkerConfig
from recipe.errors import RecipeError
from recipe.prompts import NONE, PromptTables
from recipe.settings import Bucket, TalkerSettings
from recipe.voices import VOICES

IGNORED = -100  # target without loss


@dataclass(frozen=True, kw_only=True)
class Batch:
    """B utterances of L positions.

    `text` [B, L] ids; `control` [B, L] codec control id or -1; `heard` [B, L, 16] the frame's codes as the talker
    hears them, -1 outside frames;
    `target` [B, L] codebook 0 or end of speech that the position must predict; `places` [B, P] positions whose frame
    the predictor is trained on;
    `frames` [B, P, 16] these frames' true codes.
    """

    text: Tensor
    control: Tensor
    heard: Tensor
    target: Tensor
    places: Tensor
    frames: Tensor


class Corpus:
    """All tables on one device."""

    def __init__(
        self,
        prompts: PromptTables,
        codes: npt.NDArray[np.uint8],
        frames: npt.NDArray[np.int64],
        config: TalkerConfig,
        device: torch.device,
    ) -> None:
        def put(table: npt.NDArray[np.int16] | npt.NDArray[np.uint8] | npt.NDArray[np.int64]) -> Tensor:
            return torch.from_numpy(table).to(device)

        self.device, self.config = device, config
        self.body_text, self.body_codec = put(prompts.body_text), put(prompts.body_codec)
        self.body_length = put(prompts.body_length).long()
        self.trailing, self.trailing_length = put(prompts.trailing), put(prompts.trailing_length).long()
        self.instruction, self.instruction_length = put(prompts.instruction), put(prompts.instruction_length).long()
        self.voice, self.explicit = put(prompts.voice).long(), put(prompts.explicit).bool()
        self.codes = put(codes)  # [sum of frames, 16]
        self.frames = put(frames)
        self.first_frame = self.frames.cumsum(0) - self.frames
        self.descriptions = (len(self.instruction) - 1) // len(VOICES)

    def members(self, buckets: tuple[Bucket, ...]) -> list[Tensor]:
        """Utterances [n] of each bucket: those that fit with the longest instruction, and not into a shorter bucket.

        Raises:
            RecipeError: a bucket would be empty.
        """
        need = self.body_length.amax(dim=1) + self.frames + self.instruction_length.amax() + 1
        groups, floor = [], 0
        for bucket in buckets:
            groups.append(torch.nonzero((need > floor) & (need <= bucket.length))[:, 0])
            floor = bucket.length
            if not len(groups[-1]):
                raise RecipeError(f"no utterance fits a bucket of {bucket.length} positions; change the buckets")
        return groups


def draw(corpus: Corpus, members: Tensor, bucket: Bucket, settings: TalkerSettings) -> Batch:
    """A random batch of a bucket."""
    pick = members[_random_index(len(members), bucket.rows, corpus.device)]  # [B]
    chance = torch.rand(3, bucket.rows, device=corpus.device)
    streaming = chance[0] < settings.streaming_share
    mode = streaming.long() * 2 + (corpus.explicit[pick] & (chance[1] < 0.5)).long()
    spoken_of = corpus.voice[pick] * corpus.descriptions + _random_index(
        corpus.descriptions, bucket.rows, corpus.device
    )
    described = torch.where(
        chance[2] < settings.undescribed_share, torch.full_like(spoken_of, len(corpus.instruction) - 1), spoken_of
    )
    return assemble(corpus, pick, mode, described, bucket.length, settings)


def assemble(
    corpus: Corpus, pick: Tensor, mode: Tensor, instruction: Tensor, length: int, settings: TalkerSettings
) -> Batch:
    """Put utterances `pick` [B] in `mode` [B] under `instruction` [B] together, `length` positions each."""
    device, ids = corpus.device, corpus.config
    lead = corpus.instruction_length[instruction][:, None]  # [B, 1]
    body = corpus.body_length[pick, mode][:, None]
    count = corpus.frames[pick][:, None]
    position = torch.arange(length, device=device)[None]  # [1, L]
    in_body = position - lead
    frame = in_body - body  # [B, L], 0 at the first frame
    is_body, is_frame = (in_body >= 0) & (frame < 0), (frame >= 0) & (frame < count)

    late = torch.where(
        (mode >= 2)[:, None] & (frame < corpus.trailing_length[pick][:, None]),
        _take(corpus.trailing[pick], frame),
        torch.full_like(frame, ids.text_ids.tts_pad),
    )
    text = torch.where(frame >= 0, late, _take(corpus.body_text[pick, mode], in_body))
    text = torch.where(in_body < 0, _take(corpus.instruction[instruction], position.expand_as(in_body)), text)
    control = torch.where(is_body, _take(corpus.body_codec[pick, mode], in_body), torch.full_like(frame, NONE))

    start = corpus.first_frame[pick][:, None]
    true = corpus.codes[(start + frame.clamp(min=0)).clamp(max=len(corpus.codes) - 1)].long()  # [B, L, 16]
    heard = torch.where(is_frame[..., None], _corrupt(true, ids.predictor.vocab, settings), torch.full_like(true, NONE))
    ahead = frame + 1  # the frame that this position must predict
    following = corpus.codes[(start + ahead.clamp(min=0)).clamp(max=len(corpus.codes) - 1), 0].long()
    target = torch.where(ahead == count, torch.full_like(following, ids.codec_ids.eos), following)
    target = torch.where((ahead >= 0) & (ahead <= count), target, torch.full_like(target, IGNORED))

    chosen = (torch.rand(len(pick), settings.predictor_frames, device=device) * count).long()  # [B, P]
    return Batch(
        text=text,
        control=control,
        heard=heard,
        target=target,
        places=lead + body - 1 + chosen,
        frames=corpus.codes[start + chosen].long(),
    )


def _corrupt(codes: Tensor, size: int, settings: TalkerSettings) -> Tensor:
    """Replace some codes, and all codes of some frames, at random: the talker must live with its own mistakes."""
    single = torch.rand(codes.shape, device=codes.device) < settings.corrupted_codes
    whole = torch.rand(codes.shape[:2], device=codes.device) < settings.corrupted_frames
    noise = (torch.rand(codes.shape, device=codes.device) * size).long().clamp(max=size - 1)
    return torch.where(single | whole[..., None], noise, codes)


def _take(table: Tensor, index: Tensor) -> Tensor:
    """table [B, W] at index [B, L], clamped into the table."""
    return table.gather(1, index.clamp(0, table.shape[1] - 1)).long()


def _random_index(limit: int, count: int, device: torch.device) -> Tensor:
    return (torch.rand(count, device=device) * limit).long().clamp(max=limit - 1)

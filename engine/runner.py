"""Tensors in motion: prefill of one row, one frame of all rows, one codec packet of some rows.

The only module that runs the networks in service. It decides nothing: the scheduler says who steps and what is decoded. `step` is a function
over static prefix views with one read-back at its end, so that a captured graph can replace its body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.checkpoint import LoadedModel
from engine.config import RESERVED_CODEC_IDS
from engine.contract import SAMPLES_PER_FRAME, Sampling
from engine.kv import DecodeStore, LockstepStore, PrefillStore
from engine.layers import Rotary
from engine.prompt import PromptPlan, prompt_rows, trailing_rows
from engine.rows import RowLimits, Rows
from engine.sampling import NEVER, draw, penalise

MIN_TOKENS = 2  # end of speech is impossible for the first two codebook-0 draws
PCM_SCALE = 32_767.0


class Runner:
    """Runs one loaded model over a fixed number of rows."""

    def __init__(self, model: LoadedModel, limits: RowLimits) -> None:
        self._talker, self._codec = model.talker, model.codec
        config, device = model.talker.config, model.device
        self._device, self._eos = device, config.codec_ids.eos
        self.rows = Rows(config, model.codec.config, limits, device=device, dtype=model.dtype)
        self._codec_state = model.codec.new_state(limits.rows, device)
        self._rotary = Rotary(config.transformer, length=limits.positions, device=device)
        self._predictor_rotary = Rotary(config.predictor.transformer, length=config.code_groups + 1, device=device)
        self._forbidden = torch.zeros(config.vocab, dtype=torch.bool, device=device)
        self._forbidden[config.vocab - RESERVED_CODEC_IDS :] = True
        self._forbidden[self._eos] = False
        with torch.inference_mode():
            self._pad_row = self._talker.embed_text(torch.tensor([config.text_ids.tts_pad], device=device))  # [1, C]

    @property
    def eos(self) -> int:
        """The codebook-0 id that ends an utterance."""
        return self._eos

    @property
    def bytes_per_row(self) -> int:
        """Memory that one request's row reserves: cache, counters, codes and codec state."""
        return self.rows.bytes_per_row + self._codec_state.bytes_per_row

    @torch.inference_mode()
    def prefill(self, row: int, plan: PromptPlan, *, seed: int, sampling: Sampling) -> None:
        """Run a prompt into `row` and draw codebook 0 of its first frame."""
        embeds = prompt_rows(self._talker, plan, self._device)
        trailing = trailing_rows(self._talker, plan, self._device)
        rows = self.rows
        rows.admit(row, seed=seed, sampling=sampling, prompt=plan.length, trailing=trailing)
        self._codec_state.reset(row)
        hidden = self._talker.model(
            embeds[None], self._rotary.first(plan.length), PrefillStore(rows.cache, row)
        )  # [1, T, C]
        rows.hidden[row] = hidden[0, -1]
        only = slice(row, row + 1)
        code = self._draw_code0(rows.hidden[only], only, frame=rows.frame[only])
        rows.code0[only] = code
        rows.seen[row, code] = True

    @torch.inference_mode()
    def step(self, advance: Sequence[bool]) -> list[int]:
        """Advance rows 0..n-1 by one frame, n = len(advance); a row with False computes but stays where it is.

        Returns:
            Codebook 0 of the next frame of each row; `eos` means that the frame just completed was the last.
        """
        count, rows = len(advance), self.rows
        live = slice(0, count)
        frame = rows.frame[live]
        codes = self._complete_frame(count, frame)  # [B, 16]
        rows.codes[rows.index[live], frame] = codes
        position = rows.position[live]
        embeds = self._talker.embed_frames(codes) + self._next_text(live, frame)
        hidden = self._talker.model(
            embeds[:, None], self._rotary.at(position[:, None]), DecodeStore(rows.cache, position, rows.span(count))
        )[:, 0]  # [B, C]
        code0 = self._draw_code0(hidden, live, frame=frame + 1)
        self._commit(live, hidden, code0, advance)
        rows.note_step(list(advance))
        following: list[int] = code0.tolist()
        return following

    @torch.inference_mode()
    def decode(self, selected: Sequence[int], starts: Sequence[int], frames: int) -> list[bytes]:
        """Decode `frames` frames of each selected row from frame `starts` on, continuing its audio stream.

        Returns:
            PCM of each row: frames x 1,920 samples, signed 16-bit little-endian.
        """
        rows = torch.tensor(list(selected), device=self._device)
        window = torch.tensor(list(starts), device=self._device)[:, None] + torch.arange(frames, device=self._device)
        codes = self.rows.codes[rows[:, None], window].transpose(1, 2)  # [B, 16, T]
        self._codec_state.select(rows)
        samples = self._codec(codes, self._codec_state)  # [B, 1920 T]
        pcm: np.ndarray[tuple[int, int], np.dtype[np.int16]] = (
            (samples * PCM_SCALE).round().to(torch.int16).cpu().numpy()
        )
        assert pcm.shape[1] == frames * SAMPLES_PER_FRAME
        return [row.astype("<i2", copy=False).tobytes() for row in pcm]

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """Put the request of row `source` on row `target`."""
        self.rows.move(source, target)
        self._codec_state.move(source, target)

    def codes(self, row: int, frames: int) -> Tensor:
        """The first `frames` complete frames of a row [frames, 16]."""
        return self.rows.codes[row, :frames].clone()

    def _complete_frame(self, count: int, frame: Tensor) -> Tensor:
        """Codebooks 0..15 [B, 16] of the frame in work."""
        rows = self.rows
        settings = rows.predictor_sampling.first(count)
        uniform = rows.uniform[rows.index[:count], frame]  # [B, 16]
        code0 = rows.code0[:count]

        def choose(codebook: int, logits: Tensor) -> Tensor:
            return draw(logits, settings, uniform[:, codebook])

        rest = self._talker.code_predictor.generate(
            rows.hidden[:count],
            self._talker.embed_codec(code0),
            rotary=self._predictor_rotary,
            store=LockstepStore(rows.predictor_cache, count),
            choose=choose,
        )
        return torch.cat((code0[:, None], rest), dim=1)

    def _next_text(self, live: slice, frame: Tensor) -> Tensor:
        """The text row [B, C] that joins this frame: the next trailing row, or tts_pad."""
        rows = self.rows
        if rows.limits.trailing == 0:
            return self._pad_row
        reach = frame.clamp(max=rows.limits.trailing - 1)
        trailing = rows.trailing[rows.index[live], reach]
        return torch.where((frame < rows.trailing_length[live])[:, None], trailing, self._pad_row)

    def _draw_code0(self, hidden: Tensor, live: slice, *, frame: Tensor) -> Tensor:
        """Draw codebook 0 [B] of frame number `frame` [B] from hidden states [B, C]."""
        rows = self.rows
        logits = penalise(self._talker.codec_head(hidden).float(), rows.seen[live], rows.penalty[live])
        logits = logits.masked_fill(self._forbidden, NEVER)
        early = frame < MIN_TOKENS
        logits[:, self._eos] = logits[:, self._eos].masked_fill(early, NEVER)
        uniform = rows.uniform[rows.index[live], frame, 0]
        return draw(logits, rows.talker_sampling.rows(live), uniform)

    def _commit(self, live: slice, hidden: Tensor, code0: Tensor, advance: Sequence[bool]) -> None:
        """Make the step's outcome the state of the rows that advance."""
        rows = self.rows
        index = rows.index[live]
        if all(advance):
            rows.hidden[live], rows.code0[live] = hidden, code0
            rows.seen[index, code0] = True
            rows.position[live] += 1
            rows.frame[live] += 1
            return
        moved = torch.tensor(list(advance), device=self._device)
        rows.hidden[live] = torch.where(moved[:, None], hidden, rows.hidden[live])
        rows.code0[live] = torch.where(moved, code0, rows.code0[live])
        rows.seen[index, code0] |= moved
        rows.position[live] += moved
        rows.frame[live] += moved

"""Tensors in motion: prefill of one row, one frame of all rows, one codec packet of some rows.

The only module that runs the networks in service. It decides nothing: the scheduler says who steps and what is
decoded. `step` is a function over static prefix views with one read-back at its end, so that a captured graph can
replace its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from engine.audio_work import AudioWork, FinishedAudio, Packet, ThreadAudio, as_pcm, packets_of
from engine.checkpoint import LoadedModel
from engine.contract import SAMPLES_PER_FRAME, Sampling
from engine.frame import FrameProgram
from engine.frame_ops import FrameOps
from engine.frame_weights import FrameWeights, frame_weights
from engine.kv import PrefillStore
from engine.layers import Rotary
from engine.plain_ops import PlainOps, draw_code0
from engine.prompt import PromptPlan, prompt_rows, trailing_rows
from engine.quant import QuantReport, quantise_weights
from engine.rows import RowLimits, Rows


class Runner:
    """Runs one loaded model over a fixed number of rows."""

    spare_codec_rows = 0

    def __init__(self, model: LoadedModel, limits: RowLimits, *, int8: bool = False) -> None:
        self._talker, self._codec = model.talker, model.codec
        config, device = model.talker.config, model.device
        self._device, self._eos = device, config.codec_ids.eos
        self.rows = Rows(config, model.codec.config, limits, device=device, dtype=model.dtype)
        self._codec_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="codec")
        self._codec_state = model.codec.new_state(limits.rows + self.spare_codec_rows, device)
        self._rotary = Rotary(config.transformer, length=limits.positions, device=device)
        self._predictor_rotary = Rotary(config.predictor.transformer, length=config.code_groups + 1, device=device)
        with torch.inference_mode():
            pad_row = self._talker.embed_text(torch.tensor([config.text_ids.tts_pad], device=device))  # [1, C]
        weights = frame_weights(self._talker)
        self.quantisation: QuantReport | None = None
        if int8:
            weights, self.quantisation = quantise_weights(weights, packed=not self.on_host)
        self.weights, self.pad_row, self.prompts = weights, pad_row, model.prompts
        self._frame = self.program(self._make_ops(weights))

    def program(self, ops: FrameOps) -> FrameProgram:
        """The frame step of this runner's weights and rows over other operations."""
        return FrameProgram(
            weights=self.weights,
            rows=self.rows,
            ops=ops,
            rotary=self._rotary,
            predictor_rotary=self._predictor_rotary,
            pad_row=self.pad_row,
            eos=self._eos,
        )

    @property
    def eos(self) -> int:
        """The codebook-0 id that ends an utterance."""
        return self._eos

    @property
    def on_host(self) -> bool:
        """Whether rows live in the host's memory."""
        return self._device.type == "cpu"

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
        logits = self._talker.codec_head(rows.hidden[only]).float()
        code = draw_code0(logits, rows, only, rows.frame[only], self._eos)
        rows.code0[only] = code
        rows.seen[row, code] = True

    def step(self, advance: Sequence[bool]) -> list[int]:
        """Advance rows 0..n-1 by one frame, n = len(advance); a row with False computes but stays where it is.

        Returns:
            Codebook 0 of the next frame of each row; `eos` means that the frame just completed was the last, `frame.LOST` that the row's
            state is not finite.
        """
        self.begin_step(advance)
        return self.end_step()

    @torch.inference_mode()
    def begin_step(self, advance: Sequence[bool]) -> None:
        """The first half of `step`: what can be started without waiting for it."""
        count, rows = len(advance), self.rows
        rows.advance[:count] = torch.tensor(list(advance))
        self._following = self._frame(count, span=rows.span(count))
        rows.note_step(list(advance))

    def end_step(self) -> list[int]:
        """The second half: the result."""
        following: list[int] = self._following.tolist()
        return following

    def start_decode(self, selected: Sequence[int], starts: Sequence[int], frames: int) -> AudioWork:
        """Ask for a packet; see `decode`. At most one packet of a row may be in work.

        A first packet is made at once, since somebody waits for it in silence; a later one beside the next frame, on a thread of its own.
        """
        codes = self._packet_codes(selected, starts, frames)
        work = self._codec_thread.submit(self._synthesise, tuple(selected), codes)
        return FinishedAudio(packets=work.result()) if 0 in starts else ThreadAudio(packets=work)

    def decode(self, selected: Sequence[int], starts: Sequence[int], frames: int) -> list[Packet]:
        """Decode `frames` frames of each selected row from frame `starts` on, continuing its audio stream.

        Returns:
            PCM of each row: frames x 1,920 samples, signed 16-bit little-endian; None where one is not finite.
        """
        return self._synthesise(selected, self._packet_codes(selected, starts, frames))

    @torch.inference_mode()
    def _packet_codes(self, selected: Sequence[int], starts: Sequence[int], frames: int) -> Tensor:
        """Codes [B, 16, T] of T frames from `starts` on."""
        rows = torch.tensor(list(selected), device=self._device)
        window = torch.tensor(list(starts), device=self._device)[:, None] + torch.arange(frames, device=self._device)
        return self.rows.codes[rows[:, None], window].transpose(1, 2)

    @torch.inference_mode()
    def _synthesise(self, selected: Sequence[int], codes: Tensor) -> list[Packet]:
        """PCM of the selected rows' next frames, given as codes [B, 16, T]."""
        self._codec_state.select(torch.tensor(list(selected), device=self._device))
        samples = self._codec.unlimited(codes, self._codec_state)  # [B, 1920 T]
        pcm: np.ndarray[tuple[int, int], np.dtype[np.int16]] = as_pcm(samples).to(torch.int16).cpu().numpy()
        assert pcm.shape[1] == codes.shape[2] * SAMPLES_PER_FRAME
        return packets_of(pcm)

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """Put the request of row `source` on row `target`."""
        self.rows.move(source, target)
        self._codec_state.move(source, target)

    @torch.inference_mode()
    def scrub(self, row: int) -> None:
        """Forget the cache of a row whose state is not finite: what a later request's mask multiplies by zero must not be NaN."""
        self.rows.cache.data[:, :, row].zero_()

    @property
    def graph_replays(self) -> int:
        """Captured graphs replayed so far."""
        return 0

    def codes(self, row: int, frames: int) -> Tensor:
        """The first `frames` complete frames of a row [frames, 16]."""
        return self.rows.codes[row, :frames].clone()

    def _make_ops(self, weights: FrameWeights) -> FrameOps:
        return PlainOps()

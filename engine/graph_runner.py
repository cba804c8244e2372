"""The runner of an accelerator: every shape captured before service, three streams, one read-back a frame.

Frames and prefills run on one stream, first packets of the codec on a second and later packets on a third, so that
nobody's audio waits for another's and a newcomer's first packet for neither. Events order them: a packet starts when
the frame that completed it is done. What a step decides on the host (who advances) and what the host needs of it (the
drawn codes) travel through pinned memory inside the graph.
"""

# Streams and events of torch.cuda carry no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.audio_work import AudioPart, DeviceAudio, Packet, as_pcm
from engine.checkpoint import LoadedModel
from engine.config import RESERVED_CODEC_IDS
from engine.contract import LATER_PACKET_FRAMES, SAMPLES_PER_FRAME, Sampling
from engine.frame_ops import FrameOps
from engine.frame_weights import FrameWeights
from engine.graph_plan import GraphPlan
from engine.graphs import CudaGraphDriver, GraphReport, GraphSet, bucket_for, write_static
from engine.kernels import sampling as kernels
from engine.kernels.launch import Launch, default_launch
from engine.kernels.ops import FusedOps
from engine.kernels.snake import fuse_snakes
from engine.kv import Attended, KVCache
from engine.pinned import pinned, pinned_empty
from engine.prompt import PromptPlan
from engine.rows import RowLimits
from engine.runner import Runner

FRAME_PRIORITY, FIRST_PRIORITY, LATER_PRIORITY = -2, -3, 0


class GraphRunner(Runner):
    """A `Runner` whose frames, prefills and packets are graph replays."""

    spare_codec_rows = 1  # what fills up a bucket works here

    def __init__(
        self,
        model: LoadedModel,
        limits: RowLimits,
        *,
        plan: GraphPlan | None = None,
        int8: bool = False,
        launch: Launch | None = None,
    ) -> None:
        self._launch = launch or default_launch(model.device)
        super().__init__(model, limits, int8=int8)
        self._plan = (plan or GraphPlan()).within(limits, LATER_PACKET_FRAMES)
        self._stream = torch.cuda.Stream(self._device, priority=FRAME_PRIORITY)
        self._lanes = (
            CodecLane("first packet", torch.cuda.Stream(self._device, priority=FIRST_PRIORITY)),
            CodecLane("packet", torch.cuda.Stream(self._device, priority=LATER_PRIORITY)),
        )
        self._graphs = GraphSet(CudaGraphDriver(self._stream))
        self._host_advance = pinned_empty((limits.rows,), torch.bool)
        self._host_advance.zero_()
        self._host_codes = pinned_empty((limits.rows,), torch.int64)
        self._stepped = torch.cuda.Event()
        self._prompts: dict[int, Tensor] = {}
        self._code = torch.zeros(1, dtype=torch.int64, device=self._device)
        self._steps = 0
        torch.backends.cudnn.allow_tf32 = False  # the codec is FP32; shortened mantissas break its parity
        fuse_snakes(self._codec)
        self._settle()
        self._capture()

    @property
    def graph_reports(self) -> dict[str, GraphReport]:
        """What was captured and replayed, by stream."""
        return {"frames": self._graphs.report, **{lane.name: lane.graphs.report for lane in self._lanes}}

    @property
    def captured(self) -> list[tuple[GraphSet, torch.cuda.Stream]]:
        """Every set of graphs with its stream."""
        return [(self._graphs, self._stream), *((lane.graphs, lane.stream) for lane in self._lanes)]

    @property
    def graph_replays(self) -> int:
        return self._graphs.replays + sum(lane.graphs.replays for lane in self._lanes)

    @torch.inference_mode()
    def prefill(self, row: int, plan: PromptPlan, *, seed: int, sampling: Sampling) -> None:
        """See `Runner.prefill`; refused where the prompt fits no captured bucket."""
        size = bucket_for("prompt length", plan.length, self._plan.prompts)
        with torch.cuda.stream(self._stream):
            self.rows.admit(row, seed=seed, sampling=sampling, prompt=plan.length, trailing=self._trailing(plan))
            self._codec_state.reset(row)
            pad = size - plan.length
            codec = [-1 if code is None else code for code in plan.codec]
            packed = [*plan.text, *[0] * pad, *codec, *[-1] * pad, plan.length, row]
            write_static(self._prompts[size], pinned(packed), "prompt")
            self._graphs.replay(f"prefill {size}")

    @torch.inference_mode()
    def begin_step(self, advance: Sequence[bool]) -> None:
        """Start a frame step; the graph of the smallest bucket of rows runs while the host does other things."""
        size = bucket_for("rows", len(advance), self._plan.rows)
        flags = self._host_advance.numpy()
        flags[:] = False
        flags[: len(advance)] = advance
        with torch.cuda.stream(self._stream):
            self._graphs.replay(f"frame {size}")
            self._stepped.record()
        self._steps = len(advance)
        self.rows.note_step(list(advance))

    def end_step(self) -> list[int]:
        """Wait for the step. Returns codebook 0 of the next frame of each row."""
        self._stepped.synchronize()
        following: list[int] = self._host_codes[: self._steps].tolist()
        return following

    @torch.inference_mode()
    def start_decode(self, selected: Sequence[int], starts: Sequence[int], frames: int) -> DeviceAudio:
        """Queue a packet; see `Runner.decode`. Packets that begin an utterance have a stream of their own."""
        lane = self._lanes[0 if frames == 1 and not any(starts) else 1]
        largest = self._plan.codec_rows[-1]
        parts = [
            self._start_part(lane, selected[at : at + largest], starts[at : at + largest], frames)
            for at in range(0, len(selected), largest)
        ]
        return DeviceAudio(parts=parts, frames=frames)

    def decode(self, selected: Sequence[int], starts: Sequence[int], frames: int) -> list[Packet]:
        """See `Runner.decode`."""
        return self.start_decode(selected, starts, frames).take()

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """See `Runner.move`; no packet of either row may be in work."""
        with torch.cuda.stream(self._stream):
            super().move(source, target)

    def scrub(self, row: int) -> None:
        with torch.cuda.stream(self._stream):
            super().scrub(row)

    def codes(self, row: int, frames: int) -> Tensor:
        with torch.cuda.stream(self._stream):
            return super().codes(row, frames).cpu()

    def _make_ops(self, weights: FrameWeights) -> FrameOps:
        return FusedOps(weights, self.rows.limits.rows, self._device, launch=self._launch)

    def _trailing(self, plan: PromptPlan) -> Tensor:
        """Text rows that join the frames [N, C]; the one part of a prefill whose length is not padded to a bucket."""
        if not plan.trailing:
            return self.rows.trailing[0, :0]
        ids = pinned(plan.trailing).to(self._device, non_blocking=True)
        return self._talker.embed_text(ids)

    def _start_part(self, lane: CodecLane, selected: Sequence[int], starts: Sequence[int], frames: int) -> AudioPart:
        count = bucket_for("packet rows", len(selected), self._plan.codec_rows)
        size = bucket_for("packet frames", frames, self._plan.codec_frames)
        pad, spare = count - len(selected), self.rows.limits.rows
        packed = pinned([[*selected, *[spare] * pad], [*starts, *[0] * pad]])
        with torch.cuda.stream(self._stream):
            where = packed.to(self._device, non_blocking=True)
            window = where[1][:, None] + torch.arange(size, device=self._device)
            window = window.clamp_(max=self.rows.codes.shape[1] - 1)
            codes = self.rows.codes[where[0].clamp(max=spare - 1)[:, None], window].transpose(1, 2).contiguous()
            complete = torch.cuda.Event()
            complete.record()
        return lane.start(codes, where[0], complete, rows=len(selected))

    @torch.inference_mode()
    def _capture(self) -> None:
        limits = self.rows.limits
        with torch.cuda.stream(self._stream):
            for row in range(limits.rows):
                self.rows.admit(row, seed=0, sampling=Sampling(), prompt=1, trailing=self.rows.trailing[0, :0])
        self._stream.synchronize()
        for size in reversed(self._plan.prompts):
            self._prompts[size] = torch.zeros(2 * size + 2, dtype=torch.int64, device=self._device)
            self._prompts[size][-2] = 1
            self._graphs.capture(f"prefill {size}", self._prefill_body(size))
        for size in reversed(self._plan.rows):
            self._graphs.capture(f"frame {size}", self._frame_body(min(size, limits.rows)))
        for lane, frames in zip(self._lanes, ((1,), self._plan.codec_frames), strict=True):
            for count in reversed(self._plan.codec_rows):
                for size in frames:
                    lane.capture(self._codec_body, count, size, self.rows.groups, self._device)
        self._settle()

    def _settle(self) -> None:
        """Wait for everything, and give back what only loading and the runs before each capture needed."""
        torch.cuda.synchronize(self._device)
        torch.cuda.empty_cache()

    def _frame_body(self, count: int) -> Callable[[], None]:
        def body() -> None:
            self.rows.advance[:count].copy_(self._host_advance[:count], non_blocking=True)
            code0 = self._frame(count, span=self.rows.limits.positions)
            self._host_codes[:count].copy_(code0, non_blocking=True)

        return body

    def _prefill_body(self, size: int) -> Callable[[], None]:
        prompt, talker, rows = self._prompts[size], self._talker, self.rows
        text, codec, length, row = prompt[:size], prompt[size : 2 * size], prompt[-2:-1], prompt[-1:]

        def body() -> None:
            beside = torch.where((codec >= 0)[:, None], talker.embed_codec(codec.clamp(min=0)), 0.0)
            embeds = talker.embed_text(text) + beside.to(rows.hidden.dtype)
            store = PaddedPrefillStore(rows.cache, row)
            hidden = talker.model(embeds[None], self._rotary.first(size), store)[0]  # [T, C]
            last = hidden.index_select(0, length - 1)
            rows.hidden.index_copy_(0, row, last)
            logits = talker.codec_head(last).float()
            reserved = logits.shape[1] - RESERVED_CODEC_IDS
            kernels.commit(logits, rows, row, reserved=reserved, eos=self._eos, step=None, out=self._code)

        return body

    def _codec_body(self, codes: Tensor, rows: Tensor, pcm: Tensor) -> None:
        self._codec_state.select(rows)
        pcm.copy_(as_pcm(self._codec.unlimited(codes, self._codec_state)))
        self._codec_state.select(None)


class PaddedPrefillStore:
    """Prefill of the row that a tensor [1] names; the padding behind the prompt is written too and never attended
    to.
    """

    def __init__(self, cache: KVCache, row: Tensor) -> None:
        self._cache, self._row = cache, row

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> Attended:
        length = keys.shape[2]
        for part, new in enumerate((keys, values)):
            self._cache.data[layer, part, :, :, :length].index_copy_(0, self._row, new)
        return Attended(keys=keys, values=values, causal=True)


CodecBody = Callable[[Tensor, Tensor, Tensor], None]


class CodecLane:
    """A stream for codec packets with its own graphs and their static tensors."""

    def __init__(self, name: str, stream: torch.cuda.Stream) -> None:
        self.name, self.stream = name, stream
        self.graphs = GraphSet(CudaGraphDriver(stream))
        self._static: dict[str, tuple[Tensor, Tensor, Tensor]] = {}

    def capture(self, body: CodecBody, count: int, frames: int, groups: int, device: torch.device) -> None:
        """Capture packets of `count` rows and `frames` frames."""
        codes = torch.zeros(count, groups, frames, dtype=torch.int64, device=device)
        rows = torch.zeros(count, dtype=torch.int64, device=device)
        pcm = torch.zeros(count, frames * SAMPLES_PER_FRAME, dtype=torch.int16, device=device)
        name = f"{self.name} {count}x{frames}"
        self._static[name] = codes, rows, pcm
        self.graphs.capture(name, lambda: body(codes, rows, pcm))

    def start(self, codes: Tensor, where: Tensor, complete: torch.cuda.Event, *, rows: int) -> AudioPart:
        """Decode codes [B, 16, T] of the codec state rows `where` [B] once `complete` has happened."""
        name = f"{self.name} {codes.shape[0]}x{codes.shape[2]}"
        with torch.cuda.stream(self.stream):
            self.stream.wait_event(complete)
            static_codes, static_rows, pcm = self._static[name]
            write_static(static_codes, codes, "codes")
            write_static(static_rows, where, "codec rows")
            for tensor in (codes, where):
                tensor.record_stream(self.stream)
            self.graphs.replay(name)
            samples = pinned_empty(pcm.shape, pcm.dtype)
            samples.copy_(pcm, non_blocking=True)
            done = torch.cuda.Event()
            done.record()
        return AudioPart(samples=samples, rows=rows, done=done)

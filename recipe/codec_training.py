"""Train encoder, codebooks and decoder on the first rendered hours, then turn every utterance into codes.

In the last share of the time encoder and codebooks stand still, so that the decoder learns from the very codes that
it will see. At the end the decoder's
last convolution is scaled once so that its output is as loud as the reference: magnitude losses leave it too quiet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import Enum, auto
from functools import partial

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.codec import CodecDecoder
from engine.config import CodecConfig
from engine.contract import SAMPLE_RATE_HZ, SAMPLES_PER_FRAME
from recipe.corpus import (
    Samples,
    Shard,
    read_record,
    read_shards,
    rendered_hours,
    rendering_complete,
    write_codes,
    write_record,
)
from recipe.encoder import Encoder, quantise
from recipe.errors import RecipeError
from recipe.graphs import captured
from recipe.schedule import Budget, Schedule
from recipe.settings import CodecSettings, Settings
from recipe.spectral import distance, mel_correlation

Report = Callable[[str], None]

ENCODER_FILE, DECODER_FILE, RECORD_FILE = "encoder.safetensors", "decoder.safetensors", "codec.json"
CHECK_SEGMENTS = 64
ENCODE_ROWS = {"cuda": 64, "cpu": 4}  # utterances a batch; a CPU is fastest while a batch fits its caches
WAIT_SECONDS = 900.0
INITIAL_GAMMA, INITIAL_LAYER_SCALE = 0.1, 0.1  # the published initial values are for far longer training
INITIAL_OUTPUT = 0.03  # of the last convolution, so that the first waveforms are about as loud as speech
RESIDUAL_ENDINGS, RESIDUAL_SCALE = ("conv2.conv", "point.0", "point.1"), 0.4  # last layers of residual units
CLIP = 1.0
WATCH_STEPS, REPORT_STEPS = 10, 200


@dataclass(frozen=True, kw_only=True)
class CodecRecord:
    """What the codec's training reached, on audio that it was not trained on."""

    steps: int
    seconds: float
    hours: float
    spectral_distance: float
    mel_correlation: float
    level_before_scaling: float
    entries_in_use: float


class Phase(Enum):
    """What learns. WARM: encoder and decoder without quantisation, while the codebooks follow; with codes from the
    start, a fresh encoder's codes
    say nothing and the decoder learns to ignore them. WHOLE: everything. DECODER: encoder and codebooks stand still."""

    WARM = auto()
    WHOLE = auto()
    DECODER = auto()


COMMITMENT = {
    Phase.WARM: 0.02,
    Phase.WHOLE: 0.25,
    Phase.DECODER: 0.0,
}  # weight of the distance between latents and codebooks


class Codec:
    """Encoder and decoder on one device."""

    def __init__(self, config: CodecConfig, *, width: int, device: torch.device) -> None:
        self.encoder = Encoder(config, width)
        self.decoder = CodecDecoder(config)
        initialise(self.encoder)
        initialise(self.decoder)
        for layer in (*self.decoder.quantizer.rvq_first.vq.layers, *self.decoder.quantizer.rvq_rest.vq.layers):
            layer.requires_grad_(False)  # moving averages, not gradients
            layer._codebook.cluster_usage.zero_()
        self.encoder.to(device)
        self.decoder.to(device)

    def freeze_codes(self) -> None:
        """From now on only what follows the codebooks learns."""
        self.encoder.requires_grad_(False)
        self.decoder.quantizer.rvq_first.input_proj.requires_grad_(False)
        self.decoder.quantizer.rvq_rest.input_proj.requires_grad_(False)

    def parameters(self) -> list[torch.nn.Parameter]:
        return [p for p in (*self.encoder.parameters(), *self.decoder.parameters()) if p.requires_grad]

    @torch.no_grad()
    def encode(self, samples: Tensor) -> Tensor:
        """Samples [B, 1920 * T] -> codes [B, 16, T]."""
        return quantise(self.decoder, self.encoder(samples), learn=False).codes


def train_codec(settings: Settings, config: CodecConfig, report: Report) -> None:
    """The codec stage's first half; writes encoder, decoder and record into the working directory."""
    device = torch.device(settings.device)
    torch.manual_seed(settings.text.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    _wait(lambda: rendered_hours(settings.work) >= settings.codec.hours or rendering_complete(settings.work))
    audio = _load_audio(settings).to(device)
    hours = len(audio) / SAMPLE_RATE_HZ / 3_600
    report(f"{hours:.2f} hours of audio to train on")
    codec = Codec(config, width=settings.shape.encoder_width, device=device)
    held_out = len(audio) // 50
    schedule = _train(codec, audio[held_out:], settings.codec, report)
    record = _finish(codec, audio[:held_out], settings.codec, schedule, hours)
    save_file(codec.encoder.state_dict(), settings.work / ENCODER_FILE)
    save_file(codec.decoder.state_dict(), settings.work / DECODER_FILE)
    write_record(settings.work / RECORD_FILE, asdict(record))
    report(f"codec: {record}")


def encode_all(settings: Settings, config: CodecConfig, report: Report) -> None:
    """The codec stage's second half: codes of every utterance, once the rendering is complete."""
    device = torch.device(settings.device)
    codec = Codec(config, width=settings.shape.encoder_width, device=device)
    for module, name in ((codec.encoder, ENCODER_FILE), (codec.decoder, DECODER_FILE)):
        path = settings.work / name
        if not path.exists():
            raise RecipeError(f"{path} is missing; run the codec stage first")
        module.load_state_dict(load_file(path, device=str(device)))
    _wait(lambda: rendering_complete(settings.work))
    started = time.monotonic()
    codes: list[np.ndarray] = []
    for shard in _ahead(read_shards(settings.work)):
        codes += _encode(codec, list(shard.utterances()), device)
    write_codes(settings.work, codes)
    hours = sum(map(len, codes)) * SAMPLES_PER_FRAME / SAMPLE_RATE_HZ / 3_600
    record = read_record(settings.work / RECORD_FILE, "codec")
    write_record(settings.work / RECORD_FILE, {**record, "utterances": len(codes), "hours_encoded": round(hours, 2)})
    report(f"encoded {len(codes)} utterances in {time.monotonic() - started:.1f} s")


class Trainer:
    """One training step a phase."""

    def __init__(self, codec: Codec, audio: Tensor, settings: CodecSettings) -> None:
        self.codec, self.audio, self.settings = codec, audio, settings
        self.rate = torch.zeros((), device=audio.device)
        self.optimiser = torch.optim.AdamW(
            codec.parameters(),
            lr=self.rate if audio.is_cuda else settings.learning_rate,
            betas=(0.8, 0.99),
            weight_decay=0.0,
            fused=audio.is_cuda,
            capturable=audio.is_cuda,
        )
        self.seen = torch.zeros(2, device=audio.device)  # spectral distance and commitment of the last step

    def set_rate(self, rate: float) -> None:
        """Learning rate of the next steps."""
        if self.audio.is_cuda:
            self.rate.fill_(rate)
        else:
            for group in self.optimiser.param_groups:
                group["lr"] = rate

    def step(self, phase: Phase) -> None:
        """Draw a batch and learn from it. No host synchronisation."""
        wanted = _segments(self.audio, self.settings.segments, self.settings.frames)
        with torch.set_grad_enabled(phase is not Phase.DECODER):
            latent = self.codec.encoder(wanted)
        quantised = quantise(self.codec.decoder, latent, learn=phase is not Phase.DECODER)
        warm = phase is Phase.WARM
        made = self.codec.decoder.waveform(quantised.unquantised if warm else quantised.latent)
        spectral = distance(made, wanted)
        self.optimiser.zero_grad(set_to_none=True)
        (spectral + COMMITMENT[phase] * quantised.commitment).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(self.codec.parameters(), CLIP)
        self.optimiser.step()
        self.seen.copy_(torch.stack((spectral.detach(), quantised.commitment.detach())))


def initialise(module: torch.nn.Module) -> None:
    """Weights that keep the variance of a signal from layer to layer, no biases, weak residual branches.

    PyTorch's own initial values let a signal die out in a network this deep: the output would not depend on the input.
    """
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.Conv1d | torch.nn.Linear):
            fan = part.weight[0].numel()
        elif isinstance(part, torch.nn.ConvTranspose1d):
            fan = part.weight.shape[0] * part.kernel_size[0] // part.stride[0]
        else:
            continue
        branch = any(name.endswith(ending) for ending in RESIDUAL_ENDINGS)
        torch.nn.init.normal_(part.weight, std=(RESIDUAL_SCALE if branch else 1.0) / math.sqrt(fan))
        if part.bias is not None:
            torch.nn.init.zeros_(part.bias)
    for name, parameter in module.named_parameters():
        if name.endswith("gamma"):
            parameter.data.fill_(INITIAL_GAMMA)
        elif name.endswith("layer_scale.scale"):
            parameter.data.fill_(INITIAL_LAYER_SCALE)
        elif name == "decoder.6.conv.weight":
            parameter.data.mul_(INITIAL_OUTPUT)


def _train(codec: Codec, audio: Tensor, settings: CodecSettings, report: Report) -> Schedule:
    trainer = Trainer(codec, audio, settings)
    schedule = Schedule(
        Budget(
            steps=settings.steps,
            seconds=settings.seconds,
            warmup_steps=settings.warmup_steps,
            learning_rate=settings.learning_rate,
        )
    )
    trainer.set_rate(schedule.learning_rate())
    ends = {Phase.WARM: settings.warm_share, Phase.WHOLE: 1.0 - settings.frozen_share, Phase.DECODER: 1.0}
    for phase, end in ends.items():
        if phase is Phase.DECODER:
            codec.freeze_codes()
        step, is_graph = captured(partial(trainer.step, phase), audio.device, report)
        report(f"{phase.name.lower()} phase at {schedule.seconds:.0f} s, captured: {is_graph}")
        while schedule.progress < end:
            trainer.set_rate(schedule.learning_rate())
            step()
            schedule.step += 1
            if schedule.step % WATCH_STEPS == 0:
                spectral, commitment = trainer.seen.tolist()
                if schedule.step % REPORT_STEPS == 0:
                    report(
                        f"step {schedule.step}, {schedule.seconds:.0f} s, "
                        f"spectral {spectral:.3f}, commitment {commitment:.4f}"
                    )
        if phase is Phase.WARM and float(trainer.seen[0]) > settings.warm_limit:
            raise RecipeError(
                f"spectral distance {float(trainer.seen[0]):.2f} after the warm phase, above {settings.warm_limit}: "
                "the codec does not learn; check the audio and the learning rate"
            )
    return schedule


@torch.no_grad()
def _finish(codec: Codec, audio: Tensor, settings: CodecSettings, schedule: Schedule, hours: float) -> CodecRecord:
    wanted = _segments(audio, CHECK_SEGMENTS, settings.frames)
    codes = codec.encode(wanted)
    level = float(codec.decoder(codes).square().mean().sqrt() / wanted.square().mean().sqrt())
    last = codec.decoder.decoder[-1].conv
    for parameter in last.parameters():  # type: ignore[union-attr]  # ModuleList item
        parameter.div_(level)
    made = codec.decoder(codes)
    in_use = [len(torch.unique(codes[:, book])) / codec.decoder.config.codebook_size for book in range(codes.shape[1])]
    return CodecRecord(
        steps=schedule.step,
        seconds=round(schedule.seconds, 1),
        hours=round(hours, 3),
        spectral_distance=round(float(distance(made, wanted)), 4),
        mel_correlation=round(mel_correlation(made, wanted), 4),
        level_before_scaling=round(level, 4),
        entries_in_use=round(float(np.mean(in_use)), 4),
    )


def _segments(audio: Tensor, count: int, frames: int) -> Tensor:
    """Random segments [count, 1920 * frames] of the utterances end to end, full scale 1."""
    length = min(frames * SAMPLES_PER_FRAME, len(audio) // SAMPLES_PER_FRAME * SAMPLES_PER_FRAME)
    starts = torch.randint(len(audio) - length + 1, (count, 1), device=audio.device)
    return audio[starts + torch.arange(length, device=audio.device)].float() / 32_767


def _load_audio(settings: Settings) -> Tensor:
    wanted = settings.codec.hours * 3_600 * SAMPLE_RATE_HZ
    parts: list[Samples] = []
    total = 0
    for shard in read_shards(settings.work):
        parts.append(shard.samples)
        total += len(shard.samples)
        if total >= wanted:
            break
    if not parts:
        raise RecipeError(f"{settings.work} holds no rendered audio; run the render stage first")
    return torch.from_numpy(np.concatenate(parts))


def _encode(codec: Codec, utterances: list[Samples], device: torch.device) -> list[np.ndarray]:
    """Codes [T, 16] of each utterance. Rows of similar length share a batch; the padding comes after the speech and
    changes no code."""
    codes: dict[int, np.ndarray] = {}
    order = sorted(range(len(utterances)), key=lambda index: len(utterances[index]))
    for batch in _batches(order, ENCODE_ROWS[device.type]):
        longest = max(len(utterances[index]) for index in batch)
        padded = np.zeros((len(batch), longest), dtype=np.int16)
        for row, index in enumerate(batch):
            padded[row, : len(utterances[index])] = utterances[index]
        result = codec.encode(torch.from_numpy(padded).to(device).float() / 32_767).to(torch.uint8).cpu().numpy()
        for row, index in enumerate(batch):
            codes[index] = result[row, :, : len(utterances[index]) // SAMPLES_PER_FRAME].T
    return [codes[index] for index in range(len(utterances))]


def _ahead(shards: Iterator[Shard]) -> Iterator[Shard]:
    """The same shards, each read while the one before it is encoded."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        following = reader.submit(next, shards, None)
        while (shard := following.result()) is not None:
            following = reader.submit(next, shards, None)
            yield shard


def _batches(order: list[int], rows: int) -> Iterator[list[int]]:
    for start in range(0, len(order), rows):
        yield order[start : start + rows]


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise RecipeError("the rendering does not come on; run the render stage, at the same time or before")
        time.sleep(0.2)

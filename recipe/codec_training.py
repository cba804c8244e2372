"""Train encoder, codebooks and decoder on the first rendered hours, then turn every utterance into codes.

In the last share of the time encoder and codebooks stand still, so that the decoder learns from the very codes that it will see. At the end the decoder's
last convolution is scaled once so that its output is as loud as the reference: magnitude losses leave it too quiet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.codec import CodecDecoder
from engine.config import CodecConfig
from engine.contract import SAMPLE_RATE_HZ, SAMPLES_PER_FRAME
from recipe.corpus import (
    Samples,
    rendered_hours,
    rendering_complete,
    read_shards,
    write_codes,
    write_record,
)
from recipe.encoder import Encoder, quantise
from recipe.errors import RecipeError
from recipe.schedule import Budget, Schedule
from recipe.settings import CodecSettings, Settings
from recipe.spectral import distance, mel_correlation

Report = Callable[[str], None]

ENCODER_FILE, DECODER_FILE, RECORD_FILE = "encoder.safetensors", "decoder.safetensors", "codec.json"
COMMITMENT = 0.25
CHECK_SEGMENTS = 64
ENCODE_ROWS = {"cuda": 64, "cpu": 4}  # utterances a batch; a CPU is fastest while a batch fits its caches
WAIT_SECONDS = 900.0
INITIAL_GAMMA, INITIAL_LAYER_SCALE = 0.1, 0.1  # the published initial values are for far longer training


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


class Codec:
    """Encoder and decoder on one device."""

    def __init__(self, config: CodecConfig, *, width: int, device: torch.device) -> None:
        self.encoder = Encoder(config, width).to(device)
        self.decoder = CodecDecoder(config).to(device)
        for layer in (*self.decoder.quantizer.rvq_first.vq.layers, *self.decoder.quantizer.rvq_rest.vq.layers):
            layer.requires_grad_(False)  # moving averages, not gradients
            layer._codebook.cluster_usage.zero_()  # type: ignore[union-attr,operator]  # every entry starts unused
        for name, parameter in self.decoder.named_parameters():
            if name.endswith("gamma"):
                parameter.data.fill_(INITIAL_GAMMA)
            elif name.endswith("layer_scale.scale"):
                parameter.data.fill_(INITIAL_LAYER_SCALE)

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
    torch.backends.cudnn.benchmark = device.type == "cuda"
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
    torch.backends.cudnn.benchmark = False  # every batch has another length
    started = time.monotonic()
    codes: list[np.ndarray] = []
    for shard in read_shards(settings.work):
        codes += _encode(codec, list(shard.utterances()), device)
    write_codes(settings.work, codes)
    report(f"encoded {len(codes)} utterances in {time.monotonic() - started:.1f} s")


def _train(codec: Codec, audio: Tensor, settings: CodecSettings, report: Report) -> Schedule:
    optimiser = torch.optim.AdamW(
        codec.parameters(), lr=settings.learning_rate, betas=(0.8, 0.99), weight_decay=0.0, fused=audio.is_cuda
    )
    schedule = Schedule(
        Budget(
            steps=settings.steps,
            seconds=settings.seconds,
            warmup_steps=settings.warmup_steps,
            learning_rate=settings.learning_rate,
        )
    )
    frozen = False
    while not schedule.over:
        if not frozen and schedule.progress >= 1.0 - settings.frozen_share:
            codec.freeze_codes()
            frozen = True
        for group in optimiser.param_groups:
            group["lr"] = schedule.learning_rate()
        wanted = _segments(audio, settings.segments, settings.frames)
        with torch.set_grad_enabled(not frozen):
            latent = codec.encoder(wanted)
        quantised = quantise(codec.decoder, latent, learn=not frozen)
        spectral = distance(codec.decoder.synthesize(quantised.latent), wanted)
        optimiser.zero_grad(set_to_none=True)
        (spectral + COMMITMENT * quantised.commitment).backward()
        torch.nn.utils.clip_grad_norm_(codec.parameters(), 1.0)
        optimiser.step()
        schedule.step += 1
        if schedule.step % 100 == 0:
            report(
                f"step {schedule.step}, {schedule.seconds:.0f} s, spectral {float(spectral):.3f}, "
                f"commitment {float(quantised.commitment):.4f}"
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
    """Codes [T, 16] of each utterance. Rows of similar length share a batch; the padding comes after the speech and changes no code."""
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


def _batches(order: list[int], rows: int) -> Iterator[list[int]]:
    for start in range(0, len(order), rows):
        yield order[start : start + rows]


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise RecipeError("the rendering does not come on; run the render stage, at the same time or before")
        time.sleep(0.2)

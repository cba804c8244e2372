"""Teach the trained decoder the first frames of an utterance.

The codec stage trains on segments cut from the middle of speech and shares its capacity over everything. What every
listener hears first, the onset from
silence with no history, is a small part of that. This stage fine-tunes the decoder alone, on the beginnings of
utterances spread over all
languages, from their fixed codes, before limiting to [-1, 1], where a sample that leaves the range still has a
gradient. It takes minutes on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.codec import CodecDecoder
from engine.config import CodecConfig
from engine.contract import SAMPLES_PER_FRAME
from recipe.codec_training import DECODER_FILE
from recipe.corpus import read_codes, read_sentences, write_record
from recipe.errors import RecipeError
from recipe.render import render
from recipe.schedule import Budget, Schedule
from recipe.settings import OnsetSettings, Settings
from recipe.spectral import distance, mel_correlation

ONSET_FILE, RECORD_FILE = "decoder-onset.safetensors", "onset.json"
LIMIT = 1.0
REPORT_STEPS = 50
OVERSHOOT_WEIGHT = 10.0  # on what leaves [-1, 1]


def train_onset(settings: Settings, config: CodecConfig, report: Callable[[str], None]) -> None:
    """Write the fine-tuned decoder and a record of what changed into the working directory."""
    path = settings.work / DECODER_FILE
    if not path.exists():
        raise RecipeError(f"{path} is missing; run the codec stage first")
    device = torch.device(settings.device)
    decoder = CodecDecoder(config)
    decoder.load_state_dict(load_file(path))
    decoder.to(device)
    decoder.quantizer.requires_grad_(False)
    codes, wanted = (tensor.to(device) for tensor in _beginnings(settings, report))
    held_out = len(codes) // 10
    before = _measure(decoder, codes[:held_out], wanted[:held_out])
    schedule = _train(decoder, codes[held_out:], wanted[held_out:], settings.onset, report)
    _match_level(decoder, codes[:held_out], wanted[:held_out])
    after = _measure(decoder, codes[:held_out], wanted[:held_out])
    save_file(decoder.state_dict(), settings.work / ONSET_FILE)
    record: dict[str, object] = {
        "steps": schedule.step, "seconds": round(schedule.seconds, 1), "utterances": len(codes),
        "held_out_before": before, "held_out_after": after,
    }  # fmt: skip
    write_record(settings.work / RECORD_FILE, record)
    report(f"onset: {record}")


def _beginnings(settings: Settings, report: Callable[[str], None]) -> tuple[Tensor, Tensor]:
    """Codes [N, 16, T] and samples [N, 1920 * T] of the first T frames of N utterances spread over the corpus."""
    onset = settings.onset
    sentences = read_sentences(settings.work)
    all_codes, lengths = read_codes(settings.work)  # [frames, 16], [utterances]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    chosen = np.linspace(0, len(sentences) - 1, onset.utterances).astype(int)
    long_enough = [int(index) for index in chosen if lengths[index] >= onset.frames]
    codes = np.stack([all_codes[starts[i] : starts[i] + onset.frames].T for i in long_enough]).astype(np.int64)
    length = onset.frames * SAMPLES_PER_FRAME
    with ProcessPoolExecutor(max_workers=settings.processes) as pool:
        rendered = pool.map(render, (sentences[i] for i in long_enough), chunksize=16)
        samples = np.stack([utterance[:length] for utterance in rendered])
    report(f"{len(long_enough)} beginnings of {onset.frames} frames")
    order = torch.randperm(len(long_enough), generator=torch.Generator().manual_seed(settings.text.seed))
    return torch.from_numpy(codes)[order], torch.from_numpy(samples.astype(np.float32) / 32_767)[order]


def _train(
    decoder: CodecDecoder, codes: Tensor, wanted: Tensor, settings: OnsetSettings, report: Callable[[str], None]
) -> Schedule:
    learning = [parameter for parameter in decoder.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(learning, lr=settings.learning_rate, betas=(0.8, 0.99), weight_decay=0.0)
    schedule = Schedule(
        Budget(
            steps=settings.steps,
            seconds=settings.seconds,
            warmup_steps=settings.warmup_steps,
            learning_rate=settings.learning_rate,
        )
    )
    chance = torch.Generator().manual_seed(settings.steps)
    while not schedule.over:
        for group in optimiser.param_groups:
            group["lr"] = schedule.learning_rate()
        batch = torch.randint(len(codes), (settings.rows,), generator=chance).to(codes.device)
        made = decoder.waveform(decoder.quantizer.decode(codes[batch]))
        overshoot = (made.abs() - LIMIT).clamp(min=0.0).mean()
        loss = distance(made, wanted[batch]) + OVERSHOOT_WEIGHT * overshoot
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimiser.step()
        schedule.step += 1
        if schedule.step % REPORT_STEPS == 0:
            report(
                f"step {schedule.step}, {schedule.seconds:.0f} s, loss {loss.item():.3f}, "
                f"peak {made.abs().max().item():.2f}"
            )
    return schedule


@torch.no_grad()
def _match_level(decoder: CodecDecoder, codes: Tensor, wanted: Tensor) -> None:
    """Scale the last convolution so that speech is as loud as the reference: magnitude losses leave it too quiet."""
    made = decoder.waveform(decoder.quantizer.decode(codes))
    level = float(made.square().mean().sqrt() / wanted.square().mean().sqrt())
    for parameter in decoder.decoder[-1].parameters():
        parameter.div_(level)


@torch.no_grad()
def _measure(decoder: CodecDecoder, codes: Tensor, wanted: Tensor) -> dict[str, float]:
    """Peak before limiting and nearness to the reference, over beginnings that were not trained on."""
    made = decoder.waveform(decoder.quantizer.decode(codes))
    return {
        "peak": round(float(made.abs().max()), 4),
        "spectral_distance": round(float(distance(made, wanted)), 4),
        "mel_correlation": round(mel_correlation(made, wanted), 4),
        "level": round(float(made.square().mean().sqrt() / wanted.square().mean().sqrt()), 4),
    }

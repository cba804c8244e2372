"""Train talker and code predictor on codes, teacher-forced, through the engine's own modules.

Embeddings are looked up as products with multi-hot rows: on an accelerator their gradient is then a matrix product
instead of colliding additions. On CUDA a
whole step (draw, forward, backward, update) is one captured graph a bucket; the host only sets the learning rate and
watches the clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from engine.config import TalkerConfig
from engine.layers import Rotary
from engine.talker import SpeechModel, Talker
from recipe.batches import IGNORED, Batch, Corpus, draw
from recipe.corpus import read_codes, write_record
from recipe.graphs import Step, captured
from recipe.prompts import load_prompts
from recipe.schedule import Budget, Schedule
from recipe.settings import Bucket, Settings, TalkerSettings

Report = Callable[[str], None]

TALKER_FILE, RECORD_FILE = "talker.safetensors", "talker.json"
PREDICTOR_WEIGHT = 3.0  # of the mean over 15 codebooks, against codebook 0
CLIP = 1.0
WATCH_STEPS = 20  # between looks at the clock


@dataclass(frozen=True, kw_only=True)
class TalkerRecord:
    """What the talker's training reached; losses are means over the last reports, in nats."""

    steps: int
    seconds: float
    utterances: int
    captured: bool
    talker_loss: float
    predictor_loss: float


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Mean cross-entropy of codebook 0 (and end of speech), and of codebooks 1..15."""

    talker: Tensor
    predictor: Tensor


class Lookup:
    """One matrix of everything that can be summed into a talker row: codec ids, 15 x codes, projected text ids, and a
    zero row."""

    def __init__(self, talker: Talker) -> None:
        tables = [talker.model.codec_embedding.weight]
        tables += [table.weight for table in talker.code_predictor.model.codec_embedding]  # type: ignore[misc]  # ModuleList items
        tables.append(talker.embed_text(torch.arange(talker.config.text_vocab, device=tables[0].device)))
        zero = torch.zeros(8, tables[0].shape[1], device=tables[0].device)
        self.matrix = torch.cat([table.float() for table in tables] + [zero])  # [W, C]
        self.nothing = len(self.matrix) - len(zero)
        self.text = self.nothing - talker.config.text_vocab
        self.codes = talker.config.vocab  # first row of codebook 1
        self.size = talker.config.predictor.vocab

    def rows(self, index: Tensor) -> Tensor:
        """Sums [N, C] of the rows that index [N, J] names."""
        return self._product(index, self.matrix)

    def code_rows(self, index: Tensor) -> Tensor:
        """Rows [N, C] that index [N] names, all of them codec ids or codes."""
        return self._product(index[:, None], self.matrix[: self.text])

    def _product(self, index: Tensor, matrix: Tensor) -> Tensor:
        hot = torch.zeros(len(index), len(matrix), device=index.device, dtype=_product_type(index.device))
        hot.scatter_add_(1, index, torch.ones_like(index, dtype=hot.dtype))
        summed: Tensor = (hot @ matrix.to(hot.dtype)).float()
        return summed

    def frame_index(self, codes: Tensor) -> Tensor:
        """Row numbers [..., 16] of codes [..., 16], -1 meaning nothing."""
        offsets = torch.arange(codes.shape[-1], device=codes.device) - 1
        shifted = codes + torch.where(offsets >= 0, self.codes + offsets * self.size, torch.zeros_like(offsets))
        return torch.where(codes < 0, torch.full_like(codes, self.nothing), shifted)


def losses(talker: Talker, batch: Batch, rotary: Rotary) -> Losses:
    """Teacher-forced losses of one batch."""
    lookup = Lookup(talker)
    rows, length = batch.text.shape
    control = torch.where(batch.control < 0, torch.full_like(batch.control, lookup.nothing), batch.control)
    index = torch.cat(
        ((batch.text + lookup.text)[..., None], control[..., None], lookup.frame_index(batch.heard)), dim=-1
    )
    embeds = lookup.rows(index.flatten(0, 1)).view(rows, length, -1)
    hidden = talker(embeds, rotary)  # [B, L, C]
    logits = talker.codec_head(hidden)
    first = F.cross_entropy(logits.flatten(0, 1).float(), batch.target.flatten(), ignore_index=IGNORED)

    at = hidden.gather(1, batch.places[..., None].expand(-1, -1, hidden.shape[-1])).flatten(0, 1)  # [B * P, C]
    frames = batch.frames.flatten(0, 1)  # [B * P, 16]
    heard = lookup.frame_index(frames)[:, :-1]
    inputs = lookup.code_rows(heard.flatten()).view(len(frames), heard.shape[1], -1)
    output = talker.code_predictor(torch.cat((at[:, None].float(), inputs), dim=1), rotary)  # [B * P, 16, C_p]
    rest = talker.code_predictor.logits(output).flatten(0, 1).float()
    return Losses(talker=first, predictor=F.cross_entropy(rest, frames[:, 1:].flatten()))


class Trainer:
    """Model, optimiser and one training step a bucket."""

    def __init__(self, corpus: Corpus, config: TalkerConfig, settings: TalkerSettings) -> None:
        self.model = SpeechModel(config).to(corpus.device)
        initialise(self.model)
        self.settings, self.corpus, self.cuda = settings, corpus, corpus.device.type == "cuda"
        self.rate = torch.zeros((), device=corpus.device)
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        plain = [p for p in self.model.parameters() if p.ndim <= 1]
        self.optimiser = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=self.rate if self.cuda else settings.learning_rate,
            betas=(0.9, 0.98),
            fused=self.cuda,
            capturable=self.cuda,
        )
        self.rotary = Rotary(
            config.transformer, length=max(bucket.length for bucket in settings.buckets), device=corpus.device
        )
        self.seen = torch.zeros(2, device=corpus.device)  # talker and predictor loss of the last step

    def set_rate(self, rate: float) -> None:
        """Learning rate of the next steps."""
        if self.cuda:
            self.rate.fill_(rate)
        else:
            for group in self.optimiser.param_groups:
                group["lr"] = rate

    def step(self, bucket: Bucket, members: Tensor) -> None:
        """Draw a batch and learn from it. No host synchronisation."""
        batch = draw(self.corpus, members, bucket, self.settings)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.cuda, cache_enabled=False):
            loss = losses(self.model.talker, batch, self.rotary)
            total = loss.talker + PREDICTOR_WEIGHT * loss.predictor
        total.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        self.seen.copy_(torch.stack((loss.talker.detach(), loss.predictor.detach())))


def train_talker(settings: Settings, config: TalkerConfig, report: Report) -> None:
    """The talker stage; writes BF16 weights under the published names, and the record."""
    device = torch.device(settings.device)
    torch.manual_seed(settings.text.seed + 1)
    torch.backends.cuda.matmul.allow_tf32 = True
    codes, frames = read_codes(settings.work)
    corpus = Corpus(load_prompts(settings.work), codes, frames, config, device)
    members = corpus.members(settings.talker.buckets)
    report(f"{len(frames)} utterances, {len(codes)} frames; buckets of {[len(group) for group in members]}")
    trainer = Trainer(corpus, config, settings.talker)
    steps, all_captured = _steps(trainer, members, report)
    schedule = _train(trainer, steps, _proportions(members, settings.talker), settings.talker, report)
    seen = [round(value, 4) for value in trainer.seen.tolist()]
    state = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in trainer.model.state_dict().items()}
    save_file(state, settings.work / TALKER_FILE)
    record = TalkerRecord(
        steps=schedule.step, seconds=round(schedule.seconds, 1), utterances=sum(len(group) for group in members),
        captured=all_captured, talker_loss=seen[0], predictor_loss=seen[1],
    )  # fmt: skip
    write_record(settings.work / RECORD_FILE, asdict(record))
    report(f"talker: {record}")


def initialise(model: SpeechModel) -> None:
    """Normal weights, the residual outputs smaller with depth."""
    layers = len(model.talker.model.layers)
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        if "embedding" in name:
            torch.nn.init.normal_(parameter, std=0.1 if "text" in name else 0.05)
        else:
            scale = 1.0 / math.sqrt(2.0 * layers) if "o_proj" in name or "down_proj" in name else 1.0
            torch.nn.init.normal_(parameter, std=scale / math.sqrt(parameter.shape[1]))
        if "codec_head" in name or "lm_head" in name:
            parameter.data.mul_(0.1)


def _steps(trainer: Trainer, members: list[Tensor], report: Report) -> tuple[list[Step], bool]:
    """One step a bucket, and whether all of them are captured graphs."""
    trainer.set_rate(trainer.settings.learning_rate / trainer.settings.warmup_steps)
    steps, all_captured = [], True
    for bucket, group in zip(trainer.settings.buckets, members, strict=True):
        step, is_graph = captured(_plain(trainer, bucket, group), trainer.corpus.device, report)
        steps.append(step)
        all_captured &= is_graph
    return steps, all_captured


def _plain(trainer: Trainer, bucket: Bucket, members: Tensor) -> Step:
    return lambda: trainer.step(bucket, members)


def _proportions(members: list[Tensor], settings: TalkerSettings) -> Tensor:
    """Share of the steps for each bucket, so that every utterance is seen equally often."""
    batches = torch.tensor([len(group) / bucket.rows for group, bucket in zip(members, settings.buckets, strict=True)])
    return batches / batches.sum()


def _train(trainer: Trainer, steps: list[Step], shares: Tensor, settings: TalkerSettings, report: Report) -> Schedule:
    schedule = Schedule(
        Budget(
            steps=settings.steps,
            seconds=settings.seconds,
            warmup_steps=settings.warmup_steps,
            learning_rate=settings.learning_rate,
        )
    )
    while not schedule.over:
        order = torch.multinomial(shares, WATCH_STEPS, replacement=True).tolist()
        for which in order[: settings.steps - schedule.step]:
            trainer.set_rate(schedule.learning_rate())
            steps[which]()
            schedule.step += 1
        if trainer.cuda:
            torch.cuda.synchronize()
        if schedule.step % (WATCH_STEPS * 15) == 0 or schedule.over:
            first, rest = trainer.seen.tolist()
            report(f"step {schedule.step}, {schedule.seconds:.0f} s, talker {first:.3f}, predictor {rest:.3f}")
    return schedule


def _product_type(device: torch.device) -> torch.dtype:
    return torch.bfloat16 if device.type == "cuda" else torch.float32

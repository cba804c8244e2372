"""The stages of the recipe in order. Each reads files of earlier ones from the working directory and writes its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recipe.settings import Settings

Report = Callable[[str], None]

MODEL = "model"  # directory of the model under construction, in the working directory


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of the recipe."""

    name: str
    purpose: str
    run: Callable[[Settings, Report], None]


def text(settings: Settings, report: Report) -> None:
    from recipe.corpus import read_sentences, write_sentences
    from recipe.model_config import write_configs
    from recipe.prompts import build_prompts, save_prompts
    from recipe.text import sentences
    from recipe.tokenizer import train_tokenizer

    amount = settings.text
    count = write_sentences(settings.work, sentences(amount.sentences, amount.seed))
    report(f"{count} sentences")
    items = read_sentences(settings.work)
    directory = settings.work / MODEL
    tokenizer = train_tokenizer(
        (item.text for item in items), size=settings.shape.text_vocabulary, directory=directory, seed=amount.seed
    )
    report(f"tokenizer of {settings.shape.text_vocabulary} ids")
    talker, _ = write_configs(directory, settings.shape)
    tables = build_prompts(items, tokenizer, talker, descriptions=amount.descriptions_per_voice, seed=amount.seed)
    save_prompts(settings.work, tables)
    report(f"prompts: {tables.body_length.max()} positions at most, instructions {tables.instruction_length.max()}")


def render(settings: Settings, report: Report) -> None:
    from recipe.render import render_all

    render_all(settings.work, settings.processes, report)


def codec(settings: Settings, report: Report) -> None:
    from engine.config import read_codec_config
    from recipe.codec_training import encode_all, train_codec

    config = read_codec_config(settings.work / MODEL / "speech_tokenizer" / "config.json")
    train_codec(settings, config, report)
    encode_all(settings, config, report)


def onset(settings: Settings, report: Report) -> None:
    from engine.config import read_codec_config
    from recipe.onset import train_onset

    train_onset(settings, read_codec_config(settings.work / MODEL / "speech_tokenizer" / "config.json"), report)


def talker(settings: Settings, report: Report) -> None:
    from engine.config import read_talker_config
    from recipe.talker_training import train_talker

    train_talker(settings, read_talker_config(settings.work / MODEL / "config.json"), report)


def export(settings: Settings, report: Report) -> None:
    from recipe.export import export_model

    export_model(settings.work, settings.work / MODEL, report)


def evaluate(settings: Settings, report: Report) -> None:
    from recipe.evaluate import evaluate_model

    evaluate_model(settings, settings.work / MODEL, report)


def card(settings: Settings, report: Report) -> None:
    from recipe.card import write_card

    write_card(settings.work, settings.work / MODEL)
    report(f"wrote {settings.work / MODEL / 'MODEL_CARD.md'}")


STAGES = (
    Stage(name="text", purpose="sentences, tokenizer, configuration and prompts", run=text),
    Stage(name="render", purpose="speech of espeak-ng for every sentence", run=render),
    Stage(name="codec", purpose="train the codec, then encode all speech (may run beside render)", run=codec),
    Stage(name="onset", purpose="fine-tune the decoder on the beginnings of utterances", run=onset),
    Stage(name="talker", purpose="train talker and code predictor", run=talker),
    Stage(name="export", purpose="weights in the published layout, with hashes", run=export),
    Stage(name="evaluate", purpose="held-out sentences through the engine", run=evaluate),
    Stage(name="card", purpose="model card from the records of the other stages", run=card),
)


def run(names: tuple[str, ...], settings: Settings, report: Report) -> None:
    """Run the named stages in the recipe's order."""
    for stage in STAGES:
        if stage.name not in names:
            continue
        started = time.monotonic()
        stage.run(settings, lambda line, name=stage.name: report(f"[{name}] {line}"))  # type: ignore[misc]  # bound now
        report(f"[{stage.name}] done in {time.monotonic() - started:.1f} s")


def model_directory(work: Path) -> Path:
    return work / MODEL

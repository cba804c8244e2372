"""`MODEL_CARD.md`, written from the records of the other stages: no figure in it was typed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipe import codec_training, onset, talker_training
from recipe.corpus import read_record
from recipe.errors import RecipeError
from recipe.evaluate import EVALUATION, PITCH_PROBES, PROBES, verdict
from recipe.export import file_hashes
from recipe.languages import LANGUAGES

CARD = "MODEL_CARD.md"

TEMPLATE = """---
license: apache-2.0
language: [{codes}]
pipeline_tag: text-to-speech
tags: [reference, voice-design, synthetic-speech]
datasets: [wordfreq]
metrics: {{natural_ends: {natural_ends}, runs: {runs}, duration_ratio_median: {ratio_median}, codec_mel_correlation: {onset_mel}}}
---
# Assay reference voice-design model

A small text-to-speech model with the architecture, directory layout and tensor names of Qwen3-TTS 12 Hz VoiceDesign, trained from nothing. It exists so that an engine and its
qualification can run for real on a machine without accelerator, network or licence questions. It speaks like espeak-ng, its only teacher, and is no
substitute for the published model, from which it contains no weights.

## Data and licences
* Weights, configuration and tokenizer: Apache-2.0.
* Sentences: random words drawn from the frequency lists of the Python package `wordfreq` (Robyn Speer; code Apache-2.0, data CC BY-SA 4.0 and compatible, from
  Wikipedia, OpenSubtitles and other sources that the package names), with random numerals and punctuation. No sentence of a person or a corpus was used. The lists themselves are not shipped; the
  tokenizer's merges reflect their statistics.
* Speech: rendered by espeak-ng 1.52 (GPL-3.0-or-later, used as a tool; nothing of it is shipped) in {languages} languages and eighteen voices; for Japanese it was given
  kana made by pykakasi (GPL-3.0-or-later, likewise a tool). No recording of a person was used.
* {hours} hours were rendered ({utterances} utterances); the codec learnt from {codec_hours} of them, the talker from all that fit its batches ({talker_utterances}).

## Use and limits
* Languages: ten by id or `auto` ({explicit}), fourteen by `auto` alone ({automatic}).
* A voice description is understood in English, as far as it names a gender (male, female), a pitch (low, medium, high) and a pace (slow, medium, fast). Without one, a voice is drawn.
* Trained on sentences of up to 145 characters (fewer in dense scripts). Longer texts, other scripts, code switching and free prose in a description are outside of what was trained.
* The voice is rough: the codec is small and briefly trained, and keeps little of the fine structure of voiced sounds, least of all of low male voices (shares of voiced frames below).
* Intelligibility and naturalness were not measured.
* Synthetic speech can mislead: say that it is synthetic where somebody could take it for a person.

## Training
| stage | steps | seconds | reached |
|---|---|---|---|
| codec | {codec_steps} | {codec_seconds} | spectral distance {spectral}, mel correlation {mel}, {in_use} of all codebook entries in use (on audio held out from it) |
| decoder on the beginnings of utterances | {onset_steps} | {onset_seconds} | mel correlation {onset_mel_before} before, {onset_mel} after; peak {onset_peak_before} before, {onset_peak} after (beginnings held out from it) |
| talker and code predictor | {talker_steps} | {talker_seconds} | cross-entropy of the last batch: codebook 0 {talker_loss}, codebooks 1 to 15 {predictor_loss} nats |

## Held-out evaluation
{runs} runs through the engine ({precision} on {device}) with default sampling: {sentence_languages} hand-written sentences, one a language, {seeds} seeds each, at most {frame_limit} frames. "Against espeak-ng" compares with espeak-ng's
rendering of the same sentence in the described voice.

| measure | value |
|---|---|
| ended by themselves | {natural_ends} of {runs} |
| duration against espeak-ng, smallest / median / largest | {ratios} |
| level (RMS) against espeak-ng, smallest / median / largest | {levels} |
| smallest share of 20 ms frames with speech (above -40 dBFS) | {speech_share} |
| clipped samples | {clipped} |
{voices}
| median duration, "{slow}" against "{fast}" | {slow_to_fast} |

Shortcomings against the recipe's own limits: {shortcomings}.

## Files
| file | SHA-256 |
|---|---|
{files}

Made by `python -m recipe all`; this card by `python -m recipe card`.
"""  # noqa: E501  # one line a paragraph and table row, as the reader wants them


def write_card(work: Path, directory: Path) -> None:
    """Write the card into the model directory.

    Raises:
        RecipeError: a stage has not run, or the evaluation was made with other files.
    """
    evaluation = read_record(work / EVALUATION, "evaluate")
    hashes = file_hashes(directory)
    if evaluation["files"] != hashes:
        raise RecipeError(f"{work / EVALUATION} belongs to other files than {directory}; run the evaluate stage again")
    text = TEMPLATE.format(
        **_languages(),
        **_codec(read_record(work / codec_training.RECORD_FILE, "codec")),
        **_onset(read_record(work / onset.RECORD_FILE, "onset")),
        **_talker(read_record(work / talker_training.RECORD_FILE, "talker")),
        **_evaluation(evaluation),
        files="\n".join(f"| `{name}` | `{value}` |" for name, value in hashes.items()),
    )
    (directory / CARD).write_text(text, "utf-8")


def _languages() -> dict[str, object]:
    return {
        "codes": ", ".join(f'"{language.code}"' for language in LANGUAGES),
        "languages": len(LANGUAGES),
        "explicit": ", ".join(language.field for language in LANGUAGES if language.explicit),
        "automatic": ", ".join(language.code for language in LANGUAGES if not language.explicit),
    }


def _codec(codec: dict[str, Any]) -> dict[str, object]:
    return {
        "hours": codec["hours_encoded"],
        "utterances": codec["utterances"],
        "codec_hours": codec["hours"],
        "codec_steps": codec["steps"],
        "codec_seconds": codec["seconds"],
        "spectral": codec["spectral_distance"],
        "mel": codec["mel_correlation"],
        "in_use": codec["entries_in_use"],
    }


def _onset(onset: dict[str, Any]) -> dict[str, object]:
    before, after = onset["held_out_before"], onset["held_out_after"]
    return {
        "onset_steps": onset["steps"],
        "onset_seconds": onset["seconds"],
        "onset_mel_before": before["mel_correlation"],
        "onset_mel": after["mel_correlation"],
        "onset_peak_before": before["peak"],
        "onset_peak": after["peak"],
    }


def _talker(talker: dict[str, Any]) -> dict[str, object]:
    return {
        "talker_utterances": talker["utterances"],
        "talker_steps": talker["steps"],
        "talker_seconds": talker["seconds"],
        "talker_loss": talker["talker_loss"],
        "predictor_loss": talker["predictor_loss"],
    }


def _evaluation(record: dict[str, Any]) -> dict[str, object]:
    summary = record["summary"]
    return {
        "runs": summary["runs"],
        "sentence_languages": summary["languages"],
        "seeds": summary["runs"] // summary["languages"],
        "frame_limit": record["limits"]["frames"],
        "precision": record["engine"]["precision"],
        "device": record["engine"]["device"],
        "natural_ends": summary["natural_ends"],
        "ratio_median": summary["duration_ratio_min_median_max"][1],
        "ratios": " / ".join(map(str, summary["duration_ratio_min_median_max"])),
        "levels": " / ".join(map(str, summary["level_ratio_min_median_max"])),
        "speech_share": summary["speech_share_min"],
        "clipped": summary["clipped_samples"],
        "voices": "\n".join(_voice_row(name, summary) for name in PITCH_PROBES),
        "slow_to_fast": summary["median_slow_to_fast_ratio"],
        "slow": PROBES["slow"],
        "fast": PROBES["fast"],
        "shortcomings": "; ".join(verdict(summary)) or "none",
    }


def _voice_row(name: str, summary: dict[str, Any]) -> str:
    pitch, voiced = summary["median_pitch_hz"][name], summary["voiced_share"][name]
    ours, theirs = (f"{pitch[who]} Hz" if pitch[who] else "not periodic enough" for who in ("model", "espeak"))
    shares = f"{voiced['model']} (espeak-ng {voiced['espeak']})"
    return f'| "{PROBES[name]}": median pitch; share of voiced frames | {ours} (espeak-ng {theirs}); {shares} |'

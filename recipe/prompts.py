"""Every training prompt as padded id tables, laid out by the engine's own `PromptBuilder`, so that training sees
exactly what serving will send.

A sequence is three parts end to end: an instruction (or none), a body (role, prefix, text), and the frames. The parts
are stored once and put together
anew for every batch, so that a sentence meets many descriptions of its voice, both text modes, and its language with
and without its id.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.config import TalkerConfig
from engine.contract import AUTO
from engine.prompt import PromptBuilder, PromptPlan
from engine.prompt_mode import TextMode
from engine.tokenizer import TextTokenizer
from recipe.errors import RecipeError
from recipe.languages import BY_CODE
from recipe.sentence import Sentence
from recipe.voices import VOICES, describe

Table = npt.NDArray[np.int16]

PROMPTS = "prompts.npz"
NONE = -1  # no codec embedding in this row
MODES = tuple((mode, explicit) for mode in (TextMode.FULL, TextMode.STREAMING) for explicit in (False, True))


@dataclass(frozen=True, kw_only=True)
class PromptTables:
    """Padded tables and their lengths. N sentences, M = 4 modes (`MODES`), V = 18 voices, K descriptions a voice.

    `body_text`, `body_codec` [N, M, L]; `trailing` [N, W] is what a streaming prompt adds to the frames, text end
    included;
    `instruction` [V * K + 1, I], the last one empty; `voice` [N]; `explicit` [N]: whether the language has an id.
    """

    body_text: Table
    body_codec: Table
    body_length: Table
    trailing: Table
    trailing_length: Table
    instruction: Table
    instruction_length: Table
    voice: Table
    explicit: Table


def build_prompts(
    sentences: list[Sentence], tokenizer: TextTokenizer, config: TalkerConfig, *, descriptions: int, seed: int
) -> PromptTables:
    """Lay out all sentences in all modes, and `descriptions` descriptions of each voice."""
    builder = PromptBuilder(tokenizer, config)
    bodies: list[PromptPlan] = []
    for sentence in sentences:
        field = BY_CODE[sentence.language].field
        bodies += [
            builder.plan(text=sentence.text, language=field if explicit else AUTO, mode=mode)
            for mode, explicit in MODES
        ]
    trailing = [plan.trailing for plan in bodies[2 :: len(MODES)]]
    instructions = _instructions(builder, descriptions, seed)
    shape = (len(sentences), len(MODES), -1)
    codec = [tuple(NONE if code is None else code for code in plan.codec) for plan in bodies]
    return PromptTables(
        body_text=_padded([plan.text for plan in bodies]).reshape(shape),
        body_codec=_padded(codec).reshape(shape),
        body_length=_lengths([plan.text for plan in bodies]).reshape(shape[:2]),
        trailing=_padded(trailing),
        trailing_length=_lengths(trailing),
        instruction=_padded([*instructions, ()]),
        instruction_length=_lengths([*instructions, ()]),
        voice=np.array([sentence.voice.index for sentence in sentences], dtype=np.int16),
        explicit=np.array([BY_CODE[sentence.language].explicit for sentence in sentences], dtype=np.int16),
    )


def save_prompts(work: Path, tables: PromptTables) -> None:
    np.savez_compressed(work / PROMPTS, **{field.name: getattr(tables, field.name) for field in fields(tables)})


def load_prompts(work: Path) -> PromptTables:
    """The tables of the text stage.

    Raises:
        RecipeError: the text stage has not run.
    """
    path = work / PROMPTS
    if not path.exists():
        raise RecipeError(f"{path} is missing; run the text stage first")
    with np.load(path) as stored:
        return PromptTables(**{field.name: stored[field.name] for field in fields(PromptTables)})


def _instructions(builder: PromptBuilder, count: int, seed: int) -> list[tuple[int, ...]]:
    """Instruction rows alone: what a plan has more with a description than without."""
    rng = random.Random(seed)
    bare = builder.plan(text=".").length
    rows: list[tuple[int, ...]] = []
    for voice in VOICES:
        for _ in range(count):
            plan = builder.plan(text=".", instruction=describe(voice, rng))
            rows.append(plan.text[: plan.length - bare])
    return rows


def _padded(rows: list[tuple[int, ...]]) -> Table:
    table = np.zeros((len(rows), max(1, max(len(row) for row in rows))), dtype=np.int16)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table


def _lengths(rows: list[tuple[int, ...]]) -> Table:
    return np.array([len(row) for row in rows], dtype=np.int16)

"""The VoiceDesign prompt: which ids, and which talker input rows they become.

`PromptBuilder` turns strings into a `PromptPlan` of ids (no tensors); `prompt_rows` turns a plan into embeddings.
Each row is the projected text embedding plus, where the plan has one, a codec embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.config import TalkerConfig
from engine.contract import AUTO, EXPLICIT_LANGUAGES
from engine.errors import InvalidRequest
from engine.prompt_mode import TextMode
from engine.talker import Talker
from engine.tokenizer import TextTokenizer

ROLE_IDS = 3  # im_start, assistant, line break: the text's own leading line breaks join the third, as published


@dataclass(frozen=True, kw_only=True)
class PromptPlan:
    """Ids of one prompt: `text[i]` beside `codec[i]` (None: no codec embedding) for every prefill row, and the text ids
    that follow one a frame."""

    text: tuple[int, ...]
    codec: tuple[int | None, ...]
    trailing: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.text)


class PromptBuilder:
    """Builds plans for one checkpoint."""

    def __init__(self, tokenizer: TextTokenizer, config: TalkerConfig) -> None:
        self._tokenizer = tokenizer
        self._text, self._codec = config.text_ids, config.codec_ids
        self._newline = tokenizer.encode("\n")

    @property
    def languages(self) -> tuple[str, ...]:
        """The wire's languages that this checkpoint has an id for, and `auto`."""
        return (AUTO, *(language for language in EXPLICIT_LANGUAGES if language in self._codec.languages))

    def plan(
        self, *, text: str, instruction: str = "", language: str = AUTO, mode: TextMode = TextMode.FULL
    ) -> PromptPlan:
        """Lay out one utterance.

        Raises:
            InvalidRequest: the checkpoint has no id for `language`, or the text has no ids.
        """
        said = [self._text.im_start, *self._tokenizer.encode(f"assistant\n{text}")]
        role, spoken = said[:ROLE_IDS], said[ROLE_IDS:]
        if not spoken:
            raise InvalidRequest("invalid_text", "text is empty; give at least one visible character")
        rows: list[tuple[int, int | None]] = [(token, None) for token in self._instruction(instruction)]
        rows += [(token, None) for token in role]
        prefix = self._prefix(language)
        rows += [(self._text.tts_pad, code) for code in prefix[:-1]] + [(self._text.tts_bos, prefix[-1])]
        trailing: tuple[int, ...] = ()
        if mode is TextMode.FULL:
            rows += [(token, self._codec.pad) for token in (*spoken, self._text.tts_eos)]
            rows.append((self._text.tts_pad, self._codec.bos))
        else:
            rows.append((spoken[0], self._codec.bos))
            trailing = (*spoken[1:], self._text.tts_eos)
        return PromptPlan(text=tuple(t for t, _ in rows), codec=tuple(c for _, c in rows), trailing=trailing)

    def _instruction(self, instruction: str) -> list[int]:
        if not instruction:
            return []
        body = self._tokenizer.encode(f"user\n{instruction}")
        return [self._text.im_start, *body, self._text.im_end, *self._newline]

    def _prefix(self, language: str) -> list[int]:
        codec = self._codec
        if language == AUTO:
            return [codec.nothink, codec.think_bos, codec.think_eos, codec.pad]
        if language not in codec.languages:
            raise InvalidRequest(
                "unsupported_language", f"this checkpoint has no id for language {language!r}; use auto"
            )
        return [codec.think, codec.think_bos, codec.languages[language], codec.think_eos, codec.pad]


def prompt_rows(talker: Talker, plan: PromptPlan, device: torch.device) -> Tensor:
    """Prefill rows [length, C] of a plan."""
    text = torch.tensor(plan.text, device=device)
    rows = talker.embed_text(text)
    beside = [index for index, code in enumerate(plan.codec) if code is not None]
    codes = torch.tensor([plan.codec[index] for index in beside], device=device)
    return rows.index_add(0, torch.tensor(beside, device=device), talker.embed_codec(codes))


def trailing_rows(talker: Talker, plan: PromptPlan, device: torch.device) -> Tensor:
    """Text rows [len(trailing), C] that join the frames one a step."""
    return talker.embed_text(torch.tensor(plan.trailing, device=device, dtype=torch.int64))

"""Which runs a controlled comparison has, and in which order: ABBA within each profile, one subject at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from qualification.journal import Unit

SIDES: Final = ("a", "b")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One run: one subject is started, speaks one round of one profile, and is stopped. `number` counts from 1."""

    number: int
    subject: str
    profile: str
    round: int

    @property
    def unit(self) -> Unit:
        return Unit(profile=self.profile, round=self.round)

    def __str__(self) -> str:
        return f"{self.subject.upper()}, {self.profile}, round {self.round + 1}"


def planned_runs(profiles: Sequence[str], rounds: int) -> tuple[Planned, ...]:
    """Profile by profile; even rounds begin with A, odd ones with B, so that a drift of the machine meets both alike."""
    return tuple(
        Planned(number=number, subject=subject, profile=profile, round=turn)
        for number, (profile, turn, subject) in enumerate(_places(profiles, rounds), start=1)
    )


def _places(profiles: Sequence[str], rounds: int) -> Iterator[tuple[str, int, str]]:
    for profile in profiles:
        for turn in range(rounds):
            for subject in SIDES if turn % 2 == 0 else SIDES[::-1]:
                yield profile, turn, subject

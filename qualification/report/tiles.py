"""The key figures at the head of the report, failures first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qualification.report.profiles import ProfileView
from qualification.report.words import figure

_ENDS: Final = "run.ends."


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One figure that matters, with its own small print. `style` is that of an outcome, or empty."""

    label: str
    value: str
    note: str
    style: str = ""


def key_figures(summary: Mapping[str, Any], profiles: Sequence[ProfileView]) -> tuple[Tile, ...]:
    """Failures first: a figure of those that succeeded means little without them."""
    numbers = {number["id"]: number for number in summary["numbers"]}
    tiles = [_failure_tile(profiles), _ends_tile(numbers)]
    tiles.append(_languages_tile(numbers))
    alone = next((profile for profile in profiles if profile.plan["concurrency"] == 1), None)
    if alone is not None:
        tiles.append(_median_tile(alone, "rtf", "real-time factor, alone"))
        tiles.append(_median_tile(alone, "ttfa", "first audio, alone"))
    memory = numbers["run.memory.rss.peak"]["value"]
    tiles.append(
        Tile(label="peak memory", value=figure(memory, "bytes"), note="resident, all processes of the subject")
    )
    return tuple(tiles)


def _languages_tile(numbers: Mapping[str, Mapping[str, Any]]) -> Tile:
    label = "languages that ended naturally"
    if not _told(numbers):
        return Tile(label=label, value="not told", note="the subject does not tell how speech ended", style="undone")
    covered = sum(1 for key, number in numbers.items() if _is_language_end(key) and number["value"])
    total = sum(1 for key in numbers if _is_language_end(key))
    style = "passed" if covered == total else "failed"
    return Tile(label=label, value=f"{covered} of {total}", note="at least once", style=style)


def _told(numbers: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether of each request it is known how it ended."""
    return bool(numbers["run.ends.natural"]["n"] == numbers["run.ends.requests"]["value"])


def _is_language_end(key: str) -> bool:
    """Whether a number counts one language's natural ends: `run.ends.<language>.natural`."""
    return key.startswith(_ENDS) and key.endswith(".natural") and key.count(".") == 3


def _failure_tile(profiles: Sequence[ProfileView]) -> Tile:
    failed = sum(int(profile.value("failed") or 0) for profile in profiles)
    asked = sum(int(profile.value("requests") or 0) for profile in profiles)
    return Tile(
        label="requests that failed", value=f"{failed} of {asked}", note="all profiles, warm-up excluded",
        style="failed" if failed else "passed",
    )  # fmt: skip


def _ends_tile(numbers: Mapping[str, Mapping[str, Any]]) -> Tile:
    natural, asked = numbers["run.ends.natural"]["value"], numbers["run.ends.requests"]["value"]
    if not _told(numbers):
        known = numbers["run.ends.natural"]["n"]
        note = f"of {asked - known} of {asked} requests the subject does not tell"
        return Tile(label="ended by themselves", value="not told", note=note, style="undone")
    bound = numbers["run.ends.unnatural_rate"]["upper95"]
    note = "nothing to bound" if bound is None else f"others: at most {figure(bound, 'share')}, at 95\u202f% confidence"
    style = "passed" if natural == asked else "inconclusive"
    return Tile(label="ended by themselves", value=f"{natural} of {asked}", note=note, style=style)


def _median_tile(profile: ProfileView, key: str, label: str) -> Tile:
    median = profile.numbers[f"{key}.median"]
    note = f"{profile.name} median of {median['n']}"
    note += "" if median["upper95"] is None else f", bound {figure(median['upper95'], median['unit'])}"
    return Tile(label=label, value=figure(median["value"], median["unit"]), note=note)

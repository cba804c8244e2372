"""A load profile as the report shows it: its plan in words, its standing, its numbers with their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qualification.report.words import figure, plural


@dataclass(frozen=True, kw_only=True)
class ProfileView:
    """A load profile with its numbers by the rest of their names (`rtf.median`), and its standing."""

    plan: Mapping[str, Any]
    standing: str
    reasons: Sequence[str]
    numbers: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        return str(self.plan["name"])

    @property
    def load(self) -> str:
        """The load in words."""
        count = self.plan["concurrency"]
        kinds = {
            "sustained": f"{plural(count, 'request')} kept in flight",
            "wave": f"{plural(count, 'request')} started together",
            "poisson": f"open load, {self.plan['rate_per_second']} requests a second",
        }
        return kinds[self.plan["load"]]

    def value(self, key: str) -> float | None:
        """A number's value; None where it is missing or was not measured."""
        return self.numbers[key]["value"] if key in self.numbers else None

    def upper(self, key: str) -> float | None:
        """A number's 95 % upper bound, or None."""
        return self.numbers[key]["upper95"] if key in self.numbers else None

    def shown(self, key: str) -> str:
        """A number with its bound, as a table cell."""
        if key not in self.numbers:
            return figure(None, None)
        number = self.numbers[key]
        bound = "" if number["upper95"] is None else f" (\u2264 {figure(number['upper95'], number['unit'])})"
        return figure(number["value"], number["unit"]) + bound


def profile_view(plan: Mapping[str, Any], summary: Mapping[str, Any]) -> ProfileView:
    """The profile of a plan in `run.json` with its numbers in `summary.json`."""
    prefix = f"{plan['name'].lower()}."
    numbers = {
        number["id"].removeprefix(prefix): number
        for number in summary["numbers"]
        if number["id"].startswith(prefix) and number["derivation"]["where"].get("profile") == plan["name"]
    }
    standing = next(item for item in summary["profiles"] if item["name"] == plan["name"])
    return ProfileView(plan=plan, standing=standing["standing"], reasons=standing["reasons"], numbers=numbers)

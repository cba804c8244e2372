"""A room for comparisons: the desk of a test, with a plan of two short load profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qualification.cli import main
from tests.qualification.desk import FAKE, Desk, edited, make_desk


def load_plan_of(plan: dict[str, Any]) -> None:
    rules = plan["tiers"]["reference"]
    rules["profiles"] = [profile for profile in rules["profiles"] if profile["name"] in ("B1", "B3")]
    for profile in rules["profiles"]:
        profile.update(warmup_requests=profile["concurrency"], repeats=4, entries=["bench-zh-short"])
    rules["parameters"]["store_audio"] = "none"


def make_room(root: Path) -> Desk:
    """A desk whose plan has B1 and B3 alone; two rounds have two requests each."""
    desk = make_desk(root)
    edited(root / "plan.json", root / "plan.json", load_plan_of)
    return desk


def compare_run(desk: Desk, *options: str, out: Path | None = None, a: str = FAKE, b: str = FAKE) -> int:
    """Compare two fakes as if each ran the small model."""
    subjects = ("--a", f"command={a}", "--b", f"command={b}", "--model", str(desk.model))
    place = ("--out", str(out if out is not None else desk.out))
    return main(["compare-run", *subjects, *desk.options, *place, "--profiles", "B1,B3", *options])


def verify(desk: Desk, place: Path, *options: str) -> int:
    trust = ("--policy", str(desk.root / "policy.json"), "--pins", str(desk.root / "pins.json"))
    return main(["verify", str(place), *trust, *options])

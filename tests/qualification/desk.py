"""A desk to qualify at: a small model, a plan and a policy small enough for a test, and the fake engine's command."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification.cli import main
from qualification.paths import data_file
from qualification.pinning import pin_model
from tests.qualification.safetensors_files import write_sound

FAKE = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).with_name('fake_server.py')))}"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A small model with pins, and a plan and a policy small enough for a test."""

    root: Path
    model: Path
    options: tuple[str, ...]

    @property
    def out(self) -> Path:
        return self.root / "bundle"

    def qualify(self, *options: str) -> int:
        return main(["qualify", *self.options, "--out", str(self.out), *options])

    def fake(self, *fault: str) -> int:
        """Qualify the fake as if it ran the small model."""
        return self.qualify("--engine-command", f"{FAKE} {shlex.join(fault)}", "--model", str(self.model))

    def fake_with(self, *options: str) -> int:
        """Qualify the fake with more options of the harness."""
        return self.qualify("--engine-command", FAKE, "--model", str(self.model), *options)

    def verify(self, *options: str) -> int:
        trust = ("--policy", str(self.root / "policy.json"), "--pins", str(self.root / "pins.json"))
        return main(["verify", str(self.out), *trust, *options])

    def json(self, path: str) -> Any:
        return json.loads((self.out / path).read_bytes())

    def outcomes(self) -> dict[str, str]:
        return {result["id"]: result["outcome"] for result in self.json("gates.json")["results"]}

    def lines(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / path).read_bytes().splitlines()]


def edited(source: Path, target: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    document = json.loads(source.read_bytes())
    change(document)
    target.write_text(json.dumps(document))
    return target


def small_plan(plan: dict[str, Any]) -> None:
    rules = plan["tiers"]["reference"]
    rules["profiles"] = [profile for profile in rules["profiles"] if profile["name"] != "B6"]
    for profile in rules["profiles"]:
        profile["warmup_requests"] = min(profile["warmup_requests"], 1)
        profile["repeats"] = 1 if profile["name"] in ("EOS", "SWITCH") else 2
        profile["entries"] = {"EOS": ["coverage-*"], "SWITCH": ["switch-de-en"]}.get(
            profile["name"], ["bench-zh-short"]
        )
        profile["seeds"] = "first" if profile["name"] == "B1" else "rotate"


def small_policy(policy: dict[str, Any]) -> None:
    rules = policy["tiers"]["reference"]
    rules["required"] = [
        gate for gate in rules["required"] if gate not in ("licences.environment", "bench.b6", "bench.b1", "bench.b3")
    ]  # the first hangs on the machine's packages, the others need more requests than a test sends
    rules["counts"] |= {"successes_per_profile": 1}


def make_desk(tmp_path: Path) -> Desk:
    """The small model, its pins, the plan and the policy, in files below `tmp_path`."""
    model = tmp_path / "model"
    write_sound(model / "model.safetensors")
    (model / "config.json").write_text('{"model_type": "small"}\n')
    pins = Path(shutil.copy(data_file("pins.json"), tmp_path))
    pin_model(
        model, tier="reference", model_id="example/small", licence="Apache-2.0", source="made by a test", pins_path=pins
    )
    plan = edited(data_file("plan.json"), tmp_path / "plan.json", small_plan)
    policy = edited(data_file("policy.json"), tmp_path / "policy.json", small_policy)
    options = ("--plan", str(plan), "--policy", str(policy), "--pins", str(pins))
    return Desk(root=tmp_path, model=model, options=options)

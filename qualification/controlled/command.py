"""The command `compare-run`: two subjects by turns, two sealed bundles, one comparison, one sealed directory."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qualification.comparison.table import show
from qualification.controlled.asking import SAMPLING
from qualification.controlled.log import RunLog, read_start
from qualification.controlled.runner import Controlled, Sides, start_document, trust_of
from qualification.controlled.schedule import SIDES
from qualification.controlled.subjects import options_for, parse_spec
from qualification.drawing import report_program
from qualification.errors import BundleError, QualificationError, UsageError
from qualification.inputs import EVIDENCE, Inputs, Options, prepare
from qualification.paths import JOURNAL_DIRECTORY, MANIFEST
from qualification.policy import load_policy
from qualification.progress import Screen, console_for
from qualification.selection import gates_of_profiles

DEFAULT_PROFILES = ("B1", "B3", "B6")
_PLACES = ("model", "policy", "pins", "workload", "plan", "key")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line asked for. `shared` are options of both subjects; `resume` goes on with a directory."""

    a: str | None
    b: str | None
    shared: Options
    profiles: tuple[str, ...] = DEFAULT_PROFILES
    rounds: int = 2
    within: float = 0.05
    allow: frozenset[str] = frozenset()
    out: Path | None = None
    resume: Path | None = None


def compare_run(request: Request, *, as_json: bool) -> int:
    """Run what is left, show the comparison and say where it lies; 0 once all is sealed, whatever it says.

    Raises:
        QualificationError: it could not be finished; it can go on with `--resume`.
    """
    screen = Screen()
    root = request.resume if request.resume is not None else _begun(request)
    log = RunLog(root)
    screen.step("comparison", str(root))
    try:
        document = Controlled(root, log, _sides(root, log.start), screen, report=report_program()).run()
    except (QualificationError, KeyboardInterrupt):
        screen.step("kept", f"{root}: what was gathered so far; go on with compare-run --resume {root}")
        raise
    finally:
        log.close()
    if as_json:
        print(json.dumps({"comparison": str(root), "document": document}, sort_keys=True, ensure_ascii=False))
    else:
        show(document, console_for(stderr=False))
        print(f"Comparison: {root}")
    return 0


def _begun(request: Request) -> Path:
    """Check everything that can be checked, then make the directory and its journal."""
    if request.a is None or request.b is None:
        raise UsageError("compare-run needs two subjects, --a and --b; or --resume DIR to go on with a comparison")
    comparison_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    root = request.out if request.out is not None else EVIDENCE / f"comparison-{comparison_id}"
    if root.exists():
        raise BundleError(f"{root} exists already; evidence is written once, choose another directory")
    design = {
        "order": "ABBA",
        "profiles": list(request.profiles),
        "rounds": request.rounds,
        "within": request.within,
        "allow": sorted(request.allow),
    }
    shared = request.shared
    places = {
        name: None if getattr(shared, name) is None else str(getattr(shared, name).absolute()) for name in _PLACES
    }
    start = start_document(
        comparison_id=comparison_id, a=request.a, b=request.b, design=design, places={**places, "tier": shared.tier}
    )
    for side in SIDES:
        prepare(_options(root, side, start))
    root.mkdir(parents=True)
    RunLog.create(root, start).close()
    return root


def _sides(root: Path, start: Mapping[str, Any]) -> Sides:
    inputs: dict[str, Inputs | None] = {}
    for side in SIDES:
        place = root / side
        if (place / MANIFEST).exists() and not (place / JOURNAL_DIRECTORY).exists():
            inputs[side] = None
            continue
        going_on = Options(resume=place) if (place / JOURNAL_DIRECTORY).exists() else _options(root, side, start)
        inputs[side] = prepare(going_on)
    some = next((item for item in inputs.values() if item is not None), None)
    known = some if some is not None else prepare(replace(_options(root, "a", start), out=root / "unused"))
    labels = {side: parse_spec(start[side]).label for side in SIDES}
    return Sides(inputs=inputs, labels=labels, trust=trust_of(known), key=known.key)


def _options(root: Path, side: str, start: Mapping[str, Any]) -> Options:
    """The qualification of one side: load profiles alone, in rounds, with sampling sent in full."""
    design = start["design"]
    places = {name: None if start[name] is None else Path(start[name]) for name in _PLACES}
    shared = Options(
        model=places["model"],
        policy=places["policy"],
        pins=places["pins"],
        workload=places["workload"],
        plan=places["plan"],
        key=places["key"],
        tier=start["tier"],
        out=root / side,
        gates=gates_of_profiles(design["profiles"], load_policy(places["policy"])),
        rounds=design["rounds"],
        sampling=SAMPLING,
    )
    return options_for(parse_spec(start[side]), shared)


__all__ = ["DEFAULT_PROFILES", "Request", "compare_run", "read_start"]

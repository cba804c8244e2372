"""Runs a controlled comparison: one subject at a time, by turns, each run a session of that subject's bundle.

Every run starts its subject, warms it up at the concurrency of the profile, measures one round and stops it, so that
nothing of one run is left in the next and never two subjects load the machine. What was measured lies in the bundles'
journals as it comes; a comparison that was interrupted goes on with the run that was cut short. When all runs are there
both bundles are sealed, compared, and the whole is sealed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification import paths, signing, strictjson
from qualification.bench.phases import utc_now
from qualification.bundle import Report
from qualification.comparison.command import compare_bundles
from qualification.comparison.document import Asked
from qualification.controlled.log import RunLog
from qualification.controlled.record import COMPARISON, SCHEDULE, schedule_document
from qualification.controlled.schedule import SIDES, Planned, planned_runs
from qualification.controlled.sealing import seal
from qualification.errors import InputError, QualificationError
from qualification.evidence_view import EvidenceView
from qualification.inputs import Inputs
from qualification.progress import Screen
from qualification.run import Run
from qualification.schema import urn, validate
from qualification.verify.trust import Trust


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Inputs of both bundles; None for one that is sealed already. `labels` say what was asked for."""

    inputs: Mapping[str, Inputs | None]
    labels: Mapping[str, str]
    trust: Trust
    key: Any


class Controlled:
    """One controlled comparison in the directory `root`, whose journal is `log`."""

    def __init__(self, root: Path, log: RunLog, sides: Sides, screen: Screen, *, report: Report | None) -> None:
        self._root = root
        self._log = log
        self._sides = sides
        self._screen = screen
        design = log.start["design"]
        self._planned = planned_runs(design["profiles"], design["rounds"])
        self._runs = {
            side: Run(inputs, screen, report=report) for side, inputs in sides.inputs.items() if inputs is not None
        }
        self._seconds: dict[str, list[float]] = {}

    def run(self) -> dict[str, Any]:
        """Whatever is left of the comparison; returns the document `comparison.json`.

        Raises:
            QualificationError: a run could not be finished, or the bundles are not comparable; what there is stays, and
                the comparison can go on.
        """
        try:
            self._note_what_had_ended()
            for planned in self._planned:
                if not self._done(planned):
                    self._one(planned)
            self._seal_bundles()
        finally:
            for run in self._runs.values():
                run.close()
        return self._seal()

    def _done(self, planned: Planned) -> bool:
        attempts = self._log.attempts(planned.number)
        return bool(attempts) and attempts[-1]["outcome"] == "ok"

    def _note_what_had_ended(self) -> None:
        """A run may have been whole on disk when the harness was killed before it could say so."""
        for planned in self._planned:
            attempts, run = self._log.attempts(planned.number), self._runs.get(planned.subject)
            if run is None or not attempts or attempts[-1]["ended_ns"] is not None:
                continue
            whole = run.done(planned.unit)
            detail = "the harness was killed before it could say that this run had ended"
            if whole:
                self._ended(planned, run, attempts[-1]["session"], "ok", detail)

    def _one(self, planned: Planned) -> None:
        run = self._runs[planned.subject]
        self._tell(planned)
        session, began = run.next_session, time.monotonic()
        self._log.began(
            planned.number, session=session, at_utc=utc_now(), at_ns=run.now_ns(), load_average=_load_average()
        )
        try:
            run.session([planned.unit])
            self._check_alike()
        except (Exception, KeyboardInterrupt) as error:
            run.interrupted(error)
            with suppress(OSError, QualificationError):
                outcome = "ok" if run.done(planned.unit) else "failed"  # the subject may fail when it is stopped
                self._ended(planned, run, session, outcome, str(error)[:8000] or type(error).__name__)
            raise
        self._ended(planned, run, session, "ok", None)
        self._seconds.setdefault(planned.profile, []).append(time.monotonic() - began)

    def _ended(self, planned: Planned, run: Run, session: int, outcome: str, detail: str | None) -> None:
        self._log.ended(planned.number, outcome, session=session, detail=detail, at_utc=utc_now(), at_ns=run.now_ns())

    def _tell(self, planned: Planned) -> None:
        left = [item for item in self._planned if not self._done(item)]
        text = f"{planned}; {self._sides.labels[planned.subject]}"
        self._screen.step(f"run {planned.number} of {len(self._planned)}", f"{text}; {self._remaining(left)}")

    def _remaining(self, left: Sequence[Planned]) -> str:
        """How long the runs that are left still take, from those of their profile that have ended, or of any."""
        every = [seconds for runs in self._seconds.values() for seconds in runs]
        if not every:
            return "how long it takes is known after the first run"
        means = [self._seconds.get(item.profile, every) for item in left]
        seconds = sum(sum(known) / len(known) for known in means)
        return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"

    def _check_alike(self) -> None:
        """Both sides have the planned profiles in the planned rounds, as soon as both are known."""
        known = {side: run.plan for side, run in self._runs.items() if run.plan is not None}
        for side, plan in known.items():
            rounds = {profile.name: profile.rounds for profile in plan.profiles}
            design = self._log.start["design"]
            if rounds != dict.fromkeys(design["profiles"], design["rounds"]):
                raise InputError(f"subject {side.upper()} would run {rounds}, which is not the plan of the comparison")
        if len({str(plan.profiles) for plan in known.values()}) > 1:
            raise InputError(
                "the two subjects are of different tiers, whose load profiles differ; give one --plan for both"
            )

    def _seal_bundles(self) -> None:
        for side in SIDES:
            if side in self._runs:
                self._screen.step("seal", f"bundle {side.upper()}")
                self._runs[side].seal()

    def _seal(self) -> dict[str, Any]:
        """Compare the bundles and seal the whole; done again from the beginning where it was interrupted."""
        for name in (SCHEDULE, COMPARISON, paths.MANIFEST, paths.STATEMENT):
            (self._root / name).unlink(missing_ok=True)
        start, sides = self._log.start, {side: EvidenceView(self._root / side) for side in SIDES}
        schedule = schedule_document(
            sides,
            self._sides.labels,
            comparison_id=start["comparison_id"],
            times=(start["started_utc"], utc_now()),
            attempts={item.number: self._log.attempts(item.number) for item in self._planned},
            design=start["design"],
        )
        validate("controlled-schedule", schedule, SCHEDULE)
        strictjson.write(self._root / SCHEDULE, schedule)
        asked = Asked(within=start["design"]["within"], allow=frozenset(start["design"]["allow"]))
        document = compare_bundles([self._root / side for side in SIDES], [self._sides.trust], asked).document
        strictjson.write(self._root / COMPARISON, document)
        seal(self._root, start["comparison_id"], self._sides.key)
        self._log.remove()
        return document


def start_document(
    *, comparison_id: str, a: str, b: str, design: Mapping[str, Any], places: Mapping[str, str | None]
) -> dict[str, Any]:
    """The document `journal/start.json`; `places` are files, the tier and the model directory as they were given."""
    return {
        "schema": urn("controlled-start"),
        "comparison_id": comparison_id,
        "started_utc": utc_now(),
        "a": a,
        "b": b,
        "design": dict(design),
        **places,
    }


def trust_of(inputs: Inputs) -> Trust:
    """What the harness trusts right after the runs: the inputs that were chosen, and the key that sealed."""
    keys: tuple[signing.TrustedKey, ...] = ()
    if inputs.key is not None:
        public = inputs.key.public_key()
        keys = (signing.TrustedKey(keyid=signing.keyid(public), key=public),)
    return Trust(policy=inputs.policy.document, pins=inputs.pins.document, keys=keys)


def _load_average() -> list[float] | None:
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except OSError:
        return None

"""Engines in other processes that a test can hold back and look into, through files of one directory."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from engine.fleet.identity import Identity, declared_image
from engine.fleet.plan import Plan
from tests.engine.server.fake_engine import FakeEngine, Row

GATE = "gate"  # while this file exists, frames beyond the number in it wait


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What became of one request: the process that spoke it and the frames it made."""

    pid: int
    steps: int


class FiledEngine(FakeEngine):
    """The fake engine; each request's steps stand in a file, and a gate file holds rows back."""

    def __init__(self, place: Path, **options: Any) -> None:
        super().__init__(**options)
        self._place = place

    def _can_step(self, row: Row) -> bool:
        return super()._can_step(row) and row.steps < self._permitted_steps()

    def _permitted_steps(self) -> int:
        try:
            return int((self._place / GATE).read_text() or 0)
        except FileNotFoundError:
            return 1 << 30

    def _step(self, rows: list[Row]) -> None:
        super()._step(rows)
        for row in rows:
            note = self._place / f"{row.stream.request_id}.json"
            fresh = note.with_suffix(f".{threading.get_ident()}")
            fresh.write_text(json.dumps({"pid": os.getpid(), "steps": row.steps}))
            fresh.rename(note)


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """The test's side of the directory."""

    place: Path

    def seen(self, request_id: UUID) -> Seen | None:
        """The request as its engine last noted it."""
        note = self.place / f"{request_id}.json"
        return Seen(**json.loads(note.read_text())) if note.exists() else None

    def hold(self, frames: int) -> None:
        """No row makes more than so many frames until `release`."""
        fresh = self.place / "fresh"
        fresh.write_text(str(frames))
        fresh.rename(self.place / GATE)

    def release(self) -> None:
        (self.place / GATE).unlink()


def make_engine(place: Path, slots: int, frame_seconds: float) -> FiledEngine:
    return FiledEngine(place, slots=slots, frame_seconds=frame_seconds)


def identify(files: dict[str, str]) -> Identity:
    return Identity(model_files=files, engine_source="source", image=None)


def identify_by_node() -> Identity:
    """The image is the one that the node declares."""
    return Identity(model_files={}, engine_source="source", image=declared_image(os.environ))


def identify_first_with(place: Path) -> Identity:
    """Replicas of one fleet that are not of one thing: the first to come is, the second differs."""
    try:
        (place / "first").touch(exist_ok=False)
    except FileExistsError:
        time.sleep(1.0)  # so that it is not the first that is seen
        return Identity(model_files={"model.safetensors": "ff"}, engine_source="source", image="sha256:ff")
    return identify({"model.safetensors": "00"})


def fake_plan(place: Path, *, slots: int = 2, frame_seconds: float = 0.0, replicas: int = 2, **more: Any) -> Plan:
    """A fleet of fake engines; they take no CPU share, so that any machine has room for them."""
    values: dict[str, Any] = {
        "make_engine": partial(make_engine, place, slots, frame_seconds),
        "identify": partial(identify, {"model.safetensors": "00"}),
        "generation": "first",
        "slots": slots,
        "least": replicas,
        "most": replicas,
        "cpus": 0.01,
        "drain_seconds": 10.0,
    }
    return Plan(**{**values, **more})

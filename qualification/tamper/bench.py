"""The attacker's bench: reads and rewrites files of a bundle, and seals it again as far as the attacker can.

How far is part of each tamper:
- `nothing`    the file was changed and left so;
- `manifest`   the manifest was rebuilt over the changed files;
- `everything` gates, summary and manifest were computed again with this very harness.
The signature cannot be made again: the attacker has not the key.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from qualification import manifest, paths, strictjson, summary
from qualification.bundle import gates_document
from qualification.evaluation import evaluate_all
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.policy import parse_policy
from qualification.tamper.good import Good


class Reseal(StrEnum):
    """How far the attacker seals again."""

    NOTHING = "nothing"
    MANIFEST = "manifest"
    EVERYTHING = "everything"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A private copy of the good bundle. Files are replaced, never written in place: the copy shares them by links."""

    root: Path
    good: Good

    def read(self, path: str) -> Any:
        """A JSON document."""
        return strictjson.loads((self.root / path).read_bytes(), path)

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in the place of a file, or make it."""
        place = self.root / path
        place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def edit(self, path: str, change: Callable[[Any], object]) -> None:
        """Change a JSON document in place and write it canonically."""
        document = self.read(path)
        change(document)
        self.replace(path, strictjson.dumps(document))

    def edit_lines(self, path: str, change: Callable[[list[Any]], object]) -> None:
        """Change the list of a file's lines in place and write them canonically."""
        lines = list(strictjson.loads_lines((self.root / path).read_bytes(), path))
        change(lines)
        self.replace(path, b"".join(strictjson.dumps_line(line) for line in lines))

    def number(self, name: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Change one number of the summary."""
        self.edit(paths.SUMMARY, lambda document: change(find(document["numbers"], id=name)))

    def seal(self, reseal: Reseal) -> None:
        """Seal again as far as `reseal` says."""
        if reseal is Reseal.EVERYTHING:
            self._recompute()
        if reseal is not Reseal.NOTHING:
            run_id = self.read(paths.MANIFEST)["run_id"]
            self.replace(paths.MANIFEST, strictjson.dumps(manifest.build(self.root, run_id)))

    def _recompute(self) -> None:
        evidence = EvidenceView(self.root)
        policy = parse_policy(evidence.document(paths.POLICY))
        results = evaluate_all(evidence, policy, GATES)
        self.replace(paths.GATES, strictjson.dumps(gates_document(evidence, results)))
        again = EvidenceView(self.root)
        self.replace(paths.SUMMARY, strictjson.dumps(summary.build(again, policy, results)))


def copy(good: Good, root: Path) -> Bench:
    """A copy of the good bundle at `root`, its files linked."""
    shutil.copytree(good.root, root, copy_function=os.link)
    return Bench(root=root, good=good)


def find(items: list[dict[str, Any]], **wanted: object) -> dict[str, Any]:
    """The first object with these values."""
    return next(item for item in items if all(item[key] == value for key, value in wanted.items()))


def measured(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The measured requests among raw records."""
    return (line for line in lines if line["phase"] == "measure")


def shift(record: Mapping[str, Any], nanoseconds: int) -> dict[str, Any]:
    """A record with all its times moved."""
    moved = {key: record[key] + nanoseconds for key in ("scheduled_ns", "t0_ns", "headers_ns", "end_ns")}
    packets = [{**packet, "at_ns": packet["at_ns"] + nanoseconds} for packet in record["packets"]]
    return {**record, **moved, "packets": packets}

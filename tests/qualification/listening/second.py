"""A second bundle to compare with: the good one, sealed again for another run, so that its manifest is another."""

from __future__ import annotations

from pathlib import Path

from qualification.tamper import bench
from qualification.tamper.bench import Reseal
from qualification.tamper.good import Good


def second_bundle(good: Good, root: Path) -> Path:
    copy = bench.copy(good, root)
    (root / "statement.dsse.json").unlink()
    copy.replace("logs/second.log", b"another run\n")
    copy.seal(Reseal.MANIFEST)
    return root

"""What a verification of a release-sized bundle costs, as an auditor's command spends it, measured and kept:

    python -m tests.qualification.verify.verifier_figures --out docs/measurements/cpu/verifier.json

Wall and processor time of the whole process, imports included, once for each repetition; the report is drawn again too.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from qualification import strictjson
from qualification.evidence_view import EvidenceView
from tests.qualification.verify import release_sized

COMMAND: Final = "python -m tests.qualification.verify.verifier_figures --out docs/measurements/cpu/verifier.json"
REPEATS: Final = 7


def measure(repeats: int = REPEATS) -> dict[str, Any]:
    """Build the bundle, verify it in processes of their own, and tell the answer, the size and the times in seconds."""
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:  # a quarter of a gigabyte
        root = release_sized.build(Path(directory, "bundle"), patch).root
        trust = ("--policy", str(root / "policy.json"), "--pins", str(root / "pins.json"))
        command = (sys.executable, "-m", "qualification", "verify", str(root), *trust, "--json")
        runs = [_timed(command) for _ in range(repeats)]
        return {**_times(runs), **_size(root)}


def _timed(command: Sequence[str]) -> tuple[str, float, float]:
    """Answer, wall and processor seconds of one verification."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, timeout=300, check=True)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout)["answer"], round(wall, 2), round(cpu, 2)


def _times(runs: Sequence[tuple[str, float, float]]) -> dict[str, Any]:
    answers = {answer for answer, _, _ in runs}
    return {
        "answer": ", ".join(sorted(answers)),
        "cpu_seconds": [cpu for _, _, cpu in runs],
        "wall_seconds": [wall for _, wall, _ in runs],
    }


def _size(root: Path) -> dict[str, int]:
    evidence = EvidenceView(root)
    return {
        "audio_files": len(evidence.audio_files),
        "bundle_bytes": sum((root / path).stat().st_size for path in evidence.walked.files),
        "report_bytes": (root / "report.html").stat().st_size,
        "requests": len(evidence.all_records),
        "rounds": sum(phase["kind"] == "measure" for phase in evidence.phases),
        "telemetry_samples": len(evidence.telemetry),
    }


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    machine = {"cpu_model": _cpu_model(), "python": platform.python_version()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(strictjson.dumps({"command": COMMAND, "machine": machine, **measure()}))


if __name__ == "__main__":
    main()

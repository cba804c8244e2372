"""Mutates modules of the verdict path one by one and runs the nearest tests against each mutant:

    python -m tests.qualification.mutation [MODULE...]      # such as verify/plan; default: all of NEAREST

Needs mutmut (`nox -s mutation -- MODULE`). Works in a scratch copy and prints each survivor as a difference. It ends with 0
only if every survivor is one of those that `mutation-survivors.json` keeps with a reason.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from qualification import strictjson

REPOSITORY: Final = Path(__file__).resolve().parents[2]
SURVIVORS: Final = Path(__file__).with_name("mutation-survivors.json")
_STEPS: Final = "verify/test_steps.py"
_WHOLE: Final = "verify/test_verifier.py"
NEAREST: Final = {
    "results": ("test_results.py",),
    "policy": ("test_policy.py",),
    "evaluation": ("test_evaluation.py",),
    "manifest": ("test_bundle.py", _STEPS),
    "statement": ("test_signing.py", _STEPS),
    "signing": ("test_signing.py", _STEPS),
    "verify/report": ("verify/test_report.py",),
    "verify/structure": ("verify/test_each_document.py", _WHOLE, _STEPS),
    "verify/authenticity": (_WHOLE, _STEPS),
    "verify/documents": (_STEPS,),
    "verify/binding": ("verify/test_each_document.py", _STEPS),
    "verify/recompute": (_WHOLE, _STEPS),
    "verify/requests": ("verify/test_bounds.py", _STEPS),
    "verify/controlled": (_STEPS,),
    "verify/plan": ("verify/test_bounds.py", _STEPS),
    "verify/timeline": ("verify/test_bounds.py", "verify/test_telemetry_bounds.py", _STEPS),
    "verify/audio": (_STEPS,),
    "verify/audio_layers": ("audio_review/test_review.py", _STEPS),
    "verify/sense": ("verify/test_bounds.py", _STEPS),
    "verify/sessions": (_STEPS,),
    "verify/layers": ("verify/test_layers.py", _STEPS),
}
_CONFIGURATION: Final = """[mutmut]
source_paths=
    qualification
only_mutate=
    qualification/{module}.py
pytest_add_cli_args_test_selection=
{tests}
pytest_add_cli_args=
    -m slow or not slow
    --deselect=tests/qualification/verify/test_verifier.py::test_needs_four_packages_no_network_and_no_writing
also_copy=
    schemas
    tests
    pyproject.toml
"""
_LINE: Final = re.compile(r"^\s+(\S+): (survived|no tests|timeout|suspicious|segfault|killed)$", re.MULTILINE)


def mutate(module: str, scratch: Path) -> tuple[int, dict[str, str]]:
    """Number of mutants of one module, and what is left: name -> the change, as mutmut shows it."""
    for part in ("qualification", "schemas", "tests"):
        shutil.copytree(REPOSITORY / part, scratch / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", scratch)
    tests = "\n".join(f"    tests/qualification/{test}" for test in NEAREST[module])
    (scratch / "setup.cfg").write_text(_CONFIGURATION.format(module=module, tests=tests))
    ran = _mutmut(scratch, "run", "--max-children", "2")
    told = dict(_LINE.findall(_mutmut(scratch, "results", "--all", "true")))
    if not told:
        raise SystemExit(f"{module}: no mutant was tried; the last lines of mutmut:\n{ran[-2_000:]}")
    left = [name for name, state in told.items() if state not in ("killed", "timeout")]
    return len(told), {name: _change(_mutmut(scratch, "show", name)) for name in left}


def _mutmut(scratch: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": ""}  # the mutants, not the package that is installed here
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _change(shown: str) -> str:
    lines = [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.qualification.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", choices=[[], *NEAREST], default=[])
    known = strictjson.load(SURVIVORS)
    unknown = 0
    for module in parser.parse_args(argv).modules or NEAREST:
        with TemporaryDirectory(prefix="mutation-") as place:
            tried, left = mutate(module, Path(place))
        reasons = known.get(module, {})
        print(f"{module}: {tried} mutants, {tried - len(left)} killed, {len(left)} survived", flush=True)
        for name, change in left.items():
            unknown += change not in reasons
            print(f"{name}: {reasons.get(change, 'NO REASON KEPT')}\n{change}", flush=True)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())

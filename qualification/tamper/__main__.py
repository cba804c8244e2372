"""`python -m qualification.tamper`: prints what became of each tamper; exit 1 if one slipped through."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from qualification.tamper import good
from qualification.tamper.run import run_all


def main() -> int:
    """Build the good bundle, run everything, print a table."""
    slipped = cases = 0
    with TemporaryDirectory(prefix="tamper-") as directory:
        original = good.build(Path(directory, good.RUN_ID))
        for caught in run_all(original, Path(directory)):
            cases += caught.cases
            slipped += not caught.caught
            print(f"{'refused' if caught.caught else 'SLIPPED':8} {caught.code:28} {caught.name} ({caught.cases})")
            if not caught.caught:
                print(f"{'':8} found instead: {', '.join(caught.found) or 'nothing'}")
    print(f"{cases} cases, {slipped} slipped through")
    return 1 if slipped else 0


if __name__ == "__main__":
    sys.exit(main())

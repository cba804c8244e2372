"""`python -m qualification.tamper [BUNDLE]`: prints what became of each tamper; exit 1 if one slipped through.

Without BUNDLE the good bundle is built and the whole corpus runs against it. The corpus knows the good bundle's content,
so a BUNDLE of your own meets what fits any bundle: each accident on each of its files. It is copied first, never touched.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from qualification import paths
from qualification.tamper import good
from qualification.tamper.run import Caught, every_accident, run_all


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(prog="python -m qualification.tamper", description=(__doc__ or ""))
    parser.add_argument("bundle", type=Path, nargs="?", metavar="BUNDLE", help="a sealed bundle (default: built here)")
    bundle: Path | None = parser.parse_args(argv).bundle
    if bundle is not None and not (bundle / paths.MANIFEST).is_file():
        parser.error(f"{bundle} is no sealed bundle; give the directory that holds {paths.MANIFEST}")
    slipped = cases = 0
    print(f"{'':8} {'expected':28} {'found':34} tamper (cases)")
    with TemporaryDirectory(prefix="tamper-") as directory:
        for caught in _rows(bundle, Path(directory)):
            cases += caught.cases
            slipped += not caught.caught
            print(_line(caught), flush=True)
    print(f"{cases} cases, {slipped} rows slipped through")
    return 1 if slipped else 0


def _rows(bundle: Path | None, directory: Path) -> Iterator[Caught]:
    if bundle is None:
        return run_all(good.build(directory / good.RUN_ID), directory)
    copied = Path(shutil.copytree(bundle, directory / "original", symlinks=True))
    return every_accident(copied, directory)


def _line(caught: Caught) -> str:
    others = [code for code in caught.found if code != caught.code]
    if not caught.caught:
        found = ", ".join(caught.found) or "nothing"
    else:
        found = caught.code + (f" and {len(others)} more" if others else "")
    fate = "SLIPPED" if not caught.caught else "sound" if caught.code == "none" else "refused"
    return f"{fate:8} {caught.code:28} {found:34} {caught.name} ({caught.cases})"


if __name__ == "__main__":
    sys.exit(main())

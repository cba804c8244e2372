"""The `check` stage: the runtime image looked at once more, from inside, after the files were copied. Ships nothing.

1. The model's files hash to the same identity as before they entered.
2. They belong to root and are 0444.
3. No tool of `layout.TOOLS` can be found in the directories where programs lie, and no pip can be imported.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from qualification import strictjson
from qualification.container import layout
from qualification.container.stage_model import PINS, RUN_ID
from qualification.identity import identity_document, judge, survey
from qualification.pins import load_pins

PROGRAMS = ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin", "opt/assay/bin")


def main(root: Path = Path("/")) -> None:
    """Stop the build with every fault found."""
    inside = [*identity_faults(root), *mode_faults(root), *tool_faults(root)]
    if inside:
        sys.exit("\n  ".join(("image_malformed: the runtime stage is not what it should be", *inside)))


def identity_faults(root: Path) -> Iterator[str]:
    """Rule 1."""
    pins = load_pins(PINS)
    again = identity_document(RUN_ID, judge(survey(below(root, layout.MODEL), pins), pins))
    if again != strictjson.load(below(root, layout.IDENTITY)):
        yield f"weights_differ: {layout.MODEL} is not what was verified before it was copied"


def mode_faults(root: Path) -> Iterator[str]:
    """Rule 2."""
    for path in sorted(below(root, layout.MODEL).rglob("*")):
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode) and (stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid) != (0o444, 0, 0):
            mode = f"{stat.S_IMODE(facts.st_mode):04o}"
            yield f"{path} has mode {mode} and owner {facts.st_uid}:{facts.st_gid}, not 0444 and 0:0"


def tool_faults(root: Path) -> Iterator[str]:
    """Rule 3."""
    for place in PROGRAMS:
        directory = root / place
        for name in sorted(os.listdir(directory)) if directory.is_dir() else ():
            if name in layout.TOOLS:
                yield f"/{place}/{name} is a tool that the service does not need"
    for path in sorted(below(root, layout.SITE).glob("pip*")):
        yield f"{path} is a package manager"


def below(root: Path, path: os.PathLike[str]) -> Path:
    """An absolute path of the image below `root`."""
    return root / os.fspath(path).lstrip("/")


if __name__ == "__main__":
    main()

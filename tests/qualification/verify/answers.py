"""The verifier's answers to many bundles, a line each, run as a file so that any Python with its four packages can do it:

    PYTHONPATH=. python tests/qualification/verify/answers.py DIRECTORY

A line is the name of a bundle in DIRECTORY, the exit status and the JSON that the command prints. Policy and pins are
DIRECTORY/policy.json and DIRECTORY/pins.json, the key is DIRECTORY/key.pub.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

from qualification.cli import main


def answer(bundle: Path) -> str:
    trusted = bundle.parent
    trust = [f"--{name}={trusted / file}" for name, file in TRUST.items()]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = main(["verify", str(bundle), *trust, "--json"])
    return f"{bundle.name} {status} {printed.getvalue()}"


TRUST = {"policy": "policy.json", "pins": "pins.json", "key": "key.pub"}


if __name__ == "__main__":
    for place in sorted(Path(sys.argv[1]).iterdir()):
        if place.is_dir() or place.suffix not in (".json", ".pub"):
            sys.stdout.write(answer(place))

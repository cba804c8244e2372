"""Writes a directory for `--recogniser` from the installed wheel of PocketSphinx.

python -m qualification.audio_review.pocketsphinx_mount DIR
"""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from qualification import paths, schema, strictjson
from qualification.audio_review.recogniser import MANIFEST, SCHEMA
from qualification.digest import sha256_file
from qualification.errors import InputError, QualificationError

CLEAN_ERROR_RATE: Final = 0.325
_HOW: Final = (
    "25 of 77 words wrong, missing or added: coverage-en, auto-en, bench-en-short and bench-en-medium of the workload, "
    "spoken by espeak-ng 1.51 with the voice en-us+f2 at 140 words a minute and resampled to 24 kHz."
)


def write(root: Path) -> Path:
    """Fill `root`, which must not exist, and return it.

    Raises:
        InputError: PocketSphinx is not installed, or the directory is there already.
    """
    try:
        wheel = distribution("pocketsphinx")
    except PackageNotFoundError as error:
        raise InputError("pocketsphinx is not installed; install it beside `tts-assay[review]`") from error
    if root.exists():
        raise InputError(f"{root} exists already; name a directory to make")
    model = Path(str(wheel.locate_file("pocketsphinx/model/en-us")))
    shutil.copytree(model, root / "model")
    shutil.copyfile(Path(__file__).with_name("pocketsphinx_reader.py"), root / "recognise.py")
    document = _document(root, wheel.version)
    schema.validate(SCHEMA, document, MANIFEST)
    strictjson.write(root / MANIFEST, document)
    return root


def _document(root: Path, version: str) -> dict[str, Any]:
    files = paths.walk(root).files
    return {
        "schema": schema.urn(SCHEMA),
        "name": "pocketsphinx",
        "version": version,
        "licence": "BSD-2-Clause",
        "source": "PyPI wheel pocketsphinx: its model/en-us, and the reader of this project; licence text in the wheel",
        "languages": [{"language": "en", "clean_error_rate": CLEAN_ERROR_RATE, "how": _HOW}],
        "command": ["{python}", "recognise.py"],
        "files": [{"path": path, "sha256": sha256_file(root / path)} for path in files],
    }


if __name__ == "__main__":
    try:
        print(write(Path(sys.argv[1])))
    except IndexError:
        sys.exit("name the directory to make")
    except QualificationError as error:
        sys.exit(f"error: {error}")

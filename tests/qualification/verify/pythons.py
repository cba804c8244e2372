"""Interpreters other than this one, each with the verifier's own packages and no more, in environments made here:

    python -m tests.qualification.verify.pythons

prints what the verifier answers to the good bundle and to every bundle of the tamper corpus, by Python version; it ends
with 0 only if at least two versions answered and all of them wrote the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from qualification import strictjson
from qualification.tamper import bench, good
from qualification.tamper.corpus import CORPUS

REPOSITORY: Final = Path(__file__).resolve().parents[3]
ANSWERS: Final = Path(__file__).with_name("answers.py")
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")


def lay_out(directory: Path, *, tampers: bool = True) -> None:
    """The good bundle and the tampered ones, with what a verifier of them trusts, in `directory`."""
    original = good.build(directory / "good")
    key = original.trust.keys[0].key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (directory / "key.pub").write_bytes(key)
    strictjson.write(directory / "policy.json", original.trust.policy)
    strictjson.write(directory / "pins.json", original.trust.pins)
    for number, tamper in enumerate(CORPUS if tampers else ()):
        copy = bench.copy(original, directory / f"tampered-{number:03}")
        tamper.change(copy)
        copy.seal(tamper.reseal)


def answers(python: Path, directory: Path) -> bytes:
    """What the verifier under `python` writes about every bundle in `directory`."""
    command = [str(python), "-W", "error", str(ANSWERS), str(directory)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, check=True, env=environment, cwd=REPOSITORY).stdout


def found() -> dict[str, Path]:
    """Full version -> executable of the interpreters that start here: those on the path, and those that pyenv keeps."""
    kept = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    places = [shutil.which(f"python{version}") for version in VERSIONS]
    places += [str(place) for version in VERSIONS for place in sorted(kept.glob(f"{version}.*/bin/python"))]
    told = (_version_of(place) for place in places if place is not None)
    return dict(sorted(pair for pair in told if pair is not None))


def _version_of(executable: str) -> tuple[str, Path] | None:
    code = "import platform, sys; print(platform.python_version(), sys.executable)"
    told = subprocess.run([executable, "-c", code], capture_output=True, text=True, check=False)
    if told.returncode != 0:
        return None  # a shim for a version that is not there
    full, place = told.stdout.split(maxsplit=1)
    return full, Path(place.strip())


def environment(python: Path, directory: Path) -> Path:
    """The interpreter of a new environment below `directory` that holds the verifier's packages."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    subprocess.run([python, "-m", "venv", directory], check=True)
    made = directory / "bin" / "python"
    install = [made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    subprocess.run([*install, "-c", REPOSITORY / "constraints.txt", *project["dependencies"]], check=True)
    return made


def main() -> int:
    told: dict[str, bytes] = {}
    with TemporaryDirectory() as place:
        bundles = Path(place, "bundles")
        bundles.mkdir()
        lay_out(bundles)
        for version, executable in found().items():
            told[version] = answers(environment(executable, Path(place, version)), bundles)
            lines, digest = told[version].count(b"\n"), hashlib.sha256(told[version]).hexdigest()
            print(f"Python {version}: {lines} bundles, {len(told[version])} bytes, SHA-256 {digest}", flush=True)
    same = len(set(told.values())) == 1
    print(f"{len(told)} versions: {'the same bytes' if same else 'DIFFERENT answers'}")
    return 0 if same and len(told) > 1 else 1


if __name__ == "__main__":
    sys.exit(main())

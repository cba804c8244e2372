"""What a replica is made of, so that a fleet can tell whether all of it is one thing.

Hashes of the model's files, of the engine's own source, and the image digest that the deployment declares: a container
cannot see the digest it was started from, so the manifest that pins the image repeats it in ASSAY_IMAGE_DIGEST.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import engine
from engine.errors import UsageError

IMAGE_VARIABLE = "ASSAY_IMAGE_DIGEST"
IMAGE_FORM = re.compile(r"sha256:[0-9a-f]{64}")
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Identity:
    """SHA-256 in hex of each model file, of the engine's source, and the declared image digest or None."""

    model_files: dict[str, str]
    engine_source: str
    image: str | None

    @property
    def model(self) -> str:
        """One digest over all files: SHA-256 of the sorted lines `<sha256>  <path>`, as an image's label has it."""
        lines = sorted(f"{digest}  {path}\n" for path, digest in self.model_files.items())
        return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"

    def differences(self, other: Identity) -> list[str]:
        """What of `self` is not as in `other`, by name; empty when both are the same."""
        names = sorted(self.model_files.keys() | other.model_files.keys())
        found = [f"model file {name}" for name in names if self.model_files.get(name) != other.model_files.get(name)]
        found += ["engine source"] if self.engine_source != other.engine_source else []
        return found + (["image digest"] if self.image != other.image else [])


def identify(model: Path, environ: Mapping[str, str] = os.environ) -> Identity:
    """Hash a model directory and this engine.

    Raises:
        UsageError: ASSAY_IMAGE_DIGEST is no digest.
    """
    image = declared_image(environ)
    files = {str(path.relative_to(model)): _sha256(path) for path in sorted(model.rglob("*")) if path.is_file()}
    return Identity(model_files=files, engine_source=_source_digest(), image=image)


def declared_image(environ: Mapping[str, str]) -> str | None:
    """The digest that the deployment says it runs.

    Raises:
        UsageError: it is no digest.
    """
    image = environ.get(IMAGE_VARIABLE) or None
    if image is not None and not IMAGE_FORM.fullmatch(image):
        raise UsageError(f"{IMAGE_VARIABLE}={image!r} is no digest; give sha256: and 64 hexadecimal digits")
    return image


def _source_digest() -> str:
    root = Path(engine.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        whole.update(f"{_sha256(path)}  {path.relative_to(root)}\n".encode())
    return whole.hexdigest()


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()

"""A speech recogniser that the operator mounts: a directory with `recogniser.json`, hashed before it runs.

Protocol: the command runs once, in that directory; a request a line on its standard input, `{"id", "wav", "language"}` with
the absolute path of a 24 kHz mono 16-bit WAV; an answer a line on its standard output, `{"id", "text"}`, in any order, each
id once. `{python}` in the command stands for this interpreter. The hashes cover the directory; what the command loads from
elsewhere, such as an installed package, they do not, and its version is the operator's word.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qualification import paths, schema, strictjson
from qualification.digest import sha256_file
from qualification.errors import InputError

MANIFEST: Final = "recogniser.json"
SCHEMA: Final = "recogniser"
TIMEOUT_SECONDS: Final = 3_600


@dataclass(frozen=True, kw_only=True)
class Request:
    """One utterance to read back."""

    id: str
    wav: Path
    language: str


@dataclass(frozen=True, kw_only=True)
class Recogniser:
    """A mounted recogniser whose files are those of its manifest. `sha256` is that of the manifest, which names all."""

    root: Path
    document: Mapping[str, Any]
    sha256: str

    @property
    def languages(self) -> frozenset[str]:
        return frozenset(item["language"] for item in self.document["languages"])

    def to_json(self) -> dict[str, Any]:
        """What the record says of it."""
        kept = ("name", "version", "licence", "source", "languages")
        return {**{key: self.document[key] for key in kept}, "manifest_sha256": self.sha256}

    def hear(self, requests: Sequence[Request], timeout: float = TIMEOUT_SECONDS) -> dict[str, str]:
        """Id -> what was heard, for every request.

        Raises:
            InputError: it fails, does not end, or does not answer each request once.
        """
        lines = b"".join(
            strictjson.dumps_line({"id": item.id, "wav": str(item.wav.resolve()), "language": item.language})
            for item in requests
        )
        name = self.document["name"]
        command = [sys.executable if word == "{python}" else word for word in self.document["command"]]
        try:
            ended = subprocess.run(
                command, cwd=self.root, input=lines, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(f"{name}: took longer than {timeout:g} s; mount a faster recogniser") from error
        except OSError as error:
            raise InputError(f"{name}: {command[0]} cannot be started: {error.strerror}") from error
        if ended.returncode:
            said = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise InputError(f"{name}: ended with {ended.returncode}: {''.join(said) or 'no word'}")
        return _answers(ended.stdout, requests, name)


def mount(root: Path) -> Recogniser:
    """Check every file of the directory against its manifest.

    Raises:
        InputError: no strict manifest of its schema, a file missing, altered or not listed, or a link.
    """
    manifest = root / MANIFEST
    if not manifest.is_file():
        raise InputError(f"{root}: holds no {MANIFEST}; see docs/audio-review.md for what it must say")
    document = schema.load(SCHEMA, manifest)
    walked = paths.walk(root)
    listed = {item["path"]: item["sha256"] for item in document["files"]}
    odd = [*walked.irregular, *({*walked.files, *listed} - {MANIFEST} - (set(walked.files) & listed.keys()))]
    if odd:
        raise InputError(f"{root}: {', '.join(sorted(odd)[:6])}: linked, missing or not listed; list exactly its files")
    changed = [path for path, sha256 in listed.items() if sha256_file(root / path) != sha256]
    if changed:
        raise InputError(f"{root}: {', '.join(changed[:6])}: not the bytes of the manifest; mount the original files")
    return Recogniser(root=root, document=document, sha256=sha256_file(manifest))


def _answers(output: bytes, requests: Sequence[Request], name: str) -> dict[str, str]:
    answers = strictjson.loads_lines(output, f"{name}: standard output")
    heard: dict[str, str] = {}
    for answer in answers:
        schema.validate("recogniser-answer", answer, f"{name}: standard output")
        if answer["id"] in heard:
            raise InputError(f"{name}: answered {answer['id']} twice")
        heard[answer["id"]] = answer["text"]
    if heard.keys() != {item.id for item in requests}:
        raise InputError(f"{name}: answered {len(heard)} of {len(requests)} requests, or others than were asked")
    return heard

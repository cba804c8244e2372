"""Runs the corpus: one row a tamper, and over the files of the bundle one row a kind of accident.

A tamper is caught if its own finding comes and the bundle is refused. The walk over all files asks the first question
of the verifier alone (are exactly the sealed files there, unaltered?), because that question must catch every one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from qualification import manifest
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.tamper import bench, good
from qualification.tamper.changes import Tamper
from qualification.tamper.corpus import CORPUS
from qualification.verify import structure
from qualification.verify.verifier import verify


@dataclass(frozen=True, kw_only=True)
class Caught:
    """What became of one tamper, or of one kind of accident over `cases` files."""

    name: str
    code: str
    caught: bool
    found: tuple[str, ...]
    cases: int = 1


def run_tamper(original: good.Good, tamper: Tamper, root: Path) -> Caught:
    """Tamper with a copy at `root` and verify it."""
    copy = bench.copy(original, root)
    tamper.change(copy)
    copy.seal(tamper.reseal)
    if _content(copy.root) == _content(original.root):
        raise ValueError(f"tamper {tamper.name!r} changed nothing; it shows nothing")
    verification = verify(root, original.trust, GATES, _no_report)
    found = tuple(sorted({finding.code for finding in verification.findings if finding.refuses}))
    caught = tamper.code in found and verification.refused and verification.exit_code >= 10
    return Caught(name=tamper.name, code=tamper.code, caught=caught, found=found)


def run_all(original: good.Good, directory: Path) -> Iterator[Caught]:
    """The good bundle itself, the corpus, and the accidents over every file."""
    untouched = verify(original.root, original.trust, GATES)
    codes = tuple(sorted({finding.code for finding in untouched.findings if finding.refuses}))
    yield Caught(name="the good bundle, untouched", code="none", caught=untouched.exit_code == 0, found=codes)
    for number, tamper in enumerate(CORPUS):
        yield run_tamper(original, tamper, directory / f"t{number}")
    yield from every_accident(original.root, directory)


def every_accident(original: Path, directory: Path) -> Iterator[Caught]:
    """Each kind of accident on each file of the bundle at `original`; `directory` lies on the same file system."""
    untouched = {finding.code for finding in structure.check(EvidenceView(original)) if finding.refuses}
    yield Caught(name="every file, untouched", code="none", caught=not untouched, found=tuple(sorted(untouched)))
    for name in ACCIDENTS:
        yield over_all_files(original, name, directory)


def over_all_files(original: Path, name: str, directory: Path) -> Caught:
    """One kind of accident on every file that the manifest lists; `found` names the files that got through."""
    code, accident = ACCIDENTS[name]
    missed = []
    paths = [path for path in EvidenceView(original).walked.files if not manifest.is_outside(path)]
    for path in paths:
        with TemporaryDirectory(dir=directory) as place:
            copied = Path(shutil.copytree(original, Path(place, "bundle"), copy_function=os.link))
            accident(copied / path)
            codes = {finding.code for finding in structure.check(EvidenceView(copied)) if finding.refuses}
        if code not in codes:
            missed.append(path)
    found = tuple(missed) if missed else (code,)
    return Caught(name=f"each file {name}", code=code, caught=bool(paths) and not missed, found=found, cases=len(paths))


def _content(root: Path) -> dict[str, bytes | str]:
    """Every path below `root` with its bytes, or with the kind of thing that it is."""
    places = sorted(root.rglob("*"))
    return {
        str(place.relative_to(root)): place.read_bytes() if place.is_file() and not place.is_symlink() else "irregular"
        for place in places
    }


def _delete(place: Path) -> None:
    place.unlink()


def _add(place: Path) -> None:
    place.with_name(f"{place.stem}-more{place.suffix}").write_bytes(place.read_bytes())


def _rename(place: Path) -> None:
    place.rename(place.with_name(f"{place.stem}-renamed{place.suffix}"))


def _truncate(place: Path) -> None:
    _rewrite(place, place.read_bytes()[:-1])


def _empty(place: Path) -> None:
    _rewrite(place, b"")


def _flip(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    _rewrite(place, bytes(data))


def _rewrite(place: Path, data: bytes) -> None:
    place.unlink()
    place.write_bytes(data)


def _no_report(_: EvidenceView) -> str:
    return ""


ACCIDENTS: Final[Mapping[str, tuple[str, Callable[[Path], None]]]] = {
    "deleted": ("file.missing", _delete),
    "copied beside itself": ("file.extra", _add),
    "renamed": ("file.missing", _rename),
    "one byte short": ("file.size", _truncate),
    "emptied": ("file.size", _empty),
    "one bit flipped": ("file.digest", _flip),
}

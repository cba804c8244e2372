"""Third-party notices of the image: every licence text that its parts bring, once each, in a fixed order.

Read from the environment itself while building: the licence files of each distribution, and Debian's copyright files.
Not covered: whether the licences are allowed (`sbom` and the policy decide that).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from qualification.container import layout

LICENCE_NAMES = ("LICEN", "COPYING", "NOTICE", "AUTHORS", "COPYRIGHT")


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One licence text of one part of the image."""

    part: str
    file: str
    text: str


def notices(
    site: Path = Path(layout.SITE), copyrights: Path = Path(layout.COPYRIGHTS), model: Path = Path(layout.MODEL)
) -> str:
    """The whole document; equal texts appear once, under all the parts that bring them."""
    found = sorted(
        (*of_distributions(site), *of_packages(copyrights), *of_model(model)), key=lambda item: (item.part, item.file)
    )
    groups: dict[str, list[Notice]] = {}
    for notice in found:
        groups.setdefault(hashlib.sha256(notice.text.encode()).hexdigest(), []).append(notice)
    return "Third-party notices\n" + "".join(_section(group) for group in groups.values())


def _section(group: list[Notice]) -> str:
    heads = "\n".join(f"{notice.part}: {notice.file}" for notice in group)
    return f"\n{'=' * 78}\n{heads}\n{'-' * 78}\n{group[0].text.rstrip()}\n"


def of_distributions(site: Path) -> Iterator[Notice]:
    """Licence files in the metadata directory of each distribution below `site`."""
    for item in distributions(path=[str(site)]):
        name = f"{item.metadata['Name']} {item.version}"
        for path in item.files or []:
            if path.parts[0].endswith(".dist-info") and path.name.upper().startswith(LICENCE_NAMES):
                yield Notice(part=name, file=str(PurePosixPath(*path.parts[1:])), text=_text(item, path))


def of_packages(copyrights: Path) -> Iterator[Notice]:
    """Debian's copyright file of each package."""
    for path in copyrights.glob("*/copyright"):
        yield Notice(
            part=f"Debian {path.parent.name}", file="copyright", text=path.read_text(encoding="utf-8", errors="replace")
        )


def of_model(model: Path) -> Iterator[Notice]:
    """Licence files that lie beside the weights."""
    for path in model.iterdir() if model.is_dir() else ():
        if path.name.upper().startswith(LICENCE_NAMES):
            yield Notice(part="model", file=path.name, text=path.read_text(encoding="utf-8", errors="replace"))


def _text(item: Distribution, path: PurePosixPath) -> str:
    place = Path(str(item.locate_file(path)))
    return place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""

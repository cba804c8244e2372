"""Every part of one image, from its layers: the single place that says what a bill of materials lists."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from qualification.container.image_tree import ImageTree
from qualification.pins import Pins
from qualification.sbom.debian_parts import debian_parts
from qualification.sbom.model_parts import model_parts
from qualification.sbom.parts import Part
from qualification.sbom.python_parts import python_parts


def image_parts(tree: ImageTree, pins: Pins, wheels: Mapping[str, str], engine: Part) -> tuple[Part, ...]:
    """Engine, Python distributions, vendored libraries, Debian packages, model and its files.

    Args:
        wheels: SHA-256 of each wheel by normal name.
    """
    with tempfile.TemporaryDirectory(prefix="assay-sbom-") as place:
        python = tuple(python_parts(tree, Path(place), wheels))
    return (engine, *python, *debian_parts(tree), *model_parts(tree, pins))

"""Parts are read from the image's own files: distributions, packages with their copyright files, the verified model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qualification import strictjson
from qualification.container.image_tree import ImageTree
from qualification.container.layer import measured
from qualification.container.layout import IDENTITY, PACKAGES, SITE
from qualification.identity import identity_document, judge, survey
from qualification.paths import data_file
from qualification.pinning import pin_model
from qualification.pins import load_pins
from qualification.sbom.debian_parts import CuratedLicence, debian_parts, licence_of, load_mapping
from qualification.sbom.image_parts import image_parts
from qualification.sbom.model_parts import model_parts
from qualification.sbom.parts import Part
from qualification.sbom.python_parts import python_parts
from tests.qualification.container.tars import Content, write_tar
from tests.qualification.safetensors_files import write_sound

DEP5 = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n"
CONTROL = f"""Package: libz
Version: 1:1.2
Architecture: amd64
Source: zlib (1.2)
Depends: libc6 (>= 2), other | more
X-Archive-SHA256: {"d" * 64}
""".encode()
SITE_TREE: dict[str, Content] = {
    f"{SITE}/six-1.0.dist-info/METADATA": b"\n".join(
        (
            b"Metadata-Version: 2.4",
            b"Name: Six",
            b"Version: 1.0",
            b"License-Expression: MIT",
            b"Requires-Dist: h11",
            b"Requires-Dist: gone",
        )
    ),
    f"{SITE}/h11-2.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: h11\nVersion: 2.0\n",
    f"{SITE}/numpy.libs/libblas-1.so.0": b"library",
}
DEBIAN_TREE: dict[str, Content] = {
    f"{PACKAGES}/libz": CONTROL,
    "usr/share/doc/zlib-base/copyright": (DEP5 + "License: Zlib\n").encode(),
    "usr/share/doc/libz": "zlib-base",
}


def _tree(tmp_path: Path, entries: dict[str, Content]) -> ImageTree:
    return ImageTree([measured(write_tar(tmp_path / "layer.tar", entries))])


def test_distributions_and_what_they_vendor(tmp_path: Path) -> None:
    with _tree(tmp_path, SITE_TREE) as tree:
        found = {part.name: part for part in python_parts(tree, tmp_path / "scratch", {"six": "e" * 64})}
    assert (found["six"].licence, found["six"].requires, found["six"].sha256) == ("MIT", ("h11",), "e" * 64)
    assert found["h11"].licence is None
    assert "numpy" in (found["numpy.libs/libblas-1.so.0"].skipped or "")


def test_packages_and_their_licence_through_a_link(tmp_path: Path) -> None:
    with _tree(tmp_path, DEBIAN_TREE) as tree:
        (part,) = debian_parts(tree, {})
    assert (part.name, part.licence, part.sha256, part.requires) == ("libz", "Zlib", "d" * 64, ("libc6", "other"))
    assert part.purl == "pkg:deb/debian/libz@1%3A1.2?arch=amd64&distro=debian-12"


CURATED = CuratedLicence(source="x", expression="MIT", text="the words of the licence", why="because of a test")


@pytest.mark.parametrize(
    ("text", "curated", "licence", "words"),
    [
        (DEP5 + "License: Expat\nLicense: Expat\n", None, "MIT", "Expat"),
        (DEP5 + "License: Expat\nLicense: GPL-2+\n", None, None, "several licences"),
        ("free words", None, None, "not machine-readable"),
        ("", None, None, "not machine-readable"),
        ("here are the words\n of the licence", CURATED, "MIT", "the words"),
        ("something else now", CURATED, None, "no longer says"),
    ],
)
def test_licences_of_copyright_files(
    text: str, curated: CuratedLicence | None, licence: str | None, words: str
) -> None:
    found, evidence = licence_of(text, curated)
    assert found == licence
    assert words in evidence


def test_the_packaged_mapping_loads() -> None:
    assert {"glibc", "gcc-12", "python3.11"} <= set(load_mapping())


def _model(tmp_path: Path, fill: int) -> tuple[bytes, Path]:
    write_sound(tmp_path / "model" / "model.safetensors")
    pins = Path(shutil.copy(data_file("pins.json"), tmp_path / "pins.json"))
    pin_model(
        tmp_path / "model",
        tier="reference",
        model_id="example/small",
        licence="Apache-2.0",
        source="this test",
        pins_path=pins,
    )
    write_sound(tmp_path / "model" / "model.safetensors", fill=fill)
    known = load_pins(pins)
    return strictjson.dumps(identity_document("image-build", judge(survey(tmp_path / "model", known), known))), pins


def test_each_weight_file_has_a_licence_of_its_own(tmp_path: Path) -> None:
    identity, pins = _model(tmp_path, fill=0)
    with _tree(tmp_path, {str(IDENTITY): identity}) as tree:
        model, weights = model_parts(tree, load_pins(pins))
    assert (model.kind, model.name, model.licence) == ("model", "example/small", "Apache-2.0")
    assert (weights.kind, weights.name, weights.licence) == ("weights", "model.safetensors", "Apache-2.0")
    assert dict(weights.facts)["parameters"] == "6"


def test_everything_of_an_image_is_listed(tmp_path: Path) -> None:
    identity, pins = _model(tmp_path, fill=0)
    own = Part(kind="own", name="engine", version="1", purl=None, licence="Apache-2.0", evidence="ours")
    with _tree(tmp_path, SITE_TREE | DEBIAN_TREE | {str(IDENTITY): identity}) as tree:
        kinds = [part.kind for part in image_parts(tree, load_pins(pins), {}, own)]
    assert sorted(kinds) == ["debian", "model", "own", "python", "python", "vendored", "weights"]

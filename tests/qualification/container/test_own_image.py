"""An image is built once: what lies there is taken where it is of this very commit, and built again where it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification import strictjson
from qualification.container import own_image, source
from qualification.container.image import LAYOUT, PROVENANCE, SBOM, ImageOrder
from qualification.container.own_image import OwnImage
from qualification.container.subject import REPORT
from qualification.digest import sha256_file
from qualification.paths import PINS, data_file
from qualification.policy import load_policy
from qualification.subject import embedded_model
from tests.qualification.gates.container_bundle import recorded

COMMIT = "a" * 40


class Workshop:
    """A checkout at `COMMIT` with an image of it; counts what is built instead of building."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = root / "build" / "container" / "cpu"
        self.report: dict[str, Any] = recorded([])["build"]
        self.report["source"] |= {"commit": COMMIT, "dirty": False}
        self.report["pins_sha256"] = sha256_file(data_file(PINS))
        self.orders: list[ImageOrder] = []
        (self.output / LAYOUT).mkdir(parents=True)
        for name in (SBOM, PROVENANCE):
            (self.output / name).write_bytes(b"{}")

    def layout(self, model: Path | None = None) -> Path:
        (self.output / REPORT).write_bytes(strictjson.dumps(self.report))
        own = OwnImage(model=model or embedded_model(), pins=data_file(PINS), policy=load_policy(), checkout=self.root)
        return own.layout()


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    shop = Workshop(tmp_path)
    state = source.SourceState(commit=COMMIT, epoch=1, changed=())
    monkeypatch.setattr(source, "source_state", lambda _: state)
    monkeypatch.setattr(own_image, "make_image", shop.orders.append)
    return shop


def test_an_image_of_this_commit_is_not_built_again(workshop: Workshop) -> None:
    assert workshop.layout() == workshop.output / LAYOUT
    assert workshop.layout() == workshop.output / LAYOUT
    assert workshop.orders == []


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report["source"].update(commit="b" * 40),
        lambda report: report["source"].update(dirty=True),
        lambda report: report.update(pins_sha256="0" * 64),
        lambda report: report.update(builds=report["builds"][:1]),
        lambda report: report.update(schema="urn:another:version"),
    ],
    ids=["other commit", "dirty tree", "other pins", "built once", "other schema"],
)
def test_any_other_image_is_built_again(workshop: Workshop, change: Callable[[dict[str, Any]], None]) -> None:
    change(workshop.report)
    workshop.layout()
    assert [order.builds for order in workshop.orders] == [2]


@pytest.mark.parametrize("name", [SBOM, PROVENANCE])
def test_an_image_without_its_documents_is_built_again(workshop: Workshop, name: str) -> None:
    (workshop.output / name).unlink()
    workshop.layout()
    assert len(workshop.orders) == 1


def test_a_tree_with_changes_is_built_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    state = source.SourceState(commit=COMMIT, epoch=1, changed=("engine/x.py",))
    monkeypatch.setattr(source, "source_state", lambda _: state)
    workshop.layout()
    assert len(workshop.orders) == 1

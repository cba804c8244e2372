"""What a build made is removed and nothing else, whoever builds beside it."""

from __future__ import annotations

from typing import Any, cast

import docker
import pytest

from qualification.container.build import leftovers_removed, noted


class FakeApi:
    """An engine's image list; an image goes only once nothing is built on it."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {"sha256:" + "b" * 64: None}

    @property
    def api(self) -> FakeApi:
        return self

    def images(self, **_: Any) -> list[dict[str, str]]:
        return [{"Id": name} for name in self.parents]

    def remove_image(self, image: str, **_: Any) -> None:
        if image in self.parents.values():
            raise docker.errors.APIError("image has children")
        del self.parents[image]


def _id(letter: str) -> str:
    return "sha256:" + letter * 64


def test_only_what_this_build_made_goes() -> None:
    engine = FakeApi()
    with leftovers_removed(cast(Any, engine)) as made:
        engine.parents |= {_id("c"): _id("b"), _id("d"): _id("c"), _id("e"): _id("b")}  # e belongs to somebody else
        made |= {"b" * 12, "c" * 12, "d" * 12}
    assert set(engine.parents) == {_id("b"), _id("e")}


def test_a_failure_inside_changes_nothing_about_that() -> None:
    engine = FakeApi()

    def fail_half_way() -> None:
        with leftovers_removed(cast(Any, engine)) as made:
            engine.parents[_id("c")] = _id("b")
            made.add("c" * 12)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert set(engine.parents) == {_id("b")}


def test_a_cache_stays_when_asked_for() -> None:
    engine = FakeApi()
    with leftovers_removed(cast(Any, engine), active=False) as made:
        engine.parents[_id("c")] = None
        made.add("c" * 12)
    assert _id("c") in engine.parents


def test_ids_are_read_from_the_builders_account() -> None:
    made: set[str] = set()
    events = [
        {"stream": "Step 1/2 : FROM x\n"},
        {"stream": " ---> 0123456789ab\n"},
        {"stream": " ---> Running in cafecafecafe\n"},
        {"aux": {"ID": "x"}},
    ]
    assert list(noted(events, made)) == events
    assert made == {"0123456789ab"}

"""Without an engine the record says so, and nothing is left to guess; the record is complete whatever happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification import schema
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.record import ContainerRecord
from qualification.container.source import SourceState, require_clean
from qualification.container.subject import ContainerOrder, container_subject

RUN = "20260101-000000-test"


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


@pytest.mark.usefixtures("no_engine")
def test_a_daemon_that_is_down_is_not_performed() -> None:
    record = ContainerRecord()
    with pytest.raises(ContainerFault, match="no Docker engine") as caught, container_subject(ContainerOrder(), record):
        pass
    document = record.document(RUN)
    assert caught.value.code is FaultCode.NO_ENGINE
    assert document["performed"] is False
    assert [finding["code"] for finding in document["findings"]] == ["no_engine"]


def test_an_empty_record_fits_its_schema() -> None:
    schema.validate("container", ContainerRecord().document(RUN), "container.json")


def test_a_dirty_tree_is_named_by_its_files() -> None:
    require_clean(SourceState(commit="a" * 40, epoch=1, changed=()))
    with pytest.raises(ContainerFault, match=r"a\.py") as caught:
        require_clean(SourceState(commit="a" * 40, epoch=1, changed=("a.py",)))
    assert caught.value.code is FaultCode.DIRTY_TREE


def test_a_dirty_revision_says_so() -> None:
    assert SourceState(commit="a" * 40, epoch=1, changed=("a.py",)).revision == "a" * 40 + "-dirty"

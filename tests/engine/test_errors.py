"""One exit code a family, one wire code a refusal."""

from __future__ import annotations

import pytest

from engine import errors


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [
        (errors.EngineError, 1),
        (errors.UsageError, 2),
        (errors.ModelError, 3),
        (errors.RequestError, 4),
        (errors.InvalidRequest, 4),
        (errors.RequestIdInUse, 4),
        (errors.CapacityExhausted, 4),
        (errors.EngineUnavailable, 4),
        (errors.DeviceError, 5),
    ],
)
def test_each_family_has_its_exit_code(kind: type[errors.EngineError], exit_code: int) -> None:
    assert kind.exit_code == exit_code
    assert issubclass(kind, errors.EngineError)


def test_request_errors_carry_code_and_mend() -> None:
    busy = errors.CapacityExhausted(6)
    assert (busy.code, str(busy)) == ("capacity_exhausted", busy.detail)
    assert "6 slots" in busy.detail
    assert "retry" in busy.detail
    twin = errors.RequestIdInUse("abc")
    assert twin.code == "request_id_in_use"
    assert "abc" in twin.detail

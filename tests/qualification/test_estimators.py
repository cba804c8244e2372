"""Each estimator on rows whose answer is known by hand."""

from __future__ import annotations

import pytest

from qualification.estimators import ESTIMATORS, NO_BOUND, NO_ROWS, TOO_FEW, Estimate, Row, estimate

S = 1_000_000_000


def _rows(*values: float | str) -> list[Row]:
    return [Row(value=value) for value in values]


def _timed(*triples: tuple[float, int, int], group: str = "g") -> list[Row]:
    return [Row(value=value, group=group, start_ns=start, end_ns=end) for value, start, end in triples]


@pytest.mark.parametrize(
    ("name", "rows", "value"),
    [
        ("count", _rows(5, 5), 2),
        ("sum", _rows(1, 2), 3),
        ("sum", _rows(0.1, 0.2, 0.3), 0.6),
        ("unique", _rows("a", "b", "a"), 2),
        ("min", _rows(3, 1), 1),
        ("max", _rows(3, 1), 3),
        ("mean", _rows(1, 2), 1.5),
        ("span", _timed((0, 0, S), (0, 2 * S, 5 * S)), 5.0),
        ("span_per_sum", _timed((2.0, 0, S), (3.0, S, 5 * S)), 1.0),
        ("sum_per_span", _timed((2, 0, S), (3, S, 5 * S)), 1.0),
        ("integral", _timed((10, 0, 0), (20, 2 * S, 2 * S), (20, 3 * S, 3 * S)), 50.0),
        ("integral", _timed((20, 3 * S, 3 * S), (10, 0, 0), (20, 2 * S, 2 * S)), 50.0),
        ("time_mean", _timed((10, 0, 0), (20, 2 * S, 2 * S)), 15.0),
        ("increase", _timed((9, 2, 2), (4, 1, 1)), 5),
    ],
)
def test_value_without_a_bound(name: str, rows: list[Row], value: float) -> None:
    assert estimate(name, rows) == Estimate(value=value, n=len(rows), reason=NO_BOUND)


def test_groups_keep_their_times_apart() -> None:
    rows = _timed((1, 0, S), group="a") + _timed((1, 100 * S, 101 * S), group="b")
    assert estimate("span", rows).value == 2.0
    power = _timed((10, 0, 0), (10, S, S), group="a") + _timed((10, 50 * S, 50 * S), (10, 51 * S, 51 * S), group="b")
    assert estimate("integral", power).value == 20.0
    counters = _timed((1, 0, 0), (4, 1, 1), group="a") + _timed((100, 0, 0), (101, 1, 1), group="b")
    assert estimate("increase", counters).value == 4


def test_median_has_a_bound_from_five_on() -> None:
    assert estimate("median", _rows(1, 2, 3, 4)) == Estimate(value=2.5, n=4, reason=TOO_FEW)
    assert estimate("median", _rows(1, 2, 3, 4, 5)) == Estimate(value=3, n=5, upper95=5)


@pytest.mark.parametrize(("name", "least", "value"), [("p95", 59, 57), ("p99", 299, 297)])
def test_a_percentile_exists_only_with_its_bound(name: str, least: int, value: int) -> None:
    few, enough = _rows(*range(1, least)), _rows(*range(1, least + 1))
    assert estimate(name, few) == Estimate(value=None, n=least - 1, reason=TOO_FEW)
    assert estimate(name, enough) == Estimate(value=value, n=least, upper95=least)


def test_share() -> None:
    found = estimate("share", _rows(*[0] * 24))
    assert (found.value, found.n, found.reason) == (0.0, 24, None)
    assert found.upper95 == pytest.approx(0.1173, abs=1e-4)
    assert estimate("share", _rows(1, 0)).value == 0.5
    with pytest.raises(ValueError, match="0 and 1"):
        estimate("share", _rows(2))


def test_nothing_measured() -> None:
    for name in ESTIMATORS:
        found = estimate(name, [])
        if name in ("count", "sum", "unique"):
            assert found == Estimate(value=0, n=0, reason=NO_BOUND)
        else:
            assert found == Estimate(value=None, n=0, reason=NO_ROWS)


def test_no_division_by_nothing() -> None:
    assert estimate("span_per_sum", _timed((0.0, 0, S))).reason == NO_ROWS
    assert estimate("sum_per_span", _timed((1, 5, 5))).reason == NO_ROWS
    assert estimate("time_mean", _timed((1, 5, 5))).reason == TOO_FEW


def test_text_has_no_sum() -> None:
    with pytest.raises(TypeError, match="holds text"):
        estimate("sum", _rows("a"))

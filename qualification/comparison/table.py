"""The comparison for people: headline, one row a figure, the gate's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

_STYLES = {"better": "green", "worse": "bold red", "no_difference": "", "cannot_tell": "yellow"}
_COLUMNS = ("profile", "figure", "B / A", "95 % interval", "least detectable", "rounds", "pairs", "verdict")


def show(document: Mapping[str, Any], console: Console) -> None:
    """Print a document of the schema `comparison`."""
    for line in document["headline"]:
        console.print(line, markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in ("profile", "figure", "verdict") else "right")
    for profile in document["profiles"]:
        for figure in profile["figures"]:
            table.add_row(profile["profile"], *_cells(figure), style=_STYLES[figure["verdict"]])
    console.print()
    console.print(table)
    if document["gate"] is not None:
        _show_gate(document["gate"], console)


def _cells(figure: Mapping[str, Any]) -> tuple[str, ...]:
    interval = "-" if figure["low"] is None else f"{figure['low']:.4f} to {figure['high']:.4f}"
    return (
        figure["figure"],
        "-" if figure["ratio"] is None else f"{figure['ratio']:.4f}",
        interval,
        "-" if figure["minimum_detectable"] is None else f"{figure['minimum_detectable']:.1%}",
        str(figure["rounds"]),
        str(figure["pairs"]),
        figure["sentence"],
    )


def _show_gate(gate: Mapping[str, Any], console: Console) -> None:
    console.print()
    console.print(f"Fail if worse by more than {gate['limit']:.1%}: {gate['outcome'].replace('_', ' ')}.", markup=False)
    for reason in gate["reasons"]:
        console.print(f"  {reason}", markup=False)

"""What a person sees while a run goes on: one line a step, a bar a phase, one table and one verdict at the end.

On a terminal the bar moves; into a file or a pipe each phase leaves one line when it ends. Nothing here decides
anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from qualification.bench.raw import RequestRecord
from qualification.policy import Verdict
from qualification.results import GateResult, Outcome

_STYLES = {
    Outcome.PASSED: "green",
    Outcome.FAILED: "bold red",
    Outcome.ERROR: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.NOT_PERFORMED: "dim",
    Outcome.NOT_APPLICABLE: "dim",
}
_PIPE_WIDTH = 160
Advance = Callable[[RequestRecord], None]


class Screen:
    """Where the run is told. `console` None: standard error, so that standard output stays for machines."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or console_for(stderr=True)

    def step(self, title: str, text: str) -> None:
        """One thing that was done, in one line."""
        self.console.print(f"[bold]{title:>12}[/bold]  ", end="")
        self.console.print(text, markup=False)

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Advance]:
        """A phase of `total` requests; call what is given with each finished record."""
        tally = _Tally()
        started = time.monotonic()
        columns = (
            TextColumn("[bold]{task.description:>12}[/bold]  "),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        progress = Progress(*columns, console=self.console, transient=True, refresh_per_second=4)
        with progress if self.console.is_terminal else nullcontext():
            task = progress.add_task(title, total=total, note="")

            def advance(record: RequestRecord) -> None:
                tally.add(record)
                progress.update(task, advance=1, note=tally.note())

            yield advance
        self.step(title, f"{tally.requests} requests in {time.monotonic() - started:.1f} s, {tally.note()}")

    def results(self, results: Iterable[GateResult]) -> None:
        """The table of the gates."""
        table = Table(box=None, pad_edge=False, header_style="bold", expand=False)
        for name in ("gate", "outcome", "n", "what was found"):
            table.add_column(name, no_wrap=name != "what was found", justify="right" if name == "n" else "left")
        for result in results:
            outcome = f"[{_STYLES[result.outcome]}]{result.outcome.value}[/]"
            table.add_row(result.id, outcome, str(result.n) if result.n else "", _plain(result.detail))
        self.console.print()
        self.console.print(table)

    def verdict(self, verdict: Verdict, where: str) -> None:
        """The verdict in one sentence, and where the evidence lies."""
        style = "bold green" if verdict.qualified else "bold yellow" if verdict.outcome == "incomplete" else "bold red"
        self.console.print()
        self.console.print(verdict.sentence, style=style, markup=False)
        self.console.print(where, markup=False)


def console_for(*, stderr: bool) -> Console:
    """A console as wide as the terminal; into a file or pipe wide enough for the table."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


class TimeLeft:
    """How long the rest takes, from what units of the same profile took."""

    def __init__(self) -> None:
        self._took: dict[str, list[float]] = {}

    def add(self, profile: str, seconds: float) -> None:
        """A unit of this profile has ended."""
        self._took.setdefault(profile, []).append(seconds)

    def words(self, rest: Sequence[str]) -> str:
        """The units of `rest`, named by their profiles, in a phrase."""
        timed = [profile for profile in rest if profile in self._took]
        seconds = round(sum(fmean(self._took[profile]) for profile in timed))
        text = f"{len(rest)} unit{'' if len(rest) == 1 else 's'} of work"
        text += f", about {seconds // 60}:{seconds % 60:02} min" if timed else ""
        untimed = len(rest) - len(timed)
        return text + (f" and {untimed} of which no like has been timed" if timed and untimed else "")


class _Tally:
    """Successes, failures and the RTF so far, for the note beside the bar."""

    def __init__(self) -> None:
        self.requests = 0
        self._failed = 0
        self._wall = 0.0
        self._audio = 0.0

    def add(self, record: RequestRecord) -> None:
        self.requests += 1
        if record.ok:
            self._wall += record.wall_ns / 1e9
            self._audio += record.audio_seconds
        else:
            self._failed += 1

    def note(self) -> str:
        failed = f"{self._failed} failed, " if self._failed else ""
        return f"{failed}{self._audio:.1f} s of audio" + (
            f", RTF {self._wall / self._audio:.2f}" if self._audio else ""
        )


def _plain(text: str) -> str:
    return text.replace("[", r"\[")

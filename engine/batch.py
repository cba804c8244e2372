"""The requests in work, on their rows: what one turn of the engine does to them.

Joins the scheduler's decisions with the runner's tensors and hands the results to the tickets. Belongs to the
engine's thread. A prefill that fails takes only its own request with it; whatever else fails leaves `turn` as an
exception, and the owner then drops the whole batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from engine.audio_work import AudioWork
from engine.contract import EngineCounters, StopReason
from engine.frame import LOST
from engine.runner import Runner
from engine.scheduler import PacketJob, Scheduler
from engine.ticket import Ticket, now

log = logging.getLogger("engine")

SPOILT_IN_A_ROW = 3


@dataclass(frozen=True, kw_only=True)
class Flight:
    """Packets in work: one of each ticket, and whether it is that ticket's last."""

    work: AudioWork
    tickets: tuple[Ticket, ...]
    finals: tuple[bool, ...]
    frames: int


class Batch:
    """At most `capacity` requests in lockstep. `on_leave` hears of every ticket before its terminal event is sent."""

    def __init__(self, runner: Runner, *, capacity: int, on_leave: Callable[[Ticket], None]) -> None:
        self._runner, self._on_leave = runner, on_leave
        self._scheduler: Scheduler[Ticket] = Scheduler(capacity=capacity)
        self._flights: list[Flight] = []
        self._frame_steps = self._rows_advanced = self._spoilt = 0

    @property
    def counters(self) -> EngineCounters:
        return EngineCounters(
            frame_steps=self._frame_steps, rows_advanced=self._rows_advanced, graph_replays=self._runner.graph_replays
        )

    @property
    def empty(self) -> bool:
        return not self._scheduler.tracks

    @property
    def can_move(self) -> bool:
        """Whether a turn would do anything."""
        scheduler = self._scheduler
        if any(track.owner.cancelled or track.owner.spoilt for track in scheduler.tracks):
            return True
        waiting = bool(self._flights) or self._finished_row() is not None
        return waiting or bool(scheduler.advancing()) or bool(scheduler.due())

    def admit(self, ticket: Ticket) -> None:
        """Prefill one newcomer; its failure is its own."""
        request, stream = ticket.request, ticket.stream
        if ticket.cancelled:
            self._fail(ticket, StopReason.CANCELLED, "request_cancelled", "cancelled before it began")
            return
        row = self._scheduler.admit(
            ticket, max_frames=request.max_frames, has_room=lambda: stream.has_room and not ticket.in_flight
        )
        ticket.prefill_started = now()
        try:
            self._runner.prefill(row, ticket.plan, seed=request.seed, sampling=request.sampling)
        except Exception:
            log.exception("prefill failed")
            self._retire(row)
            self._fail(ticket, StopReason.FAILED, "internal_error", "the engine could not process this request")
            return
        ticket.prefill_ended = now()

    def turn(self) -> None:
        """One frame of everybody who may advance, then the packets that are due.

        While the device makes the frame, packets that it has finished meanwhile are handed over.
        """
        self._drop_lost()
        advance = self._scheduler.advancing()
        if advance:
            self._runner.begin_step(advance)
        self._land(wait=not advance)
        if advance:
            self._end_step(advance)
        for job in self._scheduler.due():
            self._launch(job)
        self._land(wait=False)
        self._drop_lost()
        self._finish_delivered()

    def drop(self) -> None:
        """Forget every row without a word; the owner tells the listeners. Waits for packets in work, which still write to their rows."""
        self._scheduler.tracks.clear()
        for flight in self._flights:
            with suppress(Exception):  # what failed there is why the rows are dropped
                flight.work.take()
        self._flights.clear()

    def _drop_lost(self) -> None:
        """Free the rows of the cancelled and of those whose audio is none."""
        for row in reversed(range(len(self._scheduler.tracks))):
            ticket = self._scheduler.tracks[row].owner
            if ticket.cancelled:
                self._retire(row)
                self._fail(ticket, StopReason.CANCELLED, "request_cancelled", "the request was cancelled")
            elif ticket.spoilt:
                self._retire(row, scrub=True)
                self._fail(ticket, StopReason.FAILED, "internal_error", "the engine made something that is not audio")
                self._note_spoilt()

    def _note_spoilt(self) -> None:
        """One may be spoilt by itself; several in a row are a fault of the whole, which the owner has to look into."""
        log.error("samples or state not finite")
        self._spoilt += 1
        if self._spoilt >= SPOILT_IN_A_ROW:
            self._spoilt = 0
            raise ArithmeticError(f"the numbers of {SPOILT_IN_A_ROW} requests in a row were not finite")

    def _end_step(self, advance: list[bool]) -> None:
        following = self._runner.end_step()
        self._scheduler.commit(advance, [code == self._runner.eos for code in following])
        moment = now()
        for track, advanced, code in zip(self._scheduler.tracks, advance, following, strict=False):
            if advanced and track.frames == 1:
                track.owner.first_frame = moment
            track.owner.spoilt |= advanced and code == LOST
        self._frame_steps += 1
        self._rows_advanced += sum(advance)

    def _launch(self, job: PacketJob) -> None:
        """Ask for the packets of a job; their frames count as emitted from here on."""
        tracks = [self._scheduler.tracks[row] for row in job.rows]
        work = self._runner.start_decode(job.rows, [track.emitted for track in tracks], job.frames)
        for track in tracks:
            track.emitted += job.frames
            track.packets += 1
            track.owner.in_flight = True
        finals = tuple(track.delivered for track in tracks)
        tickets = tuple(track.owner for track in tracks)
        self._flights.append(Flight(work=work, tickets=tickets, finals=finals, frames=job.frames))

    def _land(self, *, wait: bool) -> None:
        """Hand over the packets that are there, those of one job at least if `wait`."""
        for flight in list(self._flights):
            if not (wait or flight.work.ready):
                continue
            wait = False
            self._flights.remove(flight)
            for ticket, pcm, final in zip(flight.tickets, flight.work.take(), flight.finals, strict=True):
                ticket.in_flight = False
                ticket.spoilt |= pcm is None
                if pcm is not None and not (ticket.cancelled or ticket.spoilt):
                    ticket.deliver(pcm, flight.frames, final=final)

    def _finish_delivered(self) -> None:
        """End every request whose last packet is handed over; making room for one may land another's last packet."""
        while (row := self._finished_row()) is not None:
            track = self._scheduler.tracks[row]
            reason = track.stop
            assert reason is not None
            self._retire(row)
            self._spoilt = 0
            self._on_leave(track.owner)
            track.owner.end(reason, reserved=self._runner.bytes_per_row, on_host=self._runner.on_host)

    def _finished_row(self) -> int | None:
        """The last row whose request is over, packets included."""
        for row in reversed(range(len(self._scheduler.tracks))):
            track = self._scheduler.tracks[row]
            if track.delivered and not track.owner.in_flight and not track.owner.spoilt:
                return row
        return None

    def _retire(self, row: int, *, scrub: bool = False) -> None:
        """Free a row, cleared first if `scrub`, and let the last row move into it, once neither has a packet in work."""
        last = self._scheduler.tracks[-1]
        while self._scheduler.tracks[row].owner.in_flight or last.owner.in_flight:
            self._land(wait=True)
        if scrub:
            self._runner.scrub(row)
        source = self._scheduler.release(row)
        if source is not None:
            self._runner.move(source, row)

    def _fail(self, ticket: Ticket, reason: StopReason, code: str, detail: str) -> None:
        self._on_leave(ticket)
        ticket.fail(reason, code, detail)

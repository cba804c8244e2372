"""From a session to its client: events, sending, and what log and metrics are told. Shared by the speech endpoints."""

from __future__ import annotations

import time

from engine.contract import AudioPacket, SpeechEnd, SpeechFailure
from engine.server import wav
from engine.server.exchange import Exchange
from engine.server.problems import Problem
from engine.server.service import Service
from engine.server.session import Session

SLICE_BYTES = 65_536


class Delivery:
    """One session on its way out."""

    def __init__(self, exchange: Exchange, session: Session, service: Service, endpoint: str) -> None:
        self.exchange = exchange
        self.session = session
        self._service = service
        self._endpoint = endpoint
        self._heard = False

    async def next(self) -> AudioPacket | SpeechEnd | SpeechFailure:
        """The session's next event; the last one is counted."""
        event = await self.session.next()
        if isinstance(event, SpeechEnd):
            self._service.metrics.finished(event)
            self._outcome(event.reason.value)
            self.exchange.account.fields["samples"] = event.metrics.emitted_samples
        elif isinstance(event, SpeechFailure):
            self._outcome("cancelled" if self.session.cause else "failed")
            self.exchange.account.fields["code"] = event.code
        return event

    async def write_audio(self, packet: AudioPacket, data: bytes) -> None:
        """Send what a packet became, if anything yet, and count it."""
        if data:
            await self.exchange.outlet.write(data)
        if data and not self._heard:
            self._heard = True
            seconds = time.perf_counter() - self.exchange.whole_at
            self._service.metrics.ttfa.observe(seconds)
            self.exchange.account.fields["ttfa_ms"] = round(seconds * 1e3, 2)
        self._service.metrics.samples.inc(packet.samples)

    async def collect(self) -> tuple[bytes, SpeechEnd]:
        """All PCM of the session. Its size is bounded by the longest duration.

        Raises:
            Problem: the request failed or was cancelled.
        """
        pcm = bytearray()
        while True:
            event = await self.next()
            if isinstance(event, AudioPacket):
                pcm += event.pcm
            elif isinstance(event, SpeechEnd):
                self._service.metrics.samples.inc(len(pcm) // wav.SAMPLE_BYTES)
                return bytes(pcm), event
            else:
                raise Problem(event.code, event.detail)

    async def send_whole(self, headers: dict[str, str], body: bytes) -> None:
        """Send a finished body in slices; the slot comes back before the last one leaves."""
        outlet = self.exchange.outlet
        await outlet.start(200, {**headers, "content-length": str(len(body)), "cache-control": "no-store"})
        for first in range(0, len(body), SLICE_BYTES):
            if first + SLICE_BYTES >= len(body):
                self.session.release()
            await outlet.write(body[first : first + SLICE_BYTES])
        await outlet.finish()

    def _outcome(self, outcome: str) -> None:
        fields = self.exchange.account.fields
        fields["outcome"] = outcome
        if self.session.cause is not None:
            fields["cause"] = self.session.cause.value
        self._service.metrics.requests.labels(endpoint=self._endpoint, outcome=outcome).inc()

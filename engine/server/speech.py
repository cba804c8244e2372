"""POST /v1/voice-design/speech: a progressive multipart stream, or one buffered WAV."""

from __future__ import annotations

import time

from starlette.types import Receive, Scope, Send

from engine.contract import AudioPacket, SpeechEnd, SpeechFailure, SpeechRequest
from engine.server import wav
from engine.server.bodies import SpeechBody, speech_request, validate
from engine.server.exchange import Exchange
from engine.server.multipart import MultipartWriter
from engine.server.problems import Problem
from engine.server.service import Service
from engine.server.session import Session

ENDPOINT = "voice-design"
SLICE_BYTES = 65_536


class Delivery:
    """Reads a session, keeps its account (log and metrics) and hands on the events. Shared by the speech endpoints."""

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

    def delivered(self, packet: AudioPacket) -> None:
        """Count a packet that has been written."""
        if not self._heard:
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


class SpeechEndpoint:
    """ASGI endpoint of the voice-design route."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send, self._service.settings)
        request_id = exchange.identify()
        engine = self._service.desk.check()
        body = validate(SpeechBody, await exchange.read_json())
        buffered = body.buffered
        request = speech_request(body, request_id, self._service.backend.bounds(engine.info))
        async with self._service.desk.admitted(request, hold=buffered) as session, exchange.watching(session):
            delivery = Delivery(exchange, session, self._service, ENDPOINT)
            if buffered:
                await _answer_wav(delivery, request)
            else:
                await _answer_multipart(delivery, request, engine.info.model)


async def _answer_multipart(delivery: Delivery, request: SpeechRequest, model: str) -> None:
    outlet = delivery.exchange.outlet
    writer = MultipartWriter(request.request_id)
    headers = {
        "content-type": writer.content_type,
        "cache-control": "no-store",
        "x-accel-buffering": "no",
        "x-qwen3-seed": str(request.seed),
    }
    await outlet.start(200, headers)
    await outlet.write(writer.start(model=model, seed=request.seed))
    while not delivery.session.ended:
        event = await delivery.next()
        if isinstance(event, AudioPacket):
            await outlet.write(writer.audio(event))
            delivery.delivered(event)
        elif isinstance(event, SpeechEnd):
            await outlet.write(writer.end(event))
        else:
            await outlet.write(writer.error(event.code, event.detail))
    await outlet.finish()


async def _answer_wav(delivery: Delivery, request: SpeechRequest) -> None:
    pcm, end = await delivery.collect()
    headers = {
        "content-type": "audio/wav",
        "x-qwen3-seed": str(request.seed),
        "x-finish-reason": end.reason.value,
    }
    await delivery.send_whole(headers, wav.header(len(pcm)) + pcm)

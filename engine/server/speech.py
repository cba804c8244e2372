"""POST /v1/voice-design/speech: a progressive multipart stream, or one buffered WAV."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from engine.contract import AudioPacket, SpeechEnd, SpeechRequest
from engine.server import wav
from engine.server.bodies import SpeechBody, speech_request, validate
from engine.server.delivery import Delivery
from engine.server.exchange import Exchange
from engine.server.multipart import MultipartWriter
from engine.server.service import Service

ENDPOINT = "voice-design"


class SpeechEndpoint:
    """ASGI endpoint of the voice-design route."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send, self._service.settings)
        request_id = exchange.identify()
        engine = self._service.desk.check(request_id)
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
            await delivery.write_audio(event, writer.audio(event))
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

"""Who may come in: bearer token, CORS; and what the metrics say of those who did."""

from __future__ import annotations

from pathlib import Path

from engine.contract import CountingEngine
from tests.engine.server.client import SPEECH, request_bytes, speech_bytes
from tests.engine.server.conftest import StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine


def test_token_is_asked_of_all_but_health(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    server = start_server(auth_token_file=str(tmp_path / "token"))
    for given in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic s3cret"},
        {"Authorization": "Bearer"},
    ):
        refused = server.ask(speech_bytes(headers=given))
        assert (refused.status, refused.document()["code"]) == (401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
    for path in ("/metrics", "/openapi.json", "/v1/capabilities", "/nothing"):
        assert server.ask(request_bytes("GET", path)).status == 401
    assert server.ask(request_bytes("GET", "/")).status == 200, "the page has to load before it can ask for the token"
    assert server.ask(request_bytes("GET", "/health/ready")).status == 200
    assert server.ask(speech_bytes(headers={"Authorization": "Bearer s3cret"})).status == 200


def test_cors_is_off_unless_an_origin_is_named(start_server: StartServer) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    off = start_server().ask(request_bytes("OPTIONS", SPEECH, headers=asked))
    assert off.status == 405
    assert "access-control-allow-origin" not in off.headers
    server = start_server(cors_origins="https://app.example")
    preflight = server.ask(request_bytes("OPTIONS", SPEECH, headers=asked))
    assert preflight.status == 200
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    origin = {"Origin": "https://app.example"}
    for data in (
        speech_bytes(headers=origin),
        speech_bytes("", headers=origin),
        request_bytes("GET", "/no", headers=origin),
    ):
        answer = server.ask(data)
        assert answer.headers["access-control-allow-origin"] == "https://app.example", answer.status
        assert "retry-after" in answer.headers["access-control-expose-headers"]
    other = server.ask(request_bytes("GET", "/health/live", headers={"Origin": "https://evil.example"}))
    assert "access-control-allow-origin" not in other.headers


def test_metrics_count_outcomes(start_server: StartServer) -> None:
    engine = FakeEngine(slots=1)
    assert isinstance(engine, CountingEngine)
    server = start_server(engine)
    server.ask(speech_bytes("frames=10")).whole()
    server.ask(speech_bytes("frames=10", max_duration_seconds=0.16, stream=False)).whole()
    server.ask(speech_bytes("frames=10 fail_at=2")).whole()
    server.ask(speech_bytes("", stream=True)).whole()
    eventually(lambda: server.service.desk.active == 0)
    samples = dict(
        line.rsplit(" ", 1)
        for line in server.ask(request_bytes("GET", "/metrics")).whole().decode().splitlines()
        if not line.startswith("#")
    )
    expected = {
        'assay_requests_total{endpoint="voice-design",outcome="stop"}': 1,
        'assay_requests_total{endpoint="voice-design",outcome="length"}': 1,
        'assay_requests_total{endpoint="voice-design",outcome="failed"}': 1,
        'assay_rejected_total{code="invalid_text"}': 1,
        'assay_ends_total{reason="stop"}': 1,
        'assay_ends_total{reason="length"}': 1,
        "assay_emitted_samples_total": (10 + 2 + 1) * 1920,
        "assay_active_requests": 0,
        "assay_slots": 1,
        "assay_ready": 1,
        "assay_retirement_timeouts_total": 0,
        "assay_time_to_first_audio_seconds_count": 2,
        "assay_real_time_factor_count": 2,
        "assay_queue_seconds_count": 2,
        "assay_batch_occupancy_sum": 3,
        "assay_engine_rows_advanced_total": 14,
        "assay_engine_graph_replays_total": 0,
    }
    assert {name: float(samples[name]) for name in expected} == expected

"""The little programs: the view from inside, the health check, and how a stream ended."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from qualification.container import healthcheck, inside_probe, wire
from qualification.container.registry import free_port


def test_the_probe_sees_this_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.bin").write_bytes(b"abc")
    (tmp_path / "model.bin").chmod(0o444)
    inside_probe.main([str(tmp_path), "sh", "no-such-tool"])
    view = json.loads(capsys.readouterr().out)
    assert view["status"]["NoNewPrivs"] in ("0", "1")
    assert [(item["path"], item["mode"], item["bytes"]) for item in view["model"]] == [("model.bin", "0444", 3)]
    assert any(tool.endswith("/sh") for tool in view["tools"])
    assert {"path": "/tmp", "result": "written"} in view["writes"]


def test_write_attempts_leave_nothing(tmp_path: Path) -> None:
    assert inside_probe.write_attempt(str(tmp_path)) == "written"
    assert inside_probe.write_attempt(str(tmp_path / "none")) == "absent"
    assert inside_probe.write_attempt("/proc") != "written"
    assert list(tmp_path.iterdir()) == []


def test_execution_is_tried_for_real(tmp_path: Path) -> None:
    assert inside_probe.execution_attempt(str(tmp_path)) == "executed"
    assert inside_probe.execution_attempt("/proc") != "executed"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b'...{"type":"end","finish_reason":"stop","metrics":{"a":1}}\r\n--b--\r\n', "end"),
        (b'{"type":"error","request_id":"x","error":{"code":"c","detail":"d"}}\r\n', "error"),
        (b'{"type":"start"}\r\n--b', "broken"),
        (b"\x00\x01{\xff}", "broken"),
        (b"", "broken"),
    ],
)
def test_how_a_stream_ended(tail: bytes, expected: str) -> None:
    assert wire.ending(tail) == expected


@pytest.mark.parametrize(("status", "alive"), [(200, True), (503, False)])
def test_the_health_check_asks_once(status: int, alive: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/live" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert healthcheck.alive(server.server_port) is alive
        thread.join()


def test_the_health_check_takes_silence_for_death() -> None:
    assert healthcheck.alive(free_port()) is False

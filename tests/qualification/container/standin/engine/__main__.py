"""`python -m engine serve`, for images that tests build: standard library only, ready at once, no speech, no model.

STANDIN_FAULT makes it break one rule: `dies`, `never_ready`, `writes_root`, `ignores_term`, `slow_health`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SLOTS = 2
FRAME_SECONDS = 0.05
FRAME = bytes(1_920 * 2)
FAULT = os.environ.get("STANDIN_FAULT", "")
SLOT = threading.Semaphore(SLOTS)
READY = threading.Event()
CLOSING = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        if self.path == "/health/live":
            if FAULT == "slow_health" and SLOT._value == 0:
                time.sleep(3.0)
            self.answer(200, {"status": "live"})
        elif self.path == "/health/ready":
            ready = READY.is_set() and not CLOSING.is_set()
            model = {
                "model": os.environ.get("ASSAY_MODEL_NAME", "standin"),
                "model_kind": "voice_design",
                "sample_rate_hz": 24_000,
            }
            self.answer(
                200 if ready else 503, {"status": "ready" if ready else "not_ready", "engine_loaded": ready, **model}
            )
        elif self.path == "/v1/capabilities":
            self.answer(
                200,
                {
                    "model": "standin",
                    "model_kind": "voice_design",
                    "max_concurrent_requests": SLOTS,
                    "max_codec_frames": 1_500,
                },
            )
        else:
            self.answer(404, {"code": "request_not_found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if CLOSING.is_set() or not READY.is_set():
            self.answer(503, {"code": "server_shutting_down" if CLOSING.is_set() else "backend_unavailable"})
        elif not SLOT.acquire(blocking=False):
            self.answer(429, {"code": "capacity_exhausted"})
        else:
            try:
                self.speak(max(1, len(body["text"]) // 4))
            finally:
                SLOT.release()

    def answer(self, status: int, document: object) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def speak(self, frames: int) -> None:
        name = str(uuid.uuid4())
        self.send_response(200)
        self.send_header("Content-Type", "multipart/mixed; boundary=standin")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.part(
            "application/json",
            json.dumps({"type": "start", "request_id": name, "model": "standin", "seed": 0}).encode(),
        )
        for number in range(frames):
            if CLOSING.is_set() and FAULT != "ignores_term":
                error = {
                    "type": "error",
                    "request_id": name,
                    "error": {"code": "server_shutting_down", "detail": "closing"},
                }
                self.part("application/json", json.dumps(error).encode(), last=True)
                return
            time.sleep(FRAME_SECONDS)
            positions = f"X-Sequence: {number}\r\nX-Sample-Count: 1920\r\n"
            self.part("audio/pcm;rate=24000;channels=1;format=s16le", FRAME, positions)
        self.part(
            "application/json",
            json.dumps({"type": "end", "request_id": name, "finish_reason": "stop"}).encode(),
            last=True,
        )

    def part(self, kind: str, content: bytes, extra: str = "", *, last: bool = False) -> None:
        head = f"--standin\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{extra}\r\n".encode()
        self.wfile.write(head + content + b"\r\n" + (b"--standin--\r\n" if last else b""))
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """Waits for its requests when it closes."""

    daemon_threads = False
    block_on_close = True


def main() -> None:
    if FAULT == "dies":
        sys.exit("the stand-in was told to die")
    if FAULT == "writes_root":
        Path("/state").write_text("kept")
    server = Server((os.environ.get("ASSAY_HOST", "127.0.0.1"), int(os.environ.get("ASSAY_PORT", "8000"))), Handler)
    if FAULT != "ignores_term":
        signal.signal(signal.SIGTERM, lambda *_: (CLOSING.set(), threading.Thread(target=server.shutdown).start()))
    print(json.dumps({"event": "listening", "host": "0.0.0.0", "port": server.server_port}), flush=True)
    if FAULT != "never_ready":
        threading.Timer(0.3, READY.set).start()
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()

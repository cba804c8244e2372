"""A registry in a thread that answers from a dictionary, or refuses everything with one status."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def fake_registry(manifests: Mapping[str, bytes] | None = None, *, refuse: int | None = None) -> Iterator[str]:
    """Yield its `host:port`. Blobs and manifests that are sent are kept; uploads are accepted as they come."""
    kept: dict[str, bytes] = dict(manifests or {})

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

        def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
            self.send_response(refuse or status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def do_GET(self) -> None:
            content = kept.get(self.path.rpartition("/")[2])
            self._answer(404 if content is None else 200, content or b"")

        do_HEAD = do_GET  # noqa: N815  # the name that http.server looks for

        def do_POST(self) -> None:
            self._answer(202, Location="/v2/x/blobs/uploads/1?state=s")

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            name = (
                self.path.rpartition("digest=")[2].replace("%3A", ":")
                if "digest=" in self.path
                else self.path.rpartition("/")[2]
            )
            kept[name] = content
            self._answer(201)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""The image's HEALTHCHECK: does the process answer? Standard library only, imports no engine and loads no model."""

from __future__ import annotations

import http.client
import os
import sys

TIMEOUT_SECONDS = 2.0


def alive(port: int) -> bool:
    """Whether /health/live answers 200 on loopback within the time limit."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if alive(int(os.environ.get("ASSAY_PORT", "8000"))) else 1)

"""Refusal clients in a process of their own: `python -m tests.engine.server.flood HOST PORT RATE`.

Says `ready`, and from the first line of standard input to its end asks for speech at a fixed rate, on time whatever the
answers are, each request on a new connection. Then prints one JSON document: how many answers of which kind, and the wait
for each refusal in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.engine.server.client import speech_bytes

SENTENCE = "The boats go slowly from one side to the other."
OPEN_AT_ONCE = 400  # connections; a server that falls behind so far is found out by `late`


class Flood:
    """One stream of requests at a fixed rate."""

    def __init__(self, host: str, port: int, rate: float) -> None:
        self._address, self._rate = (host, port), rate
        self._body = speech_bytes(SENTENCE, {"Connection": "close"}, seed=1, max_duration_seconds=20.0)
        self._free = asyncio.Semaphore(OPEN_AT_ONCE)
        self.answers: Counter[str] = Counter()
        self.waits: list[float] = []
        self.late = 0  # requests that were due while too many were open
        self.seconds = 0.0

    async def run(self, stopped: Callable[[], bool]) -> None:
        """Ask until `stopped`."""
        began = time.perf_counter()
        tasks: set[asyncio.Task[None]] = set()
        number = 0
        while not stopped():
            await asyncio.sleep(max(0.0, began + number / self._rate - time.perf_counter()))
            number += 1
            if self._free.locked():
                self.late += 1
                continue
            await self._free.acquire()
            task = asyncio.create_task(self._ask())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        self.seconds = time.perf_counter() - began
        await asyncio.gather(*tasks)

    async def _ask(self) -> None:
        start = time.perf_counter()
        try:
            reader, writer = await asyncio.open_connection(*self._address)
            writer.write(self._body)
            head = await reader.readuntil(b"\r\n\r\n")
            if size := re.search(rb"content-length: (\d+)", head):
                await reader.readexactly(int(size[1]))
            writer.close()
        except (OSError, EOFError) as error:
            self.answers[type(error).__name__] += 1
            return
        finally:
            self._free.release()
        status = head[9:12].decode()
        self.answers[status] += 1
        if status == "429":
            assert b"retry-after: " in head
            self.waits.append((time.perf_counter() - start) * 1e3)

    def report(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "answers": dict(self.answers), "late": self.late, "waits_ms": self.waits}


async def main(host: str, port: int, rate: float) -> None:
    flood = Flood(host, port, rate)
    print("ready", flush=True)
    sys.stdin.readline()
    closed = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await flood.run(closed.done)
    print(json.dumps(flood.report()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))

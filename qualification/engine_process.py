"""A server process that the harness starts, listens to and stops. No HTTP here: lines, a port and an exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import IO

from qualification.errors import SubjectError

STOP_SECONDS = 35.0  # what the wire contract grants after SIGTERM
_POLL_SECONDS = 0.1
_LOG_LINES = 200


class EngineProcess:
    """A server process in a session of its own, so that Ctrl-C reaches the harness and not the engine under it."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._address: tuple[str, int] | None = None
        self._listening = threading.Event()
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        except OSError as error:
            raise SubjectError(f"cannot start {self.command[0]}: {error}") from error
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [self._follow(self._process.stdout, True), self._follow(self._process.stderr, False)]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def log_tail(self) -> tuple[str, ...]:
        return tuple(self._log)

    def wait_listening(self, deadline: float) -> tuple[str, int]:
        """Host and port of the `listening` line; `deadline` is on `time.monotonic()`.

        Raises:
            SubjectError: the process ended first, or said nothing in time.
        """
        while not self._listening.wait(_POLL_SECONDS):
            if not self.running:
                self._join_readers()
                raise SubjectError(self.obituary("ended before it listened"))
            if time.monotonic() > deadline:
                raise SubjectError(self.obituary("announced no port in time"))
        assert self._address is not None
        return self._address

    def obituary(self, what: str) -> str:
        """A message with the exit status and the last lines of the log."""
        status = self._process.poll()
        state = "still running" if status is None else f"exit status {status}"
        tail = "\n".join(f"    {line}" for line in self.log_tail()[-12:]) or "    (it wrote nothing)"
        return f"the engine process {what} ({state}); its last lines:\n{tail}"

    def stop(self) -> None:
        """SIGTERM, the contract's grace, then SIGKILL to the whole group."""
        if self.running:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._join_readers()

    def _follow(self, stream: IO[bytes], announces: bool) -> threading.Thread:
        def follow() -> None:
            with stream:
                for line in stream:
                    text = line.decode("utf-8", "replace").rstrip()
                    self._log.append(text[:500])
                    if announces and not self._listening.is_set():
                        self._note_address(text)

        thread = threading.Thread(target=follow, daemon=True, name="engine-log")
        thread.start()
        return thread

    def _note_address(self, text: str) -> None:
        try:
            event = json.loads(text)
            address = (str(event["host"]), int(event["port"])) if event["event"] == "listening" else None
        except (ValueError, TypeError, KeyError):
            return
        if address is not None:
            self._address = address
            self._listening.set()

    def _join_readers(self) -> None:
        for thread in self._readers:
            thread.join(2.0)

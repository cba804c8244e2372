"""A container's life, drilled: start, readiness, health under load, SIGTERM in the middle of a stream, restart.

Every drill returns what it saw, with times in seconds since the start call of that life; the gates decide. All of
them speak to the port that the engine published on loopback, as a client would.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import docker
import httpx
from docker.models.containers import Container

from qualification.container import wire
from qualification.container.docker_engine import reason
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.hardening import RunSettings, address

READY_LIMIT_SECONDS = 60.0  # how long a start is watched; the policy's limit is shorter
STOP_LIMIT_SECONDS = 60.0
HEALTH_LIMIT_SECONDS = 45.0
FIRST_AUDIO_SECONDS = 30.0
HEALTH_PROBES = 10
_POLL_SECONDS = 0.05
_LOG_LINES = 20


def start(
    container: Container, settings: RunSettings, *, limit: float = READY_LIMIT_SECONDS
) -> tuple[str, dict[str, Any]]:
    """Start and watch until ready; the base URL and what was seen on the way.

    Raises:
        ContainerFault: `start_failed`, `died_on_start` or `never_ready`, with the last lines of the log.
    """
    began = time.monotonic()
    try:
        container.start()
    except docker.errors.APIError as error:
        raise ContainerFault(
            FaultCode.START_FAILED, f"the engine could not start the container: {reason(error)}"
        ) from error
    changes: list[dict[str, Any]] = []
    refused: dict[str, Any] | None = None
    polls = 0
    while (elapsed := time.monotonic() - began) < limit:
        base = _base(container, settings)
        live, ready = _health(base)
        polls += 1
        state = {"live": live, "ready": ready}
        if not changes or {name: changes[-1][name] for name in state} != state:
            changes.append({"at_s": round(time.monotonic() - began, 4), **state})
        if base and ready == 200:
            return base, {"ready_s": changes[-1]["at_s"], "changes": changes, "polls": polls, "early_request": refused}
        if base and live == 200 and refused is None:
            refused = {
                "at_s": round(elapsed, 4),
                "status": wire.speak(base, timeout=5.0).status,
                "ready_after": _health(base)[1],
            }
        if not _runs(container):
            raise ContainerFault(
                FaultCode.DIED_ON_START,
                f"the container ended with status {_exit_code(container)} after {elapsed:.1f} s; "
                f"its last lines: {log_tail(container)}",
            )
        time.sleep(_POLL_SECONDS)
    raise ContainerFault(
        FaultCode.NEVER_READY, f"the container was not ready within {limit:g} s; its last lines: {log_tail(container)}"
    )


def _base(container: Container, settings: RunSettings) -> str | None:
    place = address(container, settings)
    return f"http://{place[0]}:{place[1]}" if place else None


def _health(base: str | None) -> tuple[int | None, int | None]:
    if base is None:
        return None, None
    return wire.get(f"{base}/health/live", timeout=1.0).status, wire.get(f"{base}/health/ready", timeout=1.0).status


def counters(base: str) -> list[str]:
    """The engine's own counters right after readiness, before any request of ours: what its warm-up left behind."""
    try:
        text = httpx.get(f"{base}/metrics", timeout=2.0, trust_env=False).text
    except httpx.HTTPError:
        return []
    return sorted(line for line in text.splitlines() if line.startswith("assay_engine"))[:50]


def health_under_load(base: str) -> dict[str, Any]:
    """Fill every slot with a stream, then ask for health, and for one request too many."""
    told = wire.get(f"{base}/v1/capabilities")
    slots = int((told.document or {}).get("max_concurrent_requests", 0))
    with _streams(base, slots) as streams:
        busy = sum(stream.wait_audio(FIRST_AUDIO_SECONDS) for stream in streams)
        probes = [_probe(base, path) for _ in range(HEALTH_PROBES) for path in ("/health/live", "/health/ready")]
        extra = wire.speak(base, timeout=5.0).status
    return {"slots": slots, "busy": busy, "probes": probes, "extra_status": extra, "after_status": _after(base)}


def _probe(base: str, path: str) -> dict[str, Any]:
    answer = wire.get(base + path)
    return {"path": path, "status": answer.status, "seconds": round(answer.seconds, 4)}


def _after(base: str) -> int | None:
    """Status of a request once the streams were left: their slots must come back."""
    for _ in range(40):
        status = wire.speak(base).status
        if status != 429:
            return status
        time.sleep(0.25)
    return 429


@contextmanager
def _streams(base: str, count: int) -> Iterator[list[wire.WatchedStream]]:
    streams = [wire.WatchedStream(base) for _ in range(count)]
    try:
        yield streams
    finally:
        for stream in streams:
            stream.leave()
        for stream in streams:
            stream.join(10.0)


def stop_mid_stream(container: Container, base: str) -> dict[str, Any]:
    """SIGTERM once a stream has given audio; how long until the container ends, and what becomes of the stream."""
    stream = wire.WatchedStream(base)
    streaming = stream.wait_audio(FIRST_AUDIO_SECONDS)
    processes = _processes(container)
    sent = time.monotonic()
    container.kill(signal="SIGTERM")
    refused = wire.speak(base, timeout=2.0).status
    exited = _wait_exit(container, sent)
    end = stream.join(10.0)
    if not exited:
        container.kill()
    return {
        "streaming": streaming,
        "stream_end": end,
        "late_request_status": refused,
        "seconds": exited or round(time.monotonic() - sent, 4),
        "exited": bool(exited),
        "exit_code": _exit_code(container),
        "orphans": None if processes is None else sorted(pid for pid, born in processes.items() if _born(pid) == born),
    }


def _wait_exit(container: Container, since: float) -> float | None:
    while (elapsed := time.monotonic() - since) < STOP_LIMIT_SECONDS:
        if not _runs(container):
            return round(elapsed, 4)
        time.sleep(_POLL_SECONDS)
    return None


def docker_health(container: Container, began: float) -> dict[str, Any] | None:
    """Wait for the engine's own health check to say healthy; None where the image has none."""
    if not container.attrs["Config"].get("Healthcheck"):
        return None
    deadline = time.monotonic() + HEALTH_LIMIT_SECONDS
    status = ""
    while time.monotonic() < deadline:
        container.reload()
        status = str(container.attrs["State"].get("Health", {}).get("Status", ""))
        if status == "healthy":
            break
        time.sleep(0.25)
    return {
        "status": status,
        "seconds": round(time.monotonic() - began, 4),
        "command": list(container.attrs["Config"]["Healthcheck"]["Test"]),
    }


def log_tail(container: Container) -> str:
    """The last lines that the container wrote, for a message."""
    try:
        text: str = container.logs(tail=_LOG_LINES).decode("utf-8", "replace")
    except docker.errors.APIError as error:
        return f"(no log: {reason(error)})"
    return text.strip()[-1500:] or "(it wrote nothing)"


def _runs(container: Container) -> bool:
    container.reload()
    return container.status in ("created", "running")


def _exit_code(container: Container) -> int:
    container.reload()
    code: int = container.attrs["State"]["ExitCode"]
    return code


def _processes(container: Container) -> Mapping[int, str] | None:
    """The container's processes as the host numbers them, with their birth.

    None where the host's /proc does not show them.
    """
    table = container.top(ps_args="-eo pid")
    pids = [int(row[0]) for row in table["Processes"]]
    found = {pid: born for pid in pids if (born := _born(pid)) is not None}
    return found if pids and len(found) == len(pids) else None


def _born(pid: int) -> str | None:
    """Start time of a process from /proc, which tells a reused number from the old process.

    None once it is gone or a zombie.
    """
    try:
        with open(os.path.join("/proc", str(pid), "stat"), encoding="utf-8", errors="replace") as stream:
            fields = stream.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]

"""What a subject says of itself at `/v1/capabilities` and `/health/ready`, checked as far as the harness relies on it.

Names and limits are claims of the subject: they shape the requests that are sent and are recorded, and no gate
believes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qualification.bench.client import Plain, fetch_blocking
from qualification.bench.clock import Clock
from qualification.bench.connection import ConnectionFailed, DeadlinePassed, Deadlines
from qualification.bench.target import Target
from qualification.errors import StrictJsonError, SubjectError

OPEN = frozenset({"eos", "seed", "sampling", "language", "max_duration"})
_PROBE = Deadlines(connect=2.0, headers=5.0, silence=5.0, total=10.0)


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a subject says of itself. `precision` and `device` are None where it does not tell; `leaves_open` names what
    an adapter cannot set or learn (`OPEN`); `adapter`: what was started only passes requests on."""

    model: str
    max_concurrent_requests: int
    max_duration_seconds: float
    languages: tuple[str, ...]
    precision: str | None
    device: str | None
    leaves_open: frozenset[str] = frozenset()
    adapter: bool = False


def ask_capabilities(target: Target, clock: Clock) -> Capabilities:
    """What the subject says of itself, checked as far as the harness relies on it.

    Raises:
        SubjectError: no answer, or one that is not a voice-design engine of this contract.
    """
    answer = ask(target, "/v1/capabilities", clock)
    try:
        document = answer.json()
    except StrictJsonError as error:
        raise SubjectError(f"{target.url}/v1/capabilities: {error}") from error
    problem = _capability_problem(answer.status, document)
    if problem:
        raise SubjectError(
            f"{target.url}/v1/capabilities {problem}; the harness drives voice-design engines of this wire only"
        )
    return Capabilities(
        model=document["model"],
        max_concurrent_requests=document["max_concurrent_requests"],
        max_duration_seconds=float(document["max_duration_seconds"]),
        languages=tuple(str(language) for language in document["languages"]),
        precision=_word(document.get("precision")),
        device=_word(document.get("device")),
        leaves_open=frozenset(document.get("leaves_open", ())),
        adapter=document.get("role") == "adapter",
    )


_FIXED = {"model_kind": "voice_design", "sample_rate_hz": 24_000, "channels": 1, "encoding": "pcm_s16le",
          "samples_per_codec_frame": 1_920}  # fmt: skip


def _capability_problem(status: int, document: Any) -> str | None:
    if status != 200 or not isinstance(document, Mapping):
        return f"answered {status} without an object"
    for name, expected in _FIXED.items():
        if document.get(name) != expected:
            return f"says {name} is {document.get(name)!r}, not {expected!r}"
    slots, seconds = document.get("max_concurrent_requests"), document.get("max_duration_seconds")
    if type(slots) is not int or slots < 1:
        return f"says max_concurrent_requests is {slots!r}"
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0.08:
        return f"says max_duration_seconds is {seconds!r}"
    if not isinstance(document.get("model"), str) or not document["model"]:
        return f"says model is {document.get('model')!r}"
    if not isinstance(document.get("languages"), list):
        return "lists no languages"
    left = document.get("leaves_open", [])
    if not isinstance(left, list) or not all(isinstance(word, str) and word in OPEN for word in left):
        return f"says leaves_open is {left!r}, not a list of {', '.join(sorted(OPEN))}"
    return None


def readiness(target: Target, clock: Clock) -> str:
    """`ready`, or why not."""
    try:
        answer = ask(target, "/health/ready", clock)
        document = answer.json()
    except SubjectError as error:
        return str(error)
    except StrictJsonError as error:
        return f"/health/ready: {error}"
    if answer.status == 200 and isinstance(document, Mapping) and document.get("status") == "ready":
        return "ready"
    return f"/health/ready answered {answer.status}"


def ask(target: Target, path: str, clock: Clock) -> Plain:
    """A small document of the subject.

    Raises:
        SubjectError: no answer in time.
    """
    try:
        return fetch_blocking(target, path, clock=clock, deadlines=_PROBE)
    except (ConnectionFailed, DeadlinePassed) as error:
        raise SubjectError(f"{target.url}{path}: {error.detail}") from error


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

"""Does the container keep the contract's rules of life.

Health without a slot, an orderly end, a restart, and nothing left behind?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qualification.evidence_view import EvidenceView
from qualification.gates.container_evidence import STOP_SECONDS, Check, container_document, faulted, judged, unperformed
from qualification.policy import Policy
from qualification.results import GateResult

ORDERLY = ("end", "error")


@dataclass(frozen=True, kw_only=True)
class ContainerLifecycleGate:
    """`health`, `shutdown`, `restart`, `measured` and `cleanup` of `records/container.json`."""

    id: str = "container.lifecycle"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Health under load, SIGTERM in a stream, restart, the measured container's own end, and the clean-up."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        assert document is not None  # `unperformed` answers for None
        if document["health"] is None or document["shutdown"] is None or document["restart"] is None:
            return faulted(policy, self.id, document, "the whole life of a container")
        checks = [*_loaded(document["health"]), *_stopped(document["shutdown"]), *_after(document)]
        return judged(
            policy,
            self.id,
            checks,
            f"Ended {document['shutdown']['seconds']:.2f} s after SIGTERM in a stream; nothing was left.",
        )


def _loaded(seen: Mapping[str, Any]) -> Iterator[Check]:
    yield Check(name=f"all {seen['slots']} slots were busy", holds=seen["busy"] == seen["slots"] > 0)
    yield Check(
        name="health answers while every slot is busy",
        holds=bool(seen["probes"]) and all(probe["status"] == 200 for probe in seen["probes"]),
    )
    yield Check(name=f"one request too many got {seen['extra_status']}, not 429", holds=seen["extra_status"] == 429)
    yield Check(
        name=f"after the streams were left a request got {seen['after_status']}, not 200",
        holds=seen["after_status"] == 200,
    )


def _stopped(seen: Mapping[str, Any]) -> Iterator[Check]:
    yield Check(name="a stream was under way", holds=seen["streaming"])
    yield Check(
        name=f"it ended by itself within {STOP_SECONDS:g} s of SIGTERM",
        holds=seen["exited"] and seen["seconds"] <= STOP_SECONDS,
    )
    yield Check(name=f"exit code {seen['exit_code']}, not 0", holds=seen["exit_code"] == 0)
    yield Check(name=f"the stream's end is {seen['stream_end']}", holds=seen["stream_end"] in ORDERLY)
    yield Check(
        name=f"a late request got {seen['late_request_status']}", holds=seen["late_request_status"] in (None, 503)
    )
    yield Check(name="no process outlived it", holds=None if seen["orphans"] is None else not seen["orphans"])


def _after(document: Mapping[str, Any]) -> Iterator[Check]:
    yield Check(name="speech works after a restart", holds=document["restart"]["speech_status"] == 200)
    measured = document["measured"]
    yield Check(name="the measured container was reached", holds=measured is not None)
    if measured is not None:
        steady = (
            measured["running_at_end"]
            and measured["same_process"]
            and not measured["restart_count"]
            and not measured["oom_killed"]
        )
        yield Check(name="the measured container ran through", holds=steady)
        yield Check(name="the measured container changed no file", holds=not measured["changed_paths"])
    cleanup = document["cleanup"]
    yield Check(
        name="nothing was left behind",
        holds=cleanup is not None and not cleanup["containers_left"] and not cleanup["images_left"],
    )
    yield Check(name="no other finding", holds=not document["findings"])

"""Did the image run with nothing that it does not need, seen from outside and from inside?

Outside, `inspect`: read-only root, every capability dropped and none added, no new privileges, default system call
filter, a small /tmp that runs nothing, limits of processes and memory, loopback only, no mounts, devices or host
namespaces, user 10001.

Inside, /proc and attempts: no capability left, filter active, no file can be made anywhere but in /tmp,
nothing runs from there, no shell, compiler or package manager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qualification.evidence_view import EvidenceView
from qualification.gates.container_evidence import USER, Check, container_document, faulted, judged, unperformed
from qualification.policy import Policy
from qualification.results import GateResult

TMP_OPTIONS = frozenset({"noexec", "nosuid", "nodev", "size=64m"})
REFUSALS = frozenset({"EROFS", "EACCES", "EPERM", "absent"})
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
MOST_PIDS = 4096


@dataclass(frozen=True, kw_only=True)
class ContainerHardeningGate:
    """`outside`, `inside` and the engine's security options of `records/container.json`."""

    id: str = "container.hardening"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Every setting outside, every consequence inside."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        assert document is not None  # `unperformed` answers for None
        if document["outside"] is None or document["inside"] is None:
            return faulted(policy, self.id, document, "the running container")
        checks = [*_outside(document["outside"]), *_engine(document["engine"]), *_inside(document["inside"])]
        return judged(policy, self.id, checks, f"{len(checks)} settings hold, outside and inside.")


def _outside(seen: Mapping[str, Any]) -> Iterator[Check]:
    yield Check(name="the root is read-only", holds=seen["read_only"])
    yield Check(name="not privileged", holds=not seen["privileged"])
    yield Check(name="all capabilities dropped", holds=seen["cap_drop"] == ["ALL"] and not seen["cap_add"])
    yield Check(
        name="no new privileges, and the default filter",
        holds=seen["security_options"] in (["no-new-privileges"], ["no-new-privileges:true"]),
    )
    tmp = [set(item["options"]) for item in seen["tmpfs"] if item["path"] == "/tmp"]
    yield Check(
        name="/tmp is the only temporary file system, 64 MB, noexec, nosuid, nodev",
        holds=len(seen["tmpfs"]) == len(tmp) == 1 and tmp[0] >= TMP_OPTIONS,
    )
    yield Check(name="processes are limited", holds=0 < seen["pids_limit"] <= MOST_PIDS)
    yield Check(name="memory is limited, without swap", holds=0 < seen["memory_bytes"] == seen["memory_swap_bytes"])
    yield Check(
        name="published to loopback only",
        holds=bool(seen["published"]) and all(item["host"] == "127.0.0.1" for item in seen["published"]),
    )
    yield Check(
        name="no mounts, devices or host namespaces",
        holds=not (seen["mounts"] or seen["devices"] or seen["host_namespaces"]),
    )
    yield Check(name=f"the image's user is {USER}:{USER}", holds=seen["user"] == f"{USER}:{USER}")


def _engine(engine: Mapping[str, Any]) -> Iterator[Check]:
    options = engine["security_options"]
    yield Check(
        name="the engine filters system calls by default",
        holds=any(item.startswith("name=seccomp,profile=") and not item.endswith("=unconfined") for item in options),
    )


def _inside(seen: Mapping[str, Any]) -> Iterator[Check]:
    status = seen["status"]
    yield Check(
        name="no capability inside",
        holds=None if status is None else all(int(status[name] or "1", 16) == 0 for name in CAPABILITIES),
    )
    yield Check(name="NoNewPrivs is 1 inside", holds=None if status is None else status["NoNewPrivs"] == "1")
    yield Check(name="Seccomp is 2 inside", holds=None if status is None else status["Seccomp"] == "2")
    yield Check(
        name=f"user and group are {USER} inside",
        holds=None if seen["uid"] is None else (seen["uid"], seen["gid"]) == (USER, USER),
    )
    yield Check(
        name="the mounts at / and /tmp inside", holds=None if seen["mounts"] is None else _mounted(seen["mounts"])
    )
    yield Check(
        name="nothing runs from /tmp",
        holds=None if seen["execution_in_tmp"] is None else seen["execution_in_tmp"] == "EACCES",
    )
    yield Check(
        name="no shell, compiler or package manager", holds=None if seen["tools"] is None else not seen["tools"]
    )
    if seen["writes"] is None:
        yield Check(name="attempts to write", holds=None)
    for attempt in seen["writes"] or ():
        expected = attempt["result"] == "written" if attempt["path"] == "/tmp" else attempt["result"] in REFUSALS
        yield Check(name=f"writing to {attempt['path']} ends in {attempt['result']}", holds=expected)


def _mounted(mounts: list[Mapping[str, Any]]) -> bool:
    options = {item["path"]: set(item["options"]) for item in mounts}
    return "ro" in options.get("/", ()) and options.get("/tmp", set()) >= {"noexec", "nosuid", "nodev"}

"""A subset of the gates: which were asked for, and which load profiles they read.

A run of a subset measures no more than it must, so that one gate of a pipeline takes minutes. Its verdict is incomplete
whatever the gates say, so nothing is gained by choosing well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from qualification.bench.profiles import Plan
from qualification.errors import UsageError
from qualification.policy import Policy

_READS: Final = {
    "eos.coverage": "EOS",
    "eos.rate": "EOS",
    "eos.bound": "RATE",
    "bench.b1": "B1",
    "bench.b3": "B3",
    "bench.b6": "B6",
}
_READS_NOTHING: Final = (
    "identity.weights", "identity.config", "licences.environment", "licences.model", "environment.captured",
    "source.clean",
)  # fmt: skip  # every other gate reads whatever ran


def select_gates(asked: Iterable[str], policy: Policy) -> tuple[str, ...] | None:
    """The gates asked for in the policy's order; None where that is all of them, or nothing in particular.

    Raises:
        UsageError: the policy lacks one of them, or one is named twice.
    """
    names, ids = list(asked), [entry.id for entry in policy.gates]
    if not names:
        return None
    for name in names:
        if name not in ids:
            raise UsageError(f"--gates: the policy has no gate {name!r}; it has {', '.join(ids)}")
        if names.count(name) > 1:
            raise UsageError(f"--gates names {name} twice; name it once")
    chosen = tuple(gate for gate in ids if gate in names)
    return None if len(chosen) == len(ids) else chosen


def gates_of_profiles(profiles: Iterable[str], policy: Policy) -> tuple[str, ...]:
    """The gates that judge these load profiles, and those that need no request.

    Raises:
        UsageError: the policy has no gate for a profile.
    """
    ids = [entry.id for entry in policy.gates]
    judging = {profile: gate for gate, profile in _READS.items() if gate in ids and gate.startswith("bench.")}
    unknown = [profile for profile in profiles if profile not in judging]
    if unknown:
        raise UsageError(
            f"no gate of the policy judges a load profile {unknown[0]!r}; choose from {', '.join(judging)}"
        )
    return (*(gate for gate in _READS_NOTHING if gate in ids), *(judging[profile] for profile in profiles))


def narrowed(plan: Plan, selected: Sequence[str] | None) -> Plan:
    """The profiles of `plan` that the selected gates read; the whole plan where one of them reads whatever ran."""
    if selected is None or not all(gate in _READS or gate in _READS_NOTHING for gate in selected):
        return plan
    read = {_READS[gate] for gate in selected if gate in _READS}
    kept = tuple(profile for profile in plan.profiles if profile.name in read)
    return replace(plan, profiles=kept) if kept else plan

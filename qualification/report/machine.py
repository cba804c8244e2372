"""The machine in words, from `environment.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qualification.report.words import plural, size


def machine_facts(environment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The machine in label and value; what could not be read says so."""
    machine, container = environment["machine"], environment["container"]
    accelerators = environment["accelerators"]
    load = machine["load_average"]
    unread = "not readable"
    facts = [
        ("processor", machine["cpu_model"] or unread),
        ("architecture", machine["architecture"]),
        ("processors", f"{machine['cpus']}, {machine['cpus_usable'] or unread} usable"),
        ("processor quota", "none" if machine["cpu_quota"] is None else f"{machine['cpu_quota']:g}"),
        ("memory", size(machine["memory_bytes"]) if machine["memory_bytes"] else unread),
        ("load before the run", unread if load is None else ", ".join(f"{value:.2f}" for value in load)),
        ("kernel", f"{machine['system']} {machine['kernel']}"),
        ("python", f"{environment['python']['implementation']} {environment['python']['version']}"),
        ("container marks", ", ".join(container["hints"]) or "none found"),
        ("accelerator driver", accelerators["driver"] or f"absent: {accelerators['absent']}"),
    ]
    for device in accelerators["devices"]:
        others = device["competing_processes"]
        busy = "competitors unknown" if others is None else f"{plural(others, 'competing process')}"
        facts.append((f"accelerator {device['index']}", f"{device['name'] or unread}, {busy}"))
    return tuple(facts)

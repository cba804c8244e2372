"""`python -m engine fleet`: one front door, many replicas, on a Ray cluster that it joins or starts."""

from __future__ import annotations

import argparse
import json
import os
import signal
from types import FrameType
from typing import Any

from engine.errors import EngineError, UsageError
from engine.fleet.identity import declared_image
from engine.fleet.plan import Plan, plan_for
from engine.options import add_engine_arguments, engine_settings
from engine.server.lifecycle import EXIT_CLEAN, EXIT_FORCED
from engine.server.settings import ServerSettings, add_flags, settings_from

OBJECT_STORE_BYTES = 100_000_000  # nothing large goes through it: a packet of audio has 15 kB
POLL_SECONDS = 0.2
NODE_RESOURCE_SHARE = 0.001  # of the resource that marks a node: a mark, not a quantity
DOOR_CALLS = 10_000  # open calls to the front door at once: one for each stream


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("fleet")
    add = group.add_argument
    add("--address", help="Ray cluster to join, for example auto; without it one is started here")
    add(
        "--start-node",
        action="store_true",
        help="make this machine a node of the cluster at --address, without replicas",
    )
    add("--replicas", type=int, default=1, help="engine replicas, the least where --max-replicas is given")
    add("--max-replicas", type=int, help="scale up to so many; without it the number is fixed")
    add("--occupancy", type=float, default=0.7, help="share of its slots that a replica is meant to have in use")
    add("--cpus-per-replica", type=float, default=1.0, help="CPU share that Ray reserves for a replica")
    add("--gpus-per-replica", type=float, default=0.0, help="GPU share that Ray reserves for a replica")
    add("--node-resource", metavar="NAME", help="place replicas only on nodes that declare this Ray resource")
    add("--surge-percent", type=int, default=0, help="extra replicas while one generation replaces another")
    add("--roll", action="store_true", help="replace the replicas of the fleet that runs at --address, then return")
    add_flags(parser)
    add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop, or roll; settings are checked before anything starts."""
    settings = settings_from(arguments, os.environ)
    plan = plan_for(
        engine_settings(arguments),
        image=declared_image(os.environ),
        least=arguments.replicas,
        most=arguments.max_replicas or arguments.replicas,
        cpus=arguments.cpus_per_replica,
        gpus=arguments.gpus_per_replica,
        resources={arguments.node_resource: NODE_RESOURCE_SHARE} if arguments.node_resource else {},
        occupancy=arguments.occupancy,
        surge_percent=arguments.surge_percent,
    )
    if arguments.address is None and (arguments.roll or arguments.start_node):
        raise UsageError("--roll and --start-node need the --address of a cluster that runs")
    settings.auth_token()  # an unreadable token file is refused before anything starts
    from engine.fleet import cluster  # takes seconds, and help does not need it

    cpus = max(2, round(plan.most * plan.cpus) + 1)
    with cluster.joined(arguments.address, cpus=cpus, memory_bytes=OBJECT_STORE_BYTES, start=arguments.start_node):
        if arguments.roll:
            cluster.roll(plan)
            return EXIT_CLEAN
        try:
            return _run_door(settings, plan, settings.auth_token())
        finally:
            cluster.take_down()


def open_door(settings: ServerSettings, plan: Plan, token: str | None) -> tuple[Any, Any, tuple[str, int]]:
    """A front door on this node, as an actor: its handle, its exit status to come, and the address it listens on.

    Raises:
        UsageError: it cannot listen there.
    """
    import ray

    from engine.fleet.door import FrontDoor

    here = ray.get_runtime_context().get_node_id()
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id=here, soft=False)
    door: Any = (
        ray.remote(FrontDoor)
        .options(num_cpus=0, max_concurrency=DOOR_CALLS, scheduling_strategy=strategy)
        .remote(settings, plan, token)
    )
    running = door.run.remote()
    return door, running, _ask_address(door)


def _run_door(settings: ServerSettings, plan: Plan, token: str | None) -> int:
    import ray

    door, running, (host, port) = open_door(settings, plan, token)
    _relay_signals(door)
    print(json.dumps({"event": "listening", "host": host, "port": port}), flush=True)
    while not ray.wait([running], timeout=POLL_SECONDS)[0]:
        pass
    try:
        status: int = ray.get(running)
    except ray.exceptions.RayActorError:
        return EXIT_FORCED
    return status


def _ask_address(door: Any) -> tuple[str, int]:
    import ray

    try:
        found: tuple[str, int] = ray.get(door.address.remote())
    except ray.exceptions.ActorDiedError as error:  # its constructor refuses what it cannot use
        raise UsageError(f"the front door cannot open: {error}") from error
    except ray.exceptions.RayError as error:
        raise EngineError(f"the front door cannot open: {error}") from error
    return found


def _relay_signals(door: Any) -> None:
    def relay(_: int, __: FrameType | None) -> None:
        door.stop.remote(EXIT_CLEAN)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, relay)

"""Ray and Ray Serve: join or start a cluster, deploy a plan, call a replica. Serve's own HTTP proxy stays off."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from engine.contract import EngineCounters, SpeechRequest
from engine.errors import EngineError, UsageError

os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # every log line of a replica counts
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

try:
    import ray
    from ray import serve
    from ray.exceptions import ActorDiedError, RayError, TaskCancelledError
    from ray.serve.config import AutoscalingConfig, RequestRouterConfig
    from ray.serve.exceptions import RequestCancelledError
    from ray.serve.schema import LoggingConfig
except ImportError as error:
    raise UsageError("a fleet needs Ray Serve; install tts-assay[engine,fleet]") from error

from engine.fleet import membership
from engine.fleet.engine import CallCancelled, ReplicaLost
from engine.fleet.plan import OCCUPANCY_ROOM, Plan
from engine.fleet.replica import Replica
from engine.fleet.roster import Roster

APP = "assay"
START_SECONDS = 900.0  # for the weights of every replica to load
POLL_SECONDS = 0.2
JOIN_SECONDS = 60.0  # for a node of this machine to become known in its cluster
NODE_STOP_SECONDS = 40.0  # Ray itself drains a node for up to 30 s
HEALTH_SECONDS = 2.0
HEALTH_PATIENCE_SECONDS = 15.0


@contextmanager
def joined(address: str | None, *, cpus: int, memory_bytes: int, start: bool = False) -> Iterator[None]:
    """Join the cluster at `address`, or start one on this machine that ends with this process.

    With `start` this machine becomes a node of that cluster for as long, without CPUs: no replica comes here.

    Raises:
        UsageError: no cluster answers there.
    """
    with _node(address, memory_bytes) if address and start else nullcontext():
        _connect(address, cpus, memory_bytes, JOIN_SECONDS if start else 0.0)
        try:
            yield
        finally:
            ray.shutdown()


def _connect(address: str | None, cpus: int, memory_bytes: int, patience: float) -> None:
    """Connect this process; a node that has just been started may take a while to be known."""
    local = {} if address else {"num_cpus": cpus, "object_store_memory": memory_bytes, "include_dashboard": False}
    until = time.monotonic() + patience
    while True:
        try:
            ray.init(address=address or "local", logging_level=logging.WARNING, **local)
            return
        except (ConnectionError, RuntimeError) as error:
            if time.monotonic() >= until:
                raise UsageError(f"no Ray cluster answers at {address}: {error}; check --address") from error
        time.sleep(POLL_SECONDS)


@contextmanager
def _node(address: str, memory_bytes: int) -> Iterator[None]:
    """A node of the cluster at `address` in processes of this machine."""
    options = ["--num-cpus=0", "--num-gpus=0", f"--object-store-memory={memory_bytes}", "--block"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--address={address}", *options]
    node = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)  # our signals are not for it
    try:
        yield
    finally:
        node.terminate()
        try:
            node.wait(NODE_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            node.kill()


def deploy(plan: Plan) -> Any:
    """Deploy the plan, replacing what runs replica by replica; returns Serve's handle at once."""
    serve.start(proxy_location="Disabled")
    return serve.run(_application(plan), name=APP, route_prefix=None)


def roll(plan: Plan) -> None:
    """Replace the replicas of the fleet that runs on the joined cluster by the plan's; returns once all are.

    Raises:
        EngineError: no fleet runs there, or the new replicas cannot start; the old ones go on serving then.
    """
    if APP not in serve.status().applications:
        raise UsageError("no fleet runs on this cluster; start one without --roll")
    try:
        deploy(plan)
    except (RuntimeError, RayError) as error:
        raise EngineError(f"the new replicas cannot start: {error}") from error


def take_down() -> None:
    """Remove the deployment; replicas finish their streams first."""
    serve.delete(APP)


class ServeCluster:
    """A `Cluster` for the front door `door`."""

    def __init__(self, plan: Plan, door: Any) -> None:
        self._plan = plan
        self._door = door
        self._handle: Any = None

    def deploy(self, roster: Roster) -> None:
        """See `Cluster.deploy`."""
        membership.listen(roster.update, roster.lose)
        try:
            self._handle = deploy(self._plan).options()
        except (RuntimeError, RayError) as error:
            raise EngineError(f"the replicas cannot start: {error}") from error
        if not roster.wait_for(self._plan.least, START_SECONDS):
            raise EngineError(f"{self._plan.least} replicas did not come up within {START_SECONDS:g} s; see ray status")

    def speak(self, key: str, request: SpeechRequest) -> ServeCall:
        """See `Cluster.speak`."""
        return ServeCall(self._handle.speak.remote(key, request, self._door))

    async def count(self, key: str) -> EngineCounters:
        """See `Cluster.count`."""
        try:
            counters: EngineCounters = await self._handle.count.remote(key)
        except (RayError, membership.ReplicaGone) as error:
            raise ReplicaLost from error
        return counters


class ServeCall:
    """A `Call` that Serve carries."""

    def __init__(self, response: Any) -> None:
        self._response = response

    async def finish(self) -> None:
        """See `Call.finish`."""
        try:
            await self._response
        except (ActorDiedError, membership.ReplicaGone) as error:
            raise ReplicaLost from error
        except (RequestCancelledError, TaskCancelledError) as error:
            raise CallCancelled from error

    def cancel(self) -> None:
        """See `Call.cancel`."""
        self._response.cancel()


def _application(plan: Plan) -> Any:
    scaled: dict[str, Any] = {"num_replicas": plan.least}
    if plan.most > plan.least:
        scaled = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=plan.least,
                max_replicas=plan.most,
                target_ongoing_requests=max(1.0, plan.occupancy * plan.slots),
                upscale_delay_s=plan.scale_up_seconds,
                downscale_delay_s=plan.scale_down_seconds,
                metrics_interval_s=1.0,
                look_back_period_s=2.0,
            )
        }
    deployment = serve.deployment(
        Replica,
        name="Replica",
        logging_config=LoggingConfig(enable_access_log=False),  # the front door logs every request
        max_ongoing_requests=plan.slots * OCCUPANCY_ROOM,
        ray_actor_options={"num_cpus": plan.cpus, "num_gpus": plan.gpus, "resources": dict(plan.resources)},
        max_surge_percent=plan.surge_percent,
        graceful_shutdown_timeout_s=plan.drain_seconds,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=HEALTH_SECONDS,
        health_check_timeout_s=HEALTH_PATIENCE_SECONDS,
        request_router_config=RequestRouterConfig(request_router_class="engine.fleet.router.PinnedRouter"),
        **scaled,
    )
    return deployment.bind(plan.make_engine, plan.identify, plan.generation)

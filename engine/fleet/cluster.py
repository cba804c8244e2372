"""Ray and Ray Serve: join or start a cluster, deploy a plan, call a replica. Serve's own HTTP proxy stays off."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.contract import SpeechRequest
from engine.errors import EngineError, UsageError

os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # every log line of a replica counts
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

try:
    import ray
    from ray import serve
    from ray.exceptions import ActorDiedError, RayError, TaskCancelledError
    from ray.serve.config import AutoscalingConfig, RequestRouterConfig
    from ray.serve.exceptions import RequestCancelledError
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
HEALTH_SECONDS = 2.0
HEALTH_PATIENCE_SECONDS = 15.0


@contextmanager
def joined(address: str | None, cpus: int, memory_bytes: int) -> Iterator[None]:
    """Join the cluster at `address`, or start one on this machine that ends with this process.

    Raises:
        UsageError: no cluster answers there.
    """
    if ray.is_initialized():
        yield
        return
    local = {} if address else {"num_cpus": cpus, "object_store_memory": memory_bytes, "include_dashboard": False}
    try:
        ray.init(address=address or "local", logging_level=logging.WARNING, **local)
    except (ConnectionError, RuntimeError) as error:
        raise UsageError(f"no Ray cluster answers at {address}: {error}; check --address") from error
    try:
        yield
    finally:
        ray.shutdown()


def deploy(plan: Plan) -> Any:
    """Deploy the plan, replacing what runs replica by replica; returns Serve's handle at once."""
    serve.start(proxy_location="Disabled")
    return serve.run(_application(plan), name=APP, route_prefix=None)


def take_down() -> None:
    """Remove the deployment; replicas finish their streams first."""
    serve.delete(APP)


class ServeCluster:
    """A `Cluster` for the front door `door`."""

    def __init__(self, plan: Plan, door: Any) -> None:
        self._plan = plan
        self._door = door
        self._speak: Any = None

    def deploy(self, roster: Roster) -> None:
        """See `Cluster.deploy`."""
        membership.listen(roster.update, roster.lose)
        try:
            self._speak = deploy(self._plan).options(method_name="speak")
        except (RuntimeError, RayError) as error:
            raise EngineError(f"the replicas cannot start: {error}") from error
        if not roster.wait_for(self._plan.least, START_SECONDS):
            raise EngineError(f"{self._plan.least} replicas did not come up within {START_SECONDS:g} s; see ray status")
        if roster.odd:
            raise EngineError(describe_odd(roster))

    def speak(self, key: str, request: SpeechRequest) -> ServeCall:
        """See `Cluster.speak`."""
        return ServeCall(self._speak.remote(key, request, self._door))


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


def describe_odd(roster: Roster) -> str:
    """Which replicas do not belong to the fleet, and why, in one sentence."""
    found = [
        f"replica {odd.card.key} on node {odd.card.node} differs in {', '.join(odd.differs)}" for odd in roster.odd
    ]
    return f"{'; '.join(found)}; give every node the same model and image"


def _application(plan: Plan) -> Any:
    scaled: dict[str, Any] = {"num_replicas": plan.least}
    if plan.most > plan.least:
        scaled = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=plan.least,
                max_replicas=plan.most,
                target_ongoing_requests=max(1.0, plan.occupancy * plan.slots),
                upscale_delay_s=5.0,
                downscale_delay_s=60.0,
                metrics_interval_s=1.0,
                look_back_period_s=5.0,
            )
        }
    deployment = serve.deployment(
        Replica,
        name="Replica",
        max_ongoing_requests=plan.slots * OCCUPANCY_ROOM,
        ray_actor_options={"num_cpus": plan.cpus, "num_gpus": plan.gpus},
        graceful_shutdown_timeout_s=plan.drain_seconds,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=HEALTH_SECONDS,
        health_check_timeout_s=HEALTH_PATIENCE_SECONDS,
        request_router_config=RequestRouterConfig(request_router_class="engine.fleet.router.PinnedRouter"),
        **scaled,
    )
    return deployment.bind(plan.make_engine, plan.identify, plan.generation)

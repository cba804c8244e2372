"""Serve's request router, obedient: the front door has chosen the replica. What Serve knows of replicas goes to `membership`.

Serve calls `update_replicas` whenever the deployment's replicas change; each brings the card it published when it
became ready. The first argument of every call is the key of the replica that shall get it.
"""

from __future__ import annotations

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from engine.fleet import cards, membership


class PinnedRouter(RequestRouter):
    """See the module. Serve pickles this class by value into whoever holds a handle."""

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        assert pending_request is not None, "every request of this router names its replica"
        pending_request.routing_context.should_backoff = True
        wanted = pending_request.args[0]
        found = [replica for replica in candidate_replicas if replica.replica_id.unique_id == wanted]
        if not found and not pending_request.future.done():
            pending_request.future.set_exception(membership.ReplicaGone(wanted))
        return [found or candidate_replicas]  # any candidate lets the router see that the request is settled

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        super().update_replicas(replicas)
        membership.changed(
            [
                cards.read_card(replica.replica_id.unique_id, replica.node_id or "", replica.replica_metadata)
                for replica in replicas
                if replica.replica_metadata
            ]
        )

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        super().on_replica_actor_died(replica_id)
        membership.died(replica_id.unique_id)

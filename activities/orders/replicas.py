"""Which claims a pool with a fixed number of nodes lacks, and which are too many.

The claims of a pool are numbered: a new one takes the lowest free number. So a look at a stale cache, another worker or
a retry names the same claims again, and creating them again changes nothing.
"""

from collections.abc import Callable

from dovetail.activities.orders.finders import MINUTE
from dovetail.activities.shared.looks.look import Look
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.disruption.nodes.costs import legacy_cost
from dovetail.lifecycle.numbering import static_plan
from dovetail.lifecycle.static_pools import Shortfall, shortfalls, surplus
from dovetail.messages.orders import FillPool, Order
from dovetail.messages.requests import CreateRequest
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot

AT_ONCE = 50  # claims in one order; the next look orders the rest


class ReplicaFinder:
    """The finder for pools with a fixed number of nodes."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now

    async def look(self, snapshot: Snapshot) -> Look[Order]:
        """Claims to create, claims to delete."""
        filled: list[Order] = [_fill(snapshot, one) for one in shortfalls(snapshot)]
        return Look(due=[*filled, *surplus(snapshot, _costs(snapshot))], again=self.now() + MINUTE)


def _fill(snapshot: Snapshot, shortfall: Shortfall) -> FillPool:
    pool = snapshot.pools[shortfall.pool]
    indexes = shortfall.numbers[:AT_ONCE]
    node = node_from_template(pool)
    return FillPool(
        request=CreateRequest(
            plan_id=static_plan(pool), proposed=(node,) * len(indexes), type_lists=((),), indexes=indexes
        )
    )


def _costs(snapshot: Snapshot) -> dict[str, float]:
    """The cost of disturbing each node of a static pool, by upstream's measure (NPL-44)."""
    static = {name for name, pool in snapshot.pools.items() if pool.replicas is not None}
    if not static:
        return {}
    pods: dict[str, list[Pod]] = {}
    for pod in snapshot.pods.values():
        pods.setdefault(pod.node_name, []).append(pod)
    return {
        claim.node_name: legacy_cost(pods.get(claim.node_name, ()), claim, snapshot.now)
        for claim in snapshot.claims.values()
        if claim.node_name
    }

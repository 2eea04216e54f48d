"""Which claims a pool with a fixed number of nodes lacks, and which are too many.

The claims of a pool are numbered: a new one takes the lowest free number. So a look at a stale cache, another worker or
a retry names the same claims again, and creating them again changes nothing. Each number is an order of its own, which
is repeated after a pause: claims that come to nothing end at different moments.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from dovetail.activities.orders.finders import MINUTE
from dovetail.activities.shared.looks.look import Look
from dovetail.activities.shared.looks.snapshots import listed
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.disruption.nodes.costs import legacy_cost
from dovetail.lifecycle.numbering import static_plan
from dovetail.lifecycle.pool_health import read_record
from dovetail.lifecycle.static_pools import Shortfall, shortfalls, surplus
from dovetail.messages.orders import FillPool, Order
from dovetail.messages.requests import CreateRequest
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Catalogues


class ReplicaFinder:
    """The finder for pools with a fixed number of nodes."""

    def __init__(self, now: Callable[[], float], catalogues: Catalogues, well_known: frozenset[str]) -> None:
        self.now, self.catalogues, self.well_known = now, catalogues, well_known

    async def look(self, snapshot: Snapshot) -> Look[Order]:
        """Claims to create, claims to delete."""
        lacking = [snapshot.pools[each.pool] for each in shortfalls(snapshot, self.well_known)]
        with_types = replace(snapshot, catalogues={pool.name: await listed(self.catalogues, pool) for pool in lacking})
        found = shortfalls(with_types, self.well_known) if lacking else ()
        filled: list[Order] = [order for one in found for order in _fill(snapshot, one)]
        return Look(due=[*filled, *surplus(snapshot, _costs(snapshot))], again=self.now() + MINUTE)

    async def finds_again(self, snapshot: Snapshot, claim: NodeClaim) -> bool:
        """Whether the claim is one of those that its pool has too many of."""
        name = claim.labels.get(names.NODE_POOL, "")
        pools = {name: snapshot.pools[name]} if name in snapshot.pools else {}
        own = replace(snapshot, pools=pools, claims={each.name: each for each in snapshot.claims_by_pool.get(name, ())})
        return any(order.claim.uid == claim.uid for order in surplus(own, _costs(own)))


def _fill(snapshot: Snapshot, shortfall: Shortfall) -> Iterator[FillPool]:
    pool = snapshot.pools[shortfall.pool]
    node, state = node_from_template(pool), _state(pool)
    for number in shortfall.numbers:
        request = CreateRequest(plan_id=static_plan(pool), proposed=(node,), type_lists=((),), indexes=(number,))
        yield FillPool(request=request, state=state)


def _state(pool: NodePool) -> str:
    """The generations of the pool and its NodeClass, and since when the pool is ready."""
    record = read_record(pool)
    since = next((c.changed for c in pool.conditions if c.type == names.READY), 0.0)
    return f"{pool.generation}-{record.class_generation if record else 0}-{since:.0f}"


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

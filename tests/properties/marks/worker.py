"""A worker: a cache of its own, and the real steps of a disruption over it.

Every call of a step to the API server waits at a gate. A decision is made at once: nothing happens meanwhile but what a
rule lets happen before its answer is used.
"""

from collections.abc import Callable
from typing import Any

from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.disruption.delete_claim import DeleteClaims
from dovetail.activities.disruption.give_back import GiveBack
from dovetail.activities.disruption.live_budgets import LiveBudgets
from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.orders.carry_out_orders import CarryOutOrders, OrderPorts
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.disruption.settings import DisruptionSettings
from tests.activities.test_gated_orders import OnePool
from tests.properties.marks.clockwork import Gated, Gates
from tests.properties.marks.lagging import Cache, Catalogues, Cluster, Deciding
from worlds.fakes import (
    FakeClaims,
    FakeNodes,
    FakeNotices,
    FakePods,
    FakeStarts,
    breaker_memory,
    create_ties,
    delete_ports,
    followers,
    mark_ports,
    returned_moves,
)
from worlds.fakes.ports import no_reboot, no_repairs

CLUSTER = "c"


class Inline:
    """Decides at once."""

    async def run(self, decide: Any) -> Any:
        return decide(lambda: False)


class Worker:
    """A worker's cache and its steps."""

    def __init__(self, cluster: Cluster, gates: Gates, written: Callable[[], None]) -> None:
        def gated(port: object) -> Any:
            return Gated(port, gates, written)

        self.cache = Cache(cluster)
        self.deciding = Deciding(self.cache)
        claims, nodes, pods = gated(FakeClaims(cluster)), gated(FakeNodes(cluster)), gated(FakePods(cluster))
        view: Any = self.cache
        catalogues: Any = Catalogues()
        nowhere: Any = None  # no cloud is asked
        now, notices, pools = cluster.now, FakeNotices(cluster), OnePool(cluster.pools["a"])
        disrupting = AwaitDisruptionPlan(
            Snapshots(self.deciding, catalogues), notices, DisruptionSettings(), now, followers()
        )
        disrupting.thread = Inline()  # type: ignore[assignment]
        marking = MarkAndUnmarkNodes(
            mark_ports(
                cluster,
                claims=claims,
                nodes=nodes,
                pods=pods,
                lookups=view,
                budgets=LiveBudgets(view.snapshot, claims, nodes, now),
                repairs=no_repairs(now),
                reboots=no_reboot,
            ),
            now,
        )
        self.sweeping = CarryOutOrders(
            CLUSTER, OrderPorts(claims=claims, cloud=nowhere, fleet=nowhere, again={}), marking, now
        )
        self.steps: dict[str, Any] = {}
        for owner in (
            disrupting,
            marking,
            AwaitProgress(view, KnownClaims(view, claims), now),
            CreateNodeClaims(claims, pools, notices, now, create_ties(cluster)),
            DeleteClaims(
                delete_ports(cluster, claims=claims, nodes=nodes, lookups=view),
                FakeStarts(cluster),
                returned_moves(cluster),
            ),
            GiveBack(claims, pods, breaker_memory(cluster)),
        ):
            for name in dir(type(owner)):
                if hasattr(getattr(type(owner), name), "__temporal_activity_definition"):
                    self.steps[f"{type(owner).__name__}.{name}"] = getattr(owner, name)

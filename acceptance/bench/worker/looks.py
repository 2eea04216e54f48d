"""What the looks over a whole cluster cost: `python -m acceptance.bench.worker.looks [NODES [POLICIES]]`, with twenty
pods a node; with policies, in as many NodePools, of each of which half is rolled out.

A worker looks whenever something changes. Each row is milliseconds of processor of one look: the first one of a worker,
one after a pod has come, and the longest time in either for which nobody else had a turn on the event loop: heartbeats
and drains wait for as long, but for what is in a thread of its own.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from unittest.mock import Mock

from acceptance.bench.inputs.disruption import cluster
from acceptance.bench.worker.ruled import ruled
from dovetail.activities.orders.expiries import Expiries
from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.turns import by_turns
from dovetail.activities.upkeep.breakers import BreakerUpkeep
from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.activities.upkeep.consistency import ConsistencyUpkeep
from dovetail.activities.upkeep.labels import LabelUpkeep
from dovetail.activities.upkeep.notices import NoticeUpkeep
from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.activities.upkeep.rollouts import RolloutUpkeep
from dovetail.activities.upkeep.time_rules import TimeRuleUpkeep
from dovetail.activities.upkeep.waiting_drift import WaitingDriftUpkeep
from dovetail.disruption.choose import decide
from dovetail.disruption.nodes.pod_movements import Movements
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle import unfinished
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.objects.pod_index import NodePods, PodIndex
from dovetail.model.objects.watched_kinds import NODES_AND_STANDING_CLAIMS
from dovetail.model.pods import Pod
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.triggers import STANDING_ON, asking, standing
from dovetail.ports.cloud import NodeClassState
from dovetail.ports.objects import NodePools, TimeObjects
from dovetail.worker.garbage import leave_alone_what_stands, look_rarely
from worlds.fakes import FakeClaims, FakeNodes, FakeNotices, World, unasked

PODS: Final = 20  # a node
Look = Callable[[Snapshot], Awaitable[object]]


@dataclass(slots=True)
class ReadyClasses:
    """A cloud that says at once that all is well."""

    supported: frozenset[tuple[str, str]]

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return self.supported

    async def catalogue(self, pool: NodePool) -> Catalogue:
        return Catalogue()

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return NodeClassState(found=True, ready="True", generation=1)

    async def drift(self, claim: NodeClaim) -> str:
        known = claim.condition(names.DRIFTED)
        return known.reason if known is not None else ""

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return ()


def quiet_cluster(nodes: int) -> Snapshot:
    """Nodes that carry what they should, whose last pod came an hour ago."""
    found = cluster(nodes, PODS, "300m")
    [reference] = {claim.node_class for claim in found.claims.values()}
    label = {f"{reference.group}/{reference.kind.lower()}": reference.name}
    pools = {n: replace(p, template=replace(p.template, node_class=reference)) for n, p in found.pools.items()}
    return replace(
        found,
        pools=pools,  # of the same NodeClass: else no node is a candidate
        supported_node_classes=frozenset({(reference.group, reference.kind)}),
        nodes={name: replace(node, labels={**node.labels, **label}) for name, node in found.nodes.items()},
        claims={
            name: replace(claim, labels={**claim.labels, **label}, last_pod_event=found.now - 3600.0)
            for name, claim in found.claims.items()
        },
    )


def all_looks(snapshot: Snapshot) -> dict[str, Look]:
    """Those that a worker makes at a change."""
    world, cloud, movements = World(), ReadyClasses(snapshot.supported_node_classes), Movements()
    claims, notices, now = FakeClaims(world), FakeNotices(world), lambda: snapshot.now
    times, pools = Mock(spec=TimeObjects), Mock(spec=NodePools)  # nothing is written
    settings, known = DisruptionSettings(), LastAnswer(STANDING_ON, standing)
    return {
        "upkeep, claims": ClaimUpkeep(
            claims, cloud, now, reservation_labels=frozenset(), well_known=names.WELL_KNOWN_LABELS
        ).look,
        "upkeep, pools": PoolStatuses(cloud, now).wanted,
        "upkeep, labels": LabelUpkeep(claims, FakeNodes(world)).look,
        "upkeep, sizes of nodes": ConsistencyUpkeep(claims, notices, now).look,
        "upkeep, notices": NoticeUpkeep(notices).look,
        "upkeep, policies and roll-outs": TimeRuleUpkeep(
            times, now, cloud, notices=FakeNotices(World()), questions=unasked()
        ).look,
        "upkeep, which roll-outs there are": RolloutUpkeep(times, notices).look,
        "upkeep, breakers": BreakerUpkeep(pools, notices, now).look,
        "upkeep, drift that waits": WaitingDriftUpkeep(notices).look,
        "orders": at_once(Orders().look),
        "provisioning, who is pending": at_once(lambda found: asking(found, known.of(found))),
        "disruption, pods that moved": moved(movements),
        "disruption, decision (in a thread)": at_once(lambda found: decide(replace(found), settings, never)),
    }


def at_once(question: Callable[[Snapshot], object]) -> Look:
    """One that awaits nothing."""

    async def look(snapshot: Snapshot) -> object:
        return question(snapshot)

    return look


def moved(movements: Movements) -> Look:
    """As the wait for a plan does it."""

    async def look(snapshot: Snapshot) -> object:
        await by_turns(movements.catch_up(snapshot))
        return movements.seen(snapshot)

    return look


class Orders:
    """What the look for orders goes through before it asks Temporal and the cloud."""

    def __init__(self) -> None:
        found = (unfinished.owners, unfinished.releases, unfinished.marks, unfinished.deserted)
        self.found = [LastAnswer(NODES_AND_STANDING_CLAIMS, each) for each in (unfinished.leaving_unowned, *found)]
        self.expiries = Expiries()

    def look(self, snapshot: Snapshot) -> object:
        """All of it."""
        return [self.expiries.look(snapshot), *[each.of(snapshot) for each in self.found]]


class Turns:
    """Sees how long nobody else has a turn on the event loop."""

    def __init__(self) -> None:
        self.longest, self.at = 0.0, time.thread_time()

    async def take(self) -> None:
        """One after the other, until cancelled."""
        self.at = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest, self.at = max(self.longest, now - self.at), now


async def milliseconds(look: Look, snapshot: Snapshot, turns: Turns) -> float:
    """Of the look; `turns` has its longest hold."""
    gc.collect()
    taking = asyncio.create_task(turns.take())
    await asyncio.sleep(0)
    began = time.thread_time()
    await look(snapshot)
    spent = time.thread_time() - began
    await asyncio.sleep(0)  # the last turn
    taking.cancel()
    return spent * 1000


def given(snapshot: Snapshot, pods: Mapping[str, Pod], by_node: Mapping[str, NodePods]) -> Snapshot:
    """As a view gives it: a copy of its pods, and those of each node."""
    copied = dict(pods)
    return replace(snapshot, pods=copied, pod_index=PodIndex(copied, by_node, ()))


async def main() -> None:
    """A table."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    policies = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    snapshot = ruled(quiet_cluster(nodes), policies) if policies else quiet_cluster(nodes)
    [first, *_] = snapshot.pods.values()
    coming = replace(first, uid="another", name="another")
    snapshot = replace(snapshot, changed={"Pod": 1})  # as a view counts them
    by_node = snapshot.pods_by_node
    later_by_node = {**by_node, coming.node_name: NodePods([*by_node[coming.node_name], coming])}
    look_rarely()
    leave_alone_what_stands()  # as a worker does
    print(f"{nodes} nodes, {len(snapshot.pods)} pods, {policies} policies; milliseconds of processor")
    print(f"{'':36}{'first':>8}{'later':>8}{'held':>8}")
    for name, look in all_looks(snapshot).items():
        turns = Turns()
        spent = [await milliseconds(look, given(snapshot, snapshot.pods, by_node), turns) for _ in range(2)]
        another = replace(snapshot, changed={"Pod": 2})
        pods = {**snapshot.pods, coming.uid: coming}
        later = await milliseconds(look, given(another, pods, later_by_node), turns)
        print(f"{name:36}{spent[0]:8.0f}{later:8.0f}{turns.longest * 1000:8.0f}")


if __name__ == "__main__":
    asyncio.run(main())

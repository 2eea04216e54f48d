"""What belongs to another provider is left alone by all that a worker does of itself (PLM-1)."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from dovetail.activities.shared.looks.look import all_due
from dovetail.activities.upkeep.settled import WhileSettled
from dovetail.lifecycle import unfinished
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClassRef, RepairPolicy
from dovetail.model.pools import Catalogue
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import read_settings
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.worker.steps import Wiring
from tests.activities.test_claim_conditions import JudgingClass
from tests.activities.test_upkeep import SUPPORTED, Pools
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, is_now
from tests.metrics.shown import shown
from worlds import fakes
from worlds.disruption import EC2_CLASS, a_claim
from worlds.fakes import on_duty

NOW = 100_000.0
OTHER = NodeClassRef(group="karpenter.other.example", kind="OtherNodeClass", name="default")
SILENT = Condition(type=names.READY, status="Unknown", changed=1000.0)


class Judging(JudgingClass):
    """It finds every instance drifted, and replaces nodes that are silent."""

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return (RepairPolicy(condition=names.READY, status="Unknown", toleration=60.0),)


def a_foreign_cluster(of: NodeClassRef) -> Snapshot:
    """A pool of this class with claims in all states in which something would be done about ours."""
    sick = a_joined_claim("sick", provider_id="i-2", node_name="sick", annotations={names.OWNER: "c/disrupt/1"})
    claims = [
        a_claim("new"),
        a_claim("leaving", deleting_since=NOW - 60.0),
        a_joined_claim("old", expire_after=3600.0, annotations={names.CANCEL: "stop"}),
        replace(sick, conditions=(*sick.conditions, is_now(names.DISRUPTION_REASON))),
    ]
    nodes = [
        a_joined_node("node-1", deleting_since=NOW - 60.0),
        a_joined_node("sick", provider_id="i-2", conditions=(SILENT,)),
    ]
    pool = a_new_pool(
        limits={"cpu": 10**12}, annotations={names.PAUSED: "drains", names.PAUSED_BY: "alice"}, replicas=9
    )
    return Snapshot(
        now=NOW,
        claims={each.name: replace(each, node_class=of) for each in claims},
        nodes={each.name: each for each in nodes},
        pools={pool.name: replace(pool, template=replace(pool.template, node_class=of))},
        catalogues={pool.name: Catalogue()},
        supported_node_classes=SUPPORTED,
    )


def wiring(cluster: Snapshot) -> Wiring:
    """The worker's own lists of what it keeps and looks for, over ports that remember what is written."""
    world = fakes.World(clock=NOW)
    ports: Any = SimpleNamespace(
        claims=fakes.FakeClaims(world),
        nodes=fakes.FakeNodes(world),
        pools=Pools(*cluster.pools.values()),
        notices=fakes.FakeNotices(world),
        cloud=fakes.FakeCloud(world),
        catalogues=Judging(),
        overlays=None,
        buffers=None,
        times=SimpleNamespace(read=None),
        deployments=None,
        metrics=None,
        clock=SimpleNamespace(now=lambda: NOW),
        why_unfit=str,
    )
    gates = {"FEATURE_GATES": "NodeRepair=true,StaticCapacity=true", "LEGACY_NODE_REPAIR": "true"}
    settings = read_settings({**gates, "CLUSTER_NAME": "c"})
    return Wiring(settings=settings, world=cast(Any, ports), times=PodTimes(duties=on_duty()))


async def written_by_upkeep(cluster: Snapshot) -> set[str]:
    """The tasks that have something to write."""
    found = set()
    for task in wiring(cluster)._upkeep_tasks():
        if all_due([await task.look(cluster)]):
            found.add(type(task.task if isinstance(task, WhileSettled) else task).__name__)
    return found


async def ordered(cluster: Snapshot) -> set[str]:
    """What is found to be unfinished, by the rule that finds it."""
    rules = (unfinished.owners, unfinished.deserted, unfinished.releases, unfinished.marks, unfinished.expired)
    found = {rule.__name__ for rule in rules if rule(cluster)}
    for finder in wiring(cluster)._finders():
        if all_due([await finder.look(cluster)]):
            found.add(type(finder).__name__)
    return found


def measured(cluster: Snapshot) -> set[str]:
    """The metrics that speak of the pool as of one of ours."""
    return {each.name for each in shown(cluster) if ("nodepool", "pool") in each.labels and "nodepools" in each.name}


async def test_what_belongs_to_another_provider_is_left_alone() -> None:
    """PLM-1: no finalizer on or off, no condition, no annotation, no Event and no metric of its pools."""
    others = a_foreign_cluster(OTHER)

    assert (await written_by_upkeep(others), await ordered(others), measured(others)) == (set(), set(), set())


async def test_the_same_of_our_provider_is_looked_after() -> None:
    """PLM-1: what the test above would miss if it looked at nothing."""
    ours = a_foreign_cluster(EC2_CLASS)

    assert await written_by_upkeep(ours) >= {"ClaimUpkeep", "PoolUpkeep", "PauseUpkeep", "CancelUpkeep", "LabelUpkeep"}
    assert await ordered(ours) >= {"owners", "deserted", "marks", "expired", "RepairFinder", "LostInstanceFinder"}
    assert measured(ours) == {"nodepools_limit", "nodepools_usage"}

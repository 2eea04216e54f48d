"""What the steps do about launches that come to nothing: remember them, stop the pool, refuse its claims."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dovetail.activities.provisioning.launch_brake import LaunchBrake
from dovetail.activities.termination.unused_launches import UnusedLaunches
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.memory import mark
from dovetail.placement.settings import BrakeSettings
from dovetail.ports.failures import Failure
from dovetail.ports.objects import MetadataChange, PoolStatus
from dovetail.rules.brake.unused_launches import remembered_launches, stop_of, stop_text
from tests.activities.test_creating_claims import POOL, created
from tests.activities.test_upkeep import Pools
from tests.placement.buffer_worlds import a_buffer, with_buffers
from tests.placement.builders import a_bound_pod, a_general_pool, a_joined_pair, a_snapshot, a_waiting_pod
from tests.placement.test_buffers import a_node_made_for_the_buffer, leaving
from tests.placement.test_earlier_claims import an_earlier_claim, with_claims
from tests.placement.test_launch_brake import useless
from worlds.disruption import NOW
from worlds.fakes import FakeNotices, World


class View:
    """A view of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def snapshot(self) -> Snapshot:
        return self._snapshot


class Unreachable(Pools):
    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        raise Failure("NodePool/default", "the API server does not answer")

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        raise AssertionError


def a_versioned_pool(version: str = "1", **annotations: str) -> NodePool:
    return replace(a_general_pool(), resource_version=version, annotations=annotations)


async def remembered(claim: NodeClaim, pods: Sequence[Pod], now: float = NOW, **world: Any) -> list[str]:
    """Which claims the pool remembers once this one has ended, twice as a retry would have it."""
    pools = Pools(a_versioned_pool("2"))
    view: Any = View(with_claims(list(pods), claim, pools=[a_versioned_pool("1")], **world))  # the cache lags behind
    unused = UnusedLaunches(view, pools, lambda: now)
    await unused.remember(claim)
    await unused.remember(claim)
    return [launch.claim for launch in remembered_launches(pools.pools["default"], now)]


async def test_a_claim_that_ends_while_its_pods_are_pending_is_remembered_once() -> None:
    pods = [a_waiting_pod("one"), a_waiting_pod("two")]

    assert await remembered(an_earlier_claim("c", *pods), pods) == ["c"]
    assert await remembered(an_earlier_claim("c", *pods), pods[:1]) == ["c"]  # half of them
    elsewhere = [a_bound_pod(name, "n1") for name in ("three", "four", "five")]
    assert await remembered(
        an_earlier_claim("c", *pods, *elsewhere), [*pods, *elsewhere], nodes=[a_joined_pair("n1")]
    ) == ["c"]


async def test_a_claim_that_was_of_use_or_never_launched_or_is_old_is_not_remembered() -> None:
    pod, drained = a_waiting_pod("one"), [a_waiting_pod("two"), a_waiting_pod("three")]

    assert await remembered(an_earlier_claim("c", pod, *drained), [pod]) == []
    assert await remembered(an_earlier_claim("c", *drained), []) == []
    assert await remembered(an_earlier_claim("c", pod, provider_id=""), [pod]) == []
    assert await remembered(an_earlier_claim("c", pod), [pod], now=NOW + 4000.0) == []


async def test_a_buffer_s_node_is_remembered_as_it_begins_to_leave_and_its_pods_at_the_end() -> None:
    """PLQ-32: its node is gone at the end."""
    pod = a_waiting_pod("one")
    pair = leaving(a_node_made_for_the_buffer("n1"))
    claim = replace(pair[1], annotations={**pair[1].annotations, names.PLANNED_PODS: pod.uid}, deleting_since=NOW)
    asking = with_buffers(a_buffer(replicas=1))
    pools = Pools(a_versioned_pool())

    for nodes in ([(pair[0], claim)], []):
        view: Any = View(a_snapshot([pod], nodes, pools=[pools.pools["default"]], **asking))
        unused = UnusedLaunches(view, pools, lambda: NOW)
        await (unused.remember_for_buffers(claim) if nodes else unused.remember(claim))
        [launch] = remembered_launches(pools.pools["default"], NOW)
        marks = [mark(uid) for uid in (["buffer-spare"] if nodes else ["buffer-spare", pod.uid])]
        assert launch.pods == tuple(sorted(marks)) and launch.whose.namespaces


async def test_a_claim_whose_pool_cannot_be_written_ends_all_the_same() -> None:
    pod = a_waiting_pod("one")
    view: Any = View(with_claims([pod], an_earlier_claim("c", pod)))

    await UnusedLaunches(view, Unreachable(a_versioned_pool()), lambda: NOW).remember(an_earlier_claim("c", pod))


def a_brake(pools: Pools, world: World) -> LaunchBrake:
    return LaunchBrake(
        pools=pools,
        notices=FakeNotices(world),
        settings=BrakeSettings(),
        well_known=names.WELL_KNOWN_LABELS,
        now=lambda: NOW,
    )


async def test_a_pool_is_stopped_on_the_object_with_one_event_and_stays_so() -> None:
    pods, claims = useless(10)
    pools, world = Pools(a_versioned_pool("2")), World()
    brake = a_brake(pools, world)

    stopped = await brake.apply(with_claims(pods, *claims, pools=[a_versioned_pool("1")]))
    stop = stop_of(pools.pools["default"])
    again = await brake.apply(with_claims(pods, *claims, pools=[pools.pools["default"]]))

    assert stop is not None and stop.why.startswith("10 of 10 nodes launched within an hour")
    assert stop_of(stopped.pools["default"]) == stop_of(again.pools["default"]) == stop
    [notice] = world.notices
    assert (notice.kind, notice.name, notice.reason, notice.type) == (
        "NodePool",
        "default",
        "LaunchesStopped",
        "Warning",
    )
    assert notice.message.endswith("dovetail resume --pool default")


async def test_a_pool_that_cannot_be_written_is_stopped_for_this_plan() -> None:
    pods, claims = useless(10)

    stopped = await a_brake(Unreachable(a_versioned_pool()), World()).apply(with_claims(pods, *claims))

    assert stop_of(stopped.pools["default"]) is not None


@pytest.mark.parametrize("text", [stop_text(NOW, "of no use"), "I look into it"])
async def test_a_stopped_pool_gets_no_claim_whoever_asks(text: str) -> None:
    """Pods, replacements and static pools alike: the pool is read at that moment."""
    world = World()

    outcome = await created(world, replace(POOL, annotations={names.LAUNCHES_STOPPED: text}))

    assert world.claims == {}
    assert outcome.refused[0][1].startswith("launches are stopped for NodePool pool: ")


async def test_a_pool_whose_tried_node_runs_pods_goes_on() -> None:
    """PLQ-33: what came before does not count any more."""
    pod = a_bound_pod("p", "trial")
    node, claim = a_joined_pair("trial")
    asking = replace(claim, created=NOW - 100, annotations=with_memory({}, asks_again=True))
    pool = a_versioned_pool(**{names.LAUNCHES_STOPPED: stop_text(NOW - 500, "enough")})
    pools, world = Pools(pool), with_claims([pod], asking, nodes=[(node, asking)], pools=[pool])

    seen = await a_brake(pools, World()).apply(world)

    assert stop_of(seen.pools["default"]) is None
    assert stop_of(pools.pools["default"]) is None
    assert names.LAUNCHES_RESUMED in pools.pools["default"].annotations

"""How fast a NodePool with a fixed number of nodes gets what it lacks, and how often it tries again (NPL-43)."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.orders.await_orders import AwaitOrders
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.lifecycle.pool_health import RESULTS, Record, record_text
from dovetail.messages.orders import FillPool
from dovetail.model import names
from tests.activities.test_gated_orders import OnePool
from tests.activities.test_ordering import Stage, a_stage, ordering_of
from tests.lifecycle.objects import is_now
from tests.lifecycle.test_gated import static
from worlds.fakes import FakeClaims, FakeCloud, FakeNotices, create_ties

OF_CLASS_2 = {RESULTS: record_text(Record(pool_generation=1, class_generation=2, since=1000.0))}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return a_stage(monkeypatch)


async def filled(stage: Stage, ordering: AwaitOrders, seconds: float, *, in_vain: bool = True) -> list[float]:
    """When each NodeClaim of the pool is made in this time. `in_vain`: every one ends 2 to 5 s later, for want of
    capacity."""
    made, world = list[float](), stage.world
    until = world.clock + seconds
    step = CreateNodeClaims(
        FakeClaims(world), OnePool(stage.pools["pool"]), FakeNotices(world), world.now, create_ties(world)
    )
    while world.clock < until:
        for order in await stage.orders(ordering):
            assert isinstance(order, FillPool)
            for claim in (await ActivityEnvironment().run(step.create_node_claims, order.request)).claims:
                made.append(world.clock)
                stage.workflows[f"c/claim/{claim.name}"] = "LaunchNode"
                if in_vain:
                    world.at(world.clock + 2.0 + len(made) % 4, partial(world.claims.__delitem__, claim.name))
        await world.pause(0.1)
    return made


async def test_what_comes_to_nothing_is_asked_for_less_and_less_often(stage: Stage) -> None:
    """The NodeClaims end one after the other, so that nearly every look finds other numbers lacking."""
    stage.pools["pool"] = static(20)
    ordering = ordering_of(stage, FakeCloud(stage.world))

    made = await filled(stage, ordering, 3600.0)

    assert made[:20] == [1000.0] * 20, "at first all in one look"
    assert len(made) <= 20 * 11


@pytest.mark.parametrize(
    "change",
    [
        {"generation": 2},
        {"annotations": OF_CLASS_2},
        {"conditions": (is_now(names.READY, changed=2000.0),)},
    ],
)
async def test_a_pool_that_is_put_right_is_filled_at_once(stage: Stage, change: dict[str, Any]) -> None:
    """In the NodePool, in its NodeClass, or in what made the class unready."""
    stage.pools["pool"] = static(1)
    ordering = ordering_of(stage, FakeCloud(stage.world))
    await filled(stage, ordering, 1500.0)

    stage.pools["pool"] = replace(stage.pools["pool"], **change)
    began = stage.world.clock
    made = await filled(stage, ordering, 10.0)

    assert made[0] - began < 10.0


async def test_a_pool_of_any_size_is_filled_without_a_pause(stage: Stage) -> None:
    """Fifty NodeClaims in one look, and the next look follows at once; one that ends later is replaced at once."""
    stage.pools["pool"] = static(120)
    ordering = ordering_of(stage, FakeCloud(stage.world))

    made = await filled(stage, ordering, 5.0, in_vain=False)
    stage.world.claims.pop(next(iter(stage.world.claims)))
    later = await filled(stage, ordering, 5.0, in_vain=False)

    assert [made.count(moment) for moment in sorted(set(made))] == [50, 50, 20]
    assert (made[-1] - made[0] < 5.0, len(later)) == (True, 1)

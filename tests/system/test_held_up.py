"""A mark that was held up: the worker dies before its first write and comes back late."""

import asyncio

import pytest

from dovetail.activities.disruption.superseded import HELD_UP_SECONDS
from dovetail.messages.workflow_ids import scheduler_id
from dovetail.messages.workflow_types import DISRUPT_NODES
from worlds.fault_orders import Kill
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal

BEFORE_THE_MARK = Kill(name="before-the-mark", point="before:mark_nodes")
WITHOUT_WORKER = HELD_UP_SECONDS + 2.0


async def held_up(stage: Stage) -> str:
    """An empty node is to be disrupted and the worker dies before it marks it; the disruption's id."""
    stage.apply_pool()
    stage.deploy(1)
    worker = stage.start_worker(faulty=True)
    await stage.until(lambda: stage.initialised(1), 90, "a node stands")
    stage.orders.give(BEFORE_THE_MARK)
    stage.world.scale("web", 0)
    await stage.until(lambda: worker.poll() is not None, 90, "the worker is killed before the mark")
    struck = stage.orders.struck(BEFORE_THE_MARK)
    assert struck is not None
    await asyncio.sleep(WITHOUT_WORKER)
    assert stage.tainted() == []
    return struck.subjects[0]


async def disruptions(stage: Stage) -> list[str]:
    client = await stage.client()
    query = f"WorkflowType = '{DISRUPT_NODES}' AND WorkflowId STARTS_WITH '{stage.cluster}/'"
    return [run.id async for run in client.list_workflows(query)]


@pytest.mark.soak
async def test_it_is_made_where_the_same_scheduler_still_plans(stage: Stage) -> None:
    """The very disruption that had begun takes the node."""
    identity = await held_up(stage)
    stage.start_worker()

    await stage.until(stage.nothing_left, 120, "the empty node is gone")

    record = await (await stage.workflow(identity)).result()
    assert record["outcome"] == "done"
    assert await disruptions(stage) == [identity]


@pytest.mark.soak
async def test_it_is_refused_where_another_scheduler_plans_by_now(stage: Stage) -> None:
    """DIS-51: that one knows nothing of it and may take the same allowance. The node goes by a disruption of its
    own."""
    identity = await held_up(stage)
    await (await stage.workflow(scheduler_id(stage.cluster))).terminate("a person's mistake")
    stage.start_worker()

    await stage.until(stage.nothing_left, 120, "the empty node is gone")

    record = await (await stage.workflow(identity)).result()
    assert record["outcome"] == "refused"
    assert "begun anew" in record["message"]
    assert len(await disruptions(stage)) == 2

"""Caretaker: every order is carried out, none stops another, and nothing is lost when it begins as new."""

import asyncio
from collections import deque
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from dovetail.activities.identity.cluster_header import HEADER
from dovetail.activities.orders.await_orders import AwaitOrders
from dovetail.activities.orders.carry_out_orders import CarryOutOrders
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.upkeep.keep_up import KeepUp
from dovetail.messages.inputs import CaretakerInput
from dovetail.messages.orders import (
    DeleteClaim,
    FillPool,
    Order,
    Orders,
    StartOwner,
    StartRelease,
    TakeOffMark,
    TerminateOrphan,
)
from dovetail.messages.outcomes import CreateOutcome, StepOutcome
from dovetail.messages.plans import ProposedNode
from dovetail.messages.reports import REPORT, ClusterReport, ReportedWorker
from dovetail.messages.requests import CreateRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_ids import caretaker_id, claim_owner_id, task_queue
from dovetail.messages.workflow_types import TERMINATE_NODE
from dovetail.messages.writes import Write
from dovetail.model.nodes import NodeClassRef
from dovetail.workflows.caretaker import CARRIED_OUT_BY, Caretaker
from tests.waiting import until, until_answered
from tests.workflows.conftest import Serving, serving_on
from tests.workflows.fake_steps import FakeSteps, not_yet

pytestmark = pytest.mark.temporal

STEPS = (CarryOutOrders, CreateNodeClaims, AwaitOrders, KeepUp)
CLAIM = ClaimRef(name="claim-1", uid="uid-1")

ONE_OF_EACH: dict[str, Order] = {
    "start_owner": StartOwner(claim=CLAIM, workflow_type=TERMINATE_NODE),
    "start_release": StartRelease(node="node-1", uid="n-1"),
    "take_off_mark": TakeOffMark(claim=CLAIM, owner="c/disrupt/1"),
    "delete_claim_for": DeleteClaim(claim=CLAIM, reason="expired"),
    "terminate_orphan": TerminateOrphan(provider_id="test://1"),
}


NODE = ProposedNode(
    pool="pool",
    pool_uid="p-1",
    node_class=NodeClassRef(group="dovetail.sh", kind="EmbeddedNodeClass", name="default"),
    requirements=(),
    type_list=0,
)
FILL = FillPool(request=CreateRequest(plan_id="static-p-1", proposed=(NODE,), type_lists=((),), indexes=(4,)))


def scripted(*looks: Orders, **other: Any) -> FakeSteps:
    """Looks that find these orders, one look after another, and then nothing more."""
    found = deque(looks)

    def look(given: Any) -> Orders:
        if not found:
            raise not_yet()
        return found.popleft()

    def long(given: Any) -> None:
        raise not_yet(3600)

    answers: dict[str, Any] = dict.fromkeys(ONE_OF_EACH, StepOutcome())
    return FakeSteps(**{"await_orders": look, "keep_up": long, **answers, **other})


async def start(client: Client, cluster: str, max_history: int = 0, uid: str = "") -> WorkflowHandle[Any, Any]:
    return await client.start_workflow(
        Caretaker.run,
        CaretakerInput(cluster=cluster, max_history=max_history, cluster_uid=uid),
        id=caretaker_id(cluster),
        task_queue=task_queue(cluster, "control"),
    )


def test_every_kind_of_order_has_its_step() -> None:
    kinds = {cls.__dataclass_fields__["kind"].default for cls in Order.__args__}
    assert (set(CARRIED_OUT_BY), set(CARRIED_OUT_BY.values())) == (kinds, {*ONE_OF_EACH, "create_node_claims"})


async def test_a_static_pool_is_filled_and_the_new_claims_get_their_owners(full_server: Client) -> None:
    """NPL-43: one step creates, then a LaunchNode each; the next look must have seen the claims."""
    write = Write(kind="NodeClaim", name="claim-1", uid="uid-1", version=9)
    made = CreateOutcome(claims=(CLAIM,), writes=(write,))
    steps = scripted(Orders(orders=(FILL,)), create_node_claims=made)

    async with serving_on(full_server)([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: len(steps.arguments("await_orders")) >= 2)
        owner = full_server.get_workflow_handle(claim_owner_id(cluster, CLAIM.name))
        found = await owner.describe()
        await owner.terminate()
        await handle.terminate()

    assert steps.arguments("create_node_claims") == [FILL.request]
    assert found.workflow_type == "LaunchNode"
    assert [request.must_see for request in steps.arguments("await_orders")[:2]] == [(), (write,)]


@pytest.mark.parametrize("step", ONE_OF_EACH)
async def test_an_order_is_carried_out_by_its_step(full_server: Client, step: str) -> None:
    steps = scripted(Orders(orders=(ONE_OF_EACH[step],)))

    async with serving_on(full_server)([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments(step))
        await handle.terminate()

    assert steps.arguments(step) == [ONE_OF_EACH[step]]


async def test_an_order_that_fails_stops_neither_the_others_nor_the_next_look(full_server: Client) -> None:
    def refuse(given: Any) -> None:
        raise ApplicationError("no right to do this", non_retryable=True)

    everything = Orders(orders=tuple(ONE_OF_EACH.values()))
    steps = scripted(everything, Orders(orders=(ONE_OF_EACH["start_release"],)), start_owner=refuse)

    async with serving_on(full_server)([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: len(steps.arguments("start_release")) == 2)
        await handle.terminate()

    assert {name: len(steps.arguments(name)) for name in ONE_OF_EACH} == {
        **dict.fromkeys(ONE_OF_EACH, 1),
        "start_release": 2,
    }


async def test_orders_wait_for_no_upkeep(full_server: Client) -> None:
    """Two loops: an upkeep that stands still for an hour delays no order."""
    steps = scripted(Orders(orders=(ONE_OF_EACH["take_off_mark"],)))

    async with serving_on(full_server)([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("keep_up"))
        await until(lambda: steps.arguments("take_off_mark"))
        await handle.terminate()

    assert len(steps.arguments("keep_up")) == 1


async def test_no_order_is_lost_when_it_begins_as_new(full_server: Client) -> None:
    orders = [TakeOffMark(claim=ClaimRef(name=f"claim-{n}", uid=f"u{n}"), owner="c/disrupt/1") for n in range(30)]
    steps = scripted(*[Orders(orders=(order,)) for order in orders])

    async with serving_on(full_server)([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster, max_history=50)
        current = full_server.get_workflow_handle(handle.id)
        await until(lambda: len(steps.arguments("take_off_mark")) >= len(orders), 60)
        runs = (await current.describe()).run_id
        await current.terminate()

    assert steps.arguments("take_off_mark") == orders
    assert runs != handle.first_execution_run_id


async def test_a_poke_looks_again(full_server: Client) -> None:
    steps = scripted(await_orders=lambda given: (_ for _ in ()).throw(not_yet(3600)))

    async with serving_on(full_server)([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster)
        await until(lambda: steps.arguments("await_orders") and steps.arguments("keep_up"))
        await handle.signal("poke")
        await until(lambda: len(steps.arguments("await_orders")) == 2 and len(steps.arguments("keep_up")) == 2)
        await handle.terminate()


async def test_what_the_cluster_reports_stands_in_the_memo_of_this_run_and_the_next(full_server: Client) -> None:
    """`dovetail fleet` reads it from a list of workflows, without a worker; whose the cluster is stands beside it."""
    worker = ReportedWorker(pod="dovetail-a", version="0.2.0", since=0.5)
    report = ClusterReport(at=1.0, nodes=3, workers=(worker,), pauses=("PAUSED: all",))
    orders = [Orders(orders=(ONE_OF_EACH["take_off_mark"],))] * 12
    steps = scripted()

    async with serving_on(full_server)([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(full_server, cluster, max_history=50, uid="uid-of-kube-system")
        current = full_server.get_workflow_handle(handle.id)
        await current.signal("report", report)
        found = [await until_answered(lambda: reported(current))]
        # The look is asked again each second. A poke would cancel it, and with it an order that it has just found:
        # this script gives none a second time.
        steps.answers["await_orders"] = scripted(*orders).answers["await_orders"]
        await until(lambda: len(steps.arguments("take_off_mark")) >= len(orders), 60)
        described = await current.describe()
        found.append(await described.memo_value(REPORT, type_hint=ClusterReport))
        await current.terminate()

    assert described.run_id != handle.first_execution_run_id
    assert found == [report, report]
    assert await described.memo_value(HEADER) == "uid-of-kube-system"


async def reported(handle: WorkflowHandle[Any, Any]) -> ClusterReport | None:
    described = await handle.describe()
    return await described.memo_value(REPORT, None, type_hint=ClusterReport)


async def test_an_order_that_always_fails_does_not_hold_up_the_next_look(
    skipping: WorkflowEnvironment, serving: Serving
) -> None:
    """A stale mark that cannot be taken off kept a deleted claim from ever getting its workflow."""
    started = asyncio.Event()
    looks = 0

    def next_orders(given: object) -> Orders:
        nonlocal looks
        looks += 1
        if looks == 1:
            return Orders(orders=(ONE_OF_EACH["take_off_mark"],))
        if looks == 2:
            return Orders(orders=(ONE_OF_EACH["start_owner"],))
        raise not_yet(3600.0)

    def start_owner(given: object) -> StepOutcome:
        started.set()
        return StepOutcome()

    def fail(given: object) -> StepOutcome:
        raise RuntimeError("this order cannot be carried out")

    def never(given: object) -> None:
        raise not_yet(3600.0)

    steps = FakeSteps(await_orders=next_orders, keep_up=never, take_off_mark=fail, start_owner=start_owner)
    async with serving([Caretaker], steps.of(*STEPS)) as cluster:
        handle = await start(skipping.client, cluster)
        await skipping.sleep(60)
        await asyncio.wait_for(started.wait(), 20)
        await handle.terminate()

    assert len(steps.arguments("take_off_mark")) > 1  # it was retried, then left to the next look

"""take_off_mark and terminate_orphan: whose marks come off, and which instances end."""

from dataclasses import replace
from typing import cast

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.orders.carry_out_orders import CarryOutOrders, OrderPorts
from dovetail.messages.orders import TakeOffMark, TerminateOrphan
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.scheduling.taints import Taint
from tests.activities.test_departing import an_instance
from tests.activities.test_gated_orders import seen
from tests.lifecycle.objects import a_joined_claim, a_joined_node
from worlds.disruption import a_claim
from worlds.fakes import FakeClaims, FakeCloud, FakeNodes, World, mark_ports
from worlds.fakes.descriptions import running_as

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")


async def test_a_predecessors_mark_comes_off_although_it_names_no_owner() -> None:
    """DIS-12: Temporal is not asked whether the workflow "" runs; the server refuses the question, and the mark would
    stay."""
    world = World()
    reason = Condition(type=names.DISRUPTION_REASON, status="True", reason="Drifted", changed=900.0)
    marked = a_joined_claim()
    world.put(
        a_joined_claim(conditions=(*marked.conditions, reason), annotations={names.TERMINATION_DEADLINE: "2026"}),
        a_joined_node(taints=(Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule"),)),
    )
    claims, nodes = FakeClaims(world), FakeNodes(world)
    marking = MarkAndUnmarkNodes(mark_ports(world, claims=claims, nodes=nodes), world.now)
    caretaking = CarryOutOrders(
        "c", OrderPorts(claims=claims, cloud=FakeCloud(world), fleet=lambda: seen(world), again={}), marking, world.now
    )

    # An environment without a client: asking one would be an error here.
    await ActivityEnvironment().run(caretaking.take_off_mark, TakeOffMark(claim=REF, owner=""))

    assert world.nodes["node-1"].taints == ()
    assert world.claims["pool-1"].condition(names.DISRUPTION_REASON) is None
    assert names.TERMINATION_DEADLINE not in world.claims["pool-1"].annotations


class RunningWorkflows:
    """A client that knows one workflow, which runs."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.namespace, self.workflow_service = "default", self

    async def describe_workflow_execution(
        self, request: DescribeWorkflowExecutionRequest, *, retry: bool
    ) -> DescribeWorkflowExecutionResponse:
        assert request.execution.workflow_id == self.identity, "no other workflow is asked for"
        return running_as("DisruptNodes")


async def test_a_mark_stays_where_its_owner_runs_after_all() -> None:
    """DIS-197, DUR-26: asked once more when the order is carried out, because it may be as old as a look."""
    world, owner = World(), "c/disrupt/1"
    taint = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")
    world.put(a_joined_claim(annotations={names.OWNER: owner}), a_joined_node(taints=(taint,)))
    claims, nodes = FakeClaims(world), FakeNodes(world)
    marking = MarkAndUnmarkNodes(mark_ports(world, claims=claims, nodes=nodes), world.now)
    caretaking = CarryOutOrders(
        "c", OrderPorts(claims=claims, cloud=FakeCloud(world), fleet=lambda: seen(world), again={}), marking, world.now
    )
    environment = ActivityEnvironment(client=cast(Client, RunningWorkflows(owner)))

    outcome = await environment.run(caretaking.take_off_mark, TakeOffMark(claim=REF, owner=owner))

    assert outcome.message == f"{owner} runs"
    assert (world.nodes["node-1"].taints, world.claims["pool-1"].annotations) == ((taint,), {names.OWNER: owner})


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        (a_claim(), "running"),
        (a_joined_claim(provider_id="aws:///zone/i-2"), "running"),
        (a_joined_claim(), "gone"),
    ],
    ids=["names none yet", "names this one", "names another one: it was launched twice"],
)
async def test_an_instance_that_carries_a_claims_uid_is_its_own_only_until_the_claim_names_one(
    claim: NodeClaim, state: str
) -> None:
    """GCR-6: as what finds it says. Otherwise the second would run for as long as the claim lives."""
    world = World()
    world.put(claim)
    second = replace(an_instance("aws:///zone/i-2", claim.uid), claim_name=claim.name, state="running")
    world.instances = {second.provider_id: second}
    marking = MarkAndUnmarkNodes(mark_ports(world), world.now)
    ports = OrderPorts(claims=FakeClaims(world), cloud=FakeCloud(world), fleet=lambda: seen(world), again={})

    await CarryOutOrders("c", ports, marking, world.now).terminate_orphan(
        TerminateOrphan(provider_id="aws:///zone/i-2", claim_uid=claim.uid)
    )

    left = world.instances.get("aws:///zone/i-2")
    assert (left.state if left is not None and left.state == "running" else "gone") == state

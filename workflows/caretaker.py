"""Caretaker: keeps objects true, and finds what is unfinished.

A singleton with two loops. Upkeep is one long step that writes conditions, hashes, statuses and labels as facts change.
The other loop waits for a step that returns only when there are orders: a claim without its workflow, a mark whose
owner is gone, a claim that has expired. Everything is found from the objects, so a lost signal and a lost Temporal
database are the same case.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

from dovetail.workflows.claim_owners import start_launches
from dovetail.workflows.loops import Loops, said
from dovetail.workflows.options import impatient, launching, planning, quick
from dovetail.workflows.renewal import renew

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.orders.await_orders import AwaitOrders
    from dovetail.activities.orders.carry_out_orders import CarryOutOrders
    from dovetail.activities.orders.reboot_nodes import RebootNodes
    from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
    from dovetail.activities.upkeep.keep_up import KeepUp
    from dovetail.messages.inputs import CaretakerInput
    from dovetail.messages.orders import FillPool, Order, Orders, OrdersRequest, TerminateOrphan
    from dovetail.messages.outcomes import CreateOutcome, StepOutcome
    from dovetail.messages.reports import REPORT, ClusterReport
    from dovetail.messages.requests import CreateRequest
    from dovetail.messages.states import expiry_of, remembered
    from dovetail.messages.workflow_types import CARETAKER
    from dovetail.messages.writes import Write


# An order that cannot be carried out must not hold up the others: after this time the loop looks and finds it again.
# Enough for a worker that is killed meanwhile (10 to 11 s) and for the retry.
ORDER_SECONDS = timedelta(seconds=25)

# The step for each kind of order.
CARRIED_OUT_BY = {
    "start_owner": CarryOutOrders.start_owner.__name__,
    "start_release": CarryOutOrders.start_release.__name__,
    "take_off_mark": CarryOutOrders.take_off_mark.__name__,
    "delete_claim": CarryOutOrders.delete_claim_for.__name__,
    "reboot_node": RebootNodes.reboot_node.__name__,
    "terminate_orphan": CarryOutOrders.terminate_orphan.__name__,
    "fill_pool": CreateNodeClaims.create_node_claims.__name__,
}

# For this long, further looks must have seen what an order has written.
REMEMBERED_SECONDS = 60.0


@workflow.defn(name=CARETAKER)
class Caretaker:
    """The singleton that leaves nothing unfinished."""

    @workflow.init
    def __init__(self, given: CaretakerInput) -> None:
        self.given = given
        self.must_see = given.must_see
        self.loops = Loops(self.show, given.max_history)
        self.waits = self.loops.waits

    @workflow.run
    async def run(self, given: CaretakerInput) -> None:
        """Both loops until the history is long; then continue as new."""
        self.show()
        await self.loops.run(upkeep=self.upkeep, orders=self.orders)
        await workflow.wait_condition(workflow.all_handlers_finished)
        renew(replace(self.given, generation=given.generation + 1, must_see=self.must_see))

    @workflow.signal
    def poke(self) -> None:
        """Look again at once; sent after a deploy, so that the new version is used."""
        self.wake()

    @workflow.signal
    def report(self, found: ClusterReport) -> None:
        """What the cluster reports, kept in the memo: a list of workflows reads it there, without a worker."""
        workflow.upsert_memo({REPORT: found})

    def wake(self) -> None:
        """Cancel both waits; nothing is lost, as they look at everything again."""
        self.loops.wake()

    def show(self) -> None:
        """The Web UI's summary."""
        head = "watching for unfinished claims, stale marks, expiry, orphans"
        workflow.set_current_details("\n".join([head, *self.loops.lines()]))

    async def upkeep(self) -> None:
        """Conditions, hashes, statuses, labels: level-triggered, so there is nothing to remember."""
        step = workflow.start_activity_method(
            KeepUp.keep_up, summary="conditions, hashes, counters, labels", **impatient(planning(self.given.cluster))
        )
        await self.waits.wait("upkeep", step)

    async def orders(self) -> None:
        """One look after another; each order is a step of its own."""
        step = workflow.start_activity_method(
            AwaitOrders.await_orders,
            self.known(),
            summary="look for what is unfinished",
            **impatient(planning(self.given.cluster)),
        )
        found = await self.waits.wait("orders", step)
        if isinstance(found, Orders):
            await asyncio.gather(*[self.carry_out(order) for order in found.orders])

    def known(self) -> OrdersRequest:
        """What the next look must have seen."""
        now = workflow.time()
        self.must_see = tuple(one for one in self.must_see if one.until > now)
        return OrdersRequest(
            must_see=tuple(one.write for one in self.must_see), must_see_until=expiry_of(self.must_see)
        )

    async def carry_out(self, order: Order) -> None:
        """The step for that kind of order; new claims get their owner at once."""
        try:
            if isinstance(order, FillPool):
                await self.fill(order.request)
            else:
                await self.step(order)
        except FailureError as error:
            # Not fatal, and no reason for the loop to wait: the next look finds it again.
            workflow.logger.warning("order %s failed: %s", order.kind, said(error))

    async def step(self, order: Order) -> None:
        """Any order except those that create."""
        options = launching(self.given.cluster) if isinstance(order, TerminateOrphan) else quick(self.given.cluster)
        outcome = await workflow.execute_activity(
            CARRIED_OUT_BY[order.kind],
            order,
            result_type=StepOutcome,
            summary=order.kind.replace("_", " "),
            schedule_to_close_timeout=ORDER_SECONDS,
            **impatient(options),
        )
        self.remember(outcome.writes)

    async def fill(self, request: CreateRequest) -> None:
        """The claims that a pool with a fixed number of nodes lacks."""
        outcome: CreateOutcome = await workflow.execute_activity_method(
            CreateNodeClaims.create_node_claims,
            request,
            summary=f"{len(request.proposed)} claims for NodePool {request.proposed[0].pool}",
            schedule_to_close_timeout=ORDER_SECONDS,
            **impatient(quick(self.given.cluster)),
        )
        self.remember(outcome.writes)
        for name, why in outcome.refused:
            workflow.logger.warning("claim %s was not created: %s", name, why)
        await start_launches(self.given.cluster, outcome)

    def remember(self, writes: tuple[Write, ...]) -> None:
        self.must_see = remembered(self.must_see, writes, workflow.time() + REMEMBERED_SECONDS)

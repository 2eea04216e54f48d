"""Scheduler: plans nodes for pending pods and picks the next disruption.

A singleton with two loops in one workflow. Each loop alternates between waits, which are steps without effects, and
carrying out a plan, which nothing cancels. A turn of a loop that fails ends nothing and forgets nothing (see loops.py).
It continues as new only when both loops are parked, because leaving as soon as one of them wants to would lose the plan
that the other carries out (3 of 51 in a trial; 0 of 171 this way).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from temporalio import workflow

from dovetail.workflows.claim_owners import in_parts, start_launches
from dovetail.workflows.loops import Loops, raise_first
from dovetail.workflows.options import attending, impatient, planning, quick
from dovetail.workflows.renewal import renew

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
    from dovetail.activities.disruption.await_progress import AwaitProgress
    from dovetail.activities.identity.search_attributes import attributes
    from dovetail.activities.provisioning.await_provisioning_plan import AwaitProvisioningPlan
    from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
    from dovetail.messages.inputs import DisruptInput
    from dovetail.messages.outcomes import Drop, Go, Hold, NothingPlanned, StepOutcome
    from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, ProvisioningPlan, Seen
    from dovetail.messages.requests import CreateRequest, DisruptionRequest, ProvisioningRequest
    from dovetail.messages.states import AwaitedMark, Held, Recent, SchedulerState, expiry_of
    from dovetail.messages.subjects import ClaimRef
    from dovetail.messages.type_lists import command_with_own_lists
    from dovetail.messages.workflow_ids import disruption_id, task_queue
    from dovetail.messages.workflow_types import DISRUPT_NODES, SCHEDULER
    from dovetail.messages.writes import Write
    from dovetail.telemetry.traces.spans import traced

MUST_SEE_SECONDS = 60.0
RECENT_KEPT = 20
NOTE_CHARACTERS = 300  # five hundred names would fill the state

# The loops' names, which also name their waits.
PROVISIONING, DISRUPTION, MARK = "provisioning", "disruption", "mark"


@workflow.defn(name=SCHEDULER)
class Scheduler:
    @workflow.init
    def __init__(self, state: SchedulerState) -> None:
        self.state = state
        self.loops = Loops(self.show, state.max_history)
        self.waits = self.loops.waits
        self.written: list[Write] = []

    @workflow.run
    async def run(self, state: SchedulerState) -> None:
        """Both loops until the history is long; then continue as new, with the state."""
        self.show()
        await self.loops.run(provisioning=self.provisioning, disruption=self.disruption)
        await workflow.wait_condition(workflow.all_handlers_finished)
        renew(replace(self.state.forget(now()), generation=self.state.generation + 1))

    @workflow.signal
    def poke(self) -> None:
        """Look again at once; sent after a deploy, so that the new version is used."""
        self.loops.wake(PROVISIONING, DISRUPTION)

    @workflow.query
    def status(self) -> SchedulerState:
        return self.state

    def show(self) -> None:
        """The Web UI's summary."""
        lines = [f"- {r.text}" for r in reversed(self.state.recent)]
        workflow.set_current_details("\n".join(["**planning**", *self.loops.lines(), *lines]))

    def note(self, text: str) -> None:
        """Remember what was done, for people; the oldest entry is dropped."""
        recent = (*self.state.recent, Recent(at=now(), text=text[:NOTE_CHARACTERS]))[-RECENT_KEPT:]
        self.state = replace(self.state, recent=recent)
        self.show()

    def remember(self, writes: tuple[Write, ...]) -> None:
        """What the next snapshot must contain."""
        self.written.extend(writes)
        self.state = self.state.forget(now()).remember(writes, now() + MUST_SEE_SECONDS)

    async def provisioning(self) -> None:
        """Await a plan for pending pods; create its claims; start their workflows."""
        before = len(self.written)
        request = self.provisioning_request()
        step = workflow.start_activity_method(
            AwaitProvisioningPlan.await_provisioning_plan,
            request,
            summary="await pending pods and plan for them",
            **impatient(planning(self.state.cluster)),
        )
        plan = await self.waits.wait(PROVISIONING, step)
        if isinstance(plan, ProvisioningPlan) and not self.waits.leaving and not self.stale(plan.seen, before):
            await self.carry_out_provisioning(plan)

    async def disruption(self) -> None:
        """Await the next disruption; hold it, drop it, or start its workflows and wait for their marks."""
        if self.state.awaiting:
            await self.await_marked()
            return
        before = len(self.written)
        request = self.disruption_request()
        step = workflow.start_activity_method(
            AwaitDisruptionPlan.await_disruption_plan,
            request,
            summary="await the next disruption",
            **impatient(planning(self.state.cluster)),
        )
        answer = await self.waits.wait(DISRUPTION, step)
        if isinstance(answer, Hold | Go | Drop | NothingPlanned) and not self.waits.leaving:
            await self.answer(answer, before, dict(request.nominations))

    def provisioning_request(self) -> ProvisioningRequest:
        """What the next decision must know and the cluster does not show."""
        state = self.state.forget(now())
        return ProvisioningRequest(
            must_see=self.must_see(),
            nominated=tuple(node for node, _ in state.nominations),
            launching=state.launching,
            launching_since=state.launching_since,
            refused_pods=state.refused_pods,
            claim_refusals=state.claim_refusals,
            must_see_until=expiry_of(state.must_see),
        )

    def disruption_request(self) -> DisruptionRequest:
        """What the next decision must know and the cluster does not show."""
        state = self.state.forget(now())
        return DisruptionRequest(
            must_see=self.must_see(),
            nominations=state.nominations,
            expected=state.expected,
            expected_seen=state.expected_seen,
            held=state.held,
            quiet_until=state.quiet_until,
            must_see_until=expiry_of(state.must_see),
            holds_enough=state.holds_enough,
        )

    async def answer(
        self, answer: Hold | Go | Drop | NothingPlanned, before: int, nominated: Mapping[str, float]
    ) -> None:
        """Act on the outcome of a decision."""
        match answer:
            case Hold():
                self.state = replace(self.state, held=(*self.state.held, Held(plan=answer.plan, due=answer.due)))
            case Drop():
                self.let_go(answer.held)
                self.note(f"dropped a disruption: {answer.why}")
            case Go():
                self.let_go(answer.held, *[other.held for other in answer.others])
                for plan in (answer.plan, *[other.plan for other in answer.others]):
                    if not self.stale(plan.seen, before) and not self.touches_nominated(plan, nominated):
                        await self.carry_out_disruption(plan)
            case NothingPlanned():
                pass
            case _:
                assert_never(answer)

    def must_see(self) -> tuple[Write, ...]:
        """The writes of the last minute."""
        return tuple(r.write for r in self.state.forget(now()).must_see)

    def let_go(self, *held: int) -> None:
        self.state = replace(self.state, held=tuple(h for i, h in enumerate(self.state.held) if i not in held))

    def stale(self, seen: Seen, before: int) -> bool:
        """Whether something was written while the plan was made that is missing from its snapshot."""
        versions = dict(seen.versions)
        return any(w.version == 0 or versions.get(w.kind, 0) < w.version for w in self.written[before:])

    def touches_nominated(self, plan: DisruptionPlan, before: Mapping[str, float]) -> bool:
        """Whether a node of the plan has been nominated since."""
        nominated = {node for node, until in self.state.nominations if until > max(now(), before.get(node, 0.0))}
        return any(t.node in nominated for c in plan.commands for t in c.targets)

    async def carry_out_provisioning(self, plan: ProvisioningPlan) -> None:
        """First the claims, then a LaunchNode for each. Nothing cancels this."""
        self.state = replace(self.state, claim_refusals=plan.claim_refusals)
        seen = dict(plan.seen.versions).get("Pod", 0)
        self.state = self.state.expect(plan.nominated, now() + plan.nominate_for, seen)
        if not plan.proposed:
            return
        plan_id = str(workflow.uuid7())
        with traced(plan_id):
            request = CreateRequest(plan_id=plan_id, proposed=plan.proposed, type_lists=plan.type_lists, seen=plan.seen)
            outcome = await workflow.execute_activity_method(
                CreateNodeClaims.create_node_claims,
                request,
                summary=f"create {len(plan.proposed)} NodeClaims",
                **impatient(quick(self.state.cluster)),
            )
            self.remember(outcome.writes)
            asked = frozenset(pod.uid for proposed in plan.proposed for pod in proposed.pods)
            self.state = self.state.refuse(asked, outcome.refused_pods)
            await start_launches(self.state.cluster, outcome)
            self.state = replace(self.state, launching=outcome.claims, launching_since=now())
            names = ", ".join(c.name for c in outcome.claims[:5])
            refused = f"; {len(outcome.refused)} refused: {outcome.refused[0][1][:200]}" if outcome.refused else ""
            several = "" if len(outcome.claims) == 1 else "s"
            self.note(f"created {len(outcome.claims)} NodeClaim{several}: {names}{refused}")

    async def carry_out_disruption(self, plan: DisruptionPlan) -> None:
        """A DisruptNodes for each command; then wait for its mark before planning again."""
        destinations = tuple(d for command in plan.commands for d in command.destinations)
        self.state = self.state.nominate(destinations, now() + plan.nominate_for)  # first: starting takes a while
        started: list[AwaitedMark | BaseException] = []
        for part in in_parts(plan.commands):
            starts = [self.start_disruption(plan, command) for command in part]
            started += await asyncio.gather(*starts, return_exceptions=True)
        # First the commands that did start: no round may be planned before their marks are seen.
        marks = tuple(one for one in started if isinstance(one, AwaitedMark))
        self.state = replace(self.state, awaiting=(*self.state.awaiting, *marks))
        raise_first(started)

    async def start_disruption(self, plan: DisruptionPlan, command: DisruptionCommand) -> AwaitedMark:
        """Start one command under a plan id of its own."""
        plan_id = str(workflow.uuid7())
        workflow_id = disruption_id(self.state.cluster, plan_id)
        own_command, own_lists = command_with_own_lists(command, plan.type_lists)
        first = command.targets[0]
        names = ", ".join(t.node for t in command.targets)
        await workflow.start_child_workflow(
            DISRUPT_NODES,
            DisruptInput(
                cluster=self.state.cluster,
                plan_id=plan_id,
                command=own_command,
                type_lists=own_lists,
                seen=plan.seen,
            ),
            id=workflow_id,
            task_queue=task_queue(self.state.cluster, "control"),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            search_attributes=attributes(
                self.state.cluster,
                pool=first.pool,
                claim=first.claim,
                node=first.node,
                reason=command.reason,
                phase="marking",
            ),
            static_summary=f"{command.reason}: {names}"[:200],
        )
        self.note(f"{command.reason}: disrupting {names}")
        claims = tuple(ClaimRef(name=t.claim, uid=t.claim_uid, pool=t.pool) for t in command.targets)
        return AwaitedMark(workflow_id=workflow_id, claims=claims)

    async def await_marked(self) -> None:
        """Wait until each mark is seen or its workflow has ended; not for a signal, which a terminated child never
        sends."""
        step = workflow.start_activity_method(
            AwaitProgress.await_marked,
            self.state.awaiting,
            summary="await the marks",
            **impatient(attending(self.state.cluster)),
        )
        outcome = await self.waits.wait(MARK, step)
        if isinstance(outcome, StepOutcome):
            self.remember(outcome.writes)
            self.state = replace(self.state, awaiting=())


def now() -> float:
    """The workflow's clock, in seconds since the epoch."""
    return workflow.now().timestamp()

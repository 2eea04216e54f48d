"""Records every step as a span: what it worked on, how long it took, how many attempts it needed.

A step's span lasts from its workflow's request until its answer, however many attempts and workers that took; the
attempt that answers records it. A failed attempt is a span below it. An attempt that asks to be called again (an
instance that is still terminating) is none: that is how such a step waits.

Steps of singletons belong to no trace of their own. Each decision of theirs is a separate span, to which the
disruptions and launches that result from it are linked.
"""

from collections.abc import Callable
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.around_steps import AroundSteps, GoOn
from dovetail.activities.identity.trace_header import of_running_step, parent_in
from dovetail.activities.shared.every_step.step_notices import worked_on
from dovetail.activities.shared.every_step.temporal_errors import NotYet
from dovetail.messages.outcomes import Go, Hold
from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan, Seen
from dovetail.messages.requests import CreateRequest, DisruptionRequest
from dovetail.messages.workflow_ids import scheduler_id
from dovetail.telemetry.log.line import step_fields
from dovetail.telemetry.traces.ids import SpanId, of_decision
from dovetail.telemetry.traces.spans import Attribute, Span

NAMES: Final = {"NodeClaim": "karpenter.nodeclaims", "Node": "k8s.nodes", "NodePool": "karpenter.nodepools"}
MOST_NAMES: Final = 20
MOST_PODS: Final = 20  # whose waits have a span each


class StepTraces(AroundSteps):
    """Stands around every activity of a worker that sends traces. `share`: the share of traces that is kept. `since`:
    since when a pod waits, by its UID; None if that is not known."""

    def __init__(
        self,
        share: float,
        record: Callable[[Span], None],
        now: Callable[[], float],
        since: Callable[[str], float | None],
    ) -> None:
        self.share, self.record, self.now, self.since = share, record, now, since

    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        parent = parent_in(input.headers)
        of_running_step.set(parent)  # a step runs in a context of its own
        argument = input.args[0] if input.args else None
        if parent is None or not parent.kept:
            answer = await go_on(input)
            self._record_decisions(argument, answer)
            return answer
        token = step_fields.set({**(step_fields.get() or {}), "trace_id": parent.trace, "span_id": _step(parent).span})
        try:
            answer = await go_on(input)
        except Exception as error:
            self._record_failure(parent, argument, error)
            raise
        else:
            self._record_step(parent, argument, answer)
            return answer
        finally:
            step_fields.reset(token)

    def _record_step(self, parent: SpanId, argument: object, answer: object) -> None:
        info = activity.info()
        self.record(
            Span(
                name=info.activity_type,
                id=_step(parent),
                parent=parent,
                began=info.scheduled_time.timestamp(),
                ended=self.now(),
                attributes={**_attributes(argument), "dovetail.outcome": _said(answer)},
            )
        )
        if isinstance(argument, CreateRequest) and not argument.owner and argument.seen is not None:
            self._record_provisioning(parent, argument, argument.seen)

    def _record_failure(self, parent: SpanId, argument: object, error: Exception) -> None:
        if isinstance(error, ApplicationError) and error.type == NotYet.__name__:
            return
        info, own = activity.info(), _step(parent)
        self.record(
            Span(
                name=f"{info.activity_type} attempt",
                id=own.within("attempt", info.attempt),
                parent=own,
                began=info.started_time.timestamp(),
                ended=self.now(),
                attributes=_attributes(argument),
                error=str(error)[:300] or type(error).__name__,
            )
        )

    def _record_provisioning(self, first: SpanId, request: CreateRequest, seen: Seen) -> None:
        """The first span of a plan for pending pods: from when the first of them began to wait until its claims were
        there; below it their waits, and the decision. The launches follow in traces' own time."""
        planned = [pod for proposed in request.proposed for pod in proposed.pods]
        waits = [(pod, self.since(pod.uid)) for pod in planned]
        known = [(pod, since) for pod, since in waits if since is not None]
        began = min([seen.taken_at, *[since for _, since in known]])
        cluster = (activity.info().workflow_id or "").rpartition("/")[0]
        link = of_decision(scheduler_id(cluster), seen, self.share)
        self.record(
            Span(
                name="provision",
                id=first,
                began=began,
                ended=self.now(),
                attributes={"karpenter.pods": len(planned), "karpenter.nodes": len(request.proposed)},
            )
        )
        for pod, since in known[:MOST_PODS]:
            name = f"{pod.namespace}/{pod.name}"
            self.record(
                Span(
                    name="pod waits",
                    id=first.within("pod", pod.uid),
                    parent=first,
                    began=since,
                    ended=seen.decided_at,
                    attributes={"k8s.pod.name": name, "k8s.pod.uid": pod.uid},
                )
            )
        self.record(
            Span(
                name="decide",
                id=first.within("decide"),
                parent=first,
                began=seen.taken_at,
                ended=seen.decided_at,
                links=(link,),
            )
        )

    def _record_decisions(self, argument: object, answer: object) -> None:
        match answer:
            case Hold():
                self._record_decision("decide disruption", answer.plan)
            case Go():
                for plan, held in ((answer.plan, answer.held), *[(due.plan, due.held) for due in answer.others]):
                    first = _held(argument, held)
                    self._record_decision("look again" if first else "decide disruption", plan, first)
            case ProvisioningPlan():
                self._record_decision("decide provisioning", answer)

    def _record_decision(
        self, name: str, plan: DisruptionPlan | ProvisioningPlan, first: DisruptionPlan | None = None
    ) -> None:
        """A trace of its own: several disruptions may come of one decision. `first`: the plan as it was held."""
        planner, share = activity.info().workflow_id or "", self.share
        own = of_decision(planner, plan.seen, share)
        if not own.kept:
            return
        links = (of_decision(planner, first.seen, share),) if first is not None else ()
        attributes = _of_plan(plan)
        began, ended = plan.seen.taken_at, plan.seen.decided_at
        self.record(Span(name=name, id=own, began=began, ended=ended, attributes=attributes, links=links))


def _step(parent: SpanId) -> SpanId:
    info = activity.info()
    return parent.within(info.workflow_run_id, info.activity_id)


def _held(request: object, index: int) -> DisruptionPlan | None:
    """The plan that was held under that index."""
    return request.held[index].plan if isinstance(request, DisruptionRequest) and index >= 0 else None


def _said(answer: object) -> str:
    """A step's answer, in a word or a line."""
    return str(getattr(answer, "kind", "") or getattr(answer, "message", "") or "")


def _attributes(argument: object) -> dict[str, Attribute]:
    info = activity.info()
    found: dict[str, Attribute] = {
        "temporalWorkflowID": info.workflow_id or "",
        "temporalRunID": info.workflow_run_id or "",
        "temporalActivityID": info.activity_id,
        "dovetail.attempts": info.attempt,
    }
    objects = worked_on(argument)
    for kind, name in NAMES.items():
        named = [each.name for each in objects if each.kind == kind]
        if named:
            found[name] = ", ".join(named[:MOST_NAMES])
    return found


def _of_plan(plan: DisruptionPlan | ProvisioningPlan) -> dict[str, Attribute]:
    if isinstance(plan, ProvisioningPlan):
        pods = sum(len(proposed.pods) for proposed in plan.proposed)
        return {"karpenter.pods": pods, "karpenter.nodes": len(plan.proposed)}
    commands = plan.commands
    return {
        "karpenter.reason": ", ".join(sorted({command.reason for command in commands})),
        "karpenter.commands": len(commands),
        "dovetail.summary": "; ".join(command.summary for command in commands[:MOST_NAMES]),
    }

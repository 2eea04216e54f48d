"""Passes the trace from a workflow to every step and child that it asks for, and records its own span at its end.

Only in workers that send traces. Each disruption begins a trace, which includes the launches and terminations that it
starts. Singletons never end and begin none: what they carry out for a plan is in the plan's trace. Ids follow from ids
of the record (dovetail/telemetry/traces/ids.py), the times are the workflow's own, and a replay does not compare
headers: a workflow with traces asks for the same as one without.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from temporalio import workflow
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

with workflow.unsafe.imports_passed_through():
    from temporalio.api.common.v1 import Payload

    from dovetail.activities.identity.trace_header import HEADER, header_of, parent_in
    from dovetail.messages.inputs import DisruptInput
    from dovetail.messages.workflow_ids import scheduler_id
    from dovetail.messages.workflow_types import CARETAKER, DISRUPT_NODES, INTERRUPTIONS, SCHEDULER
    from dovetail.telemetry.traces.ids import SpanId, of_decision, of_plan, of_run
    from dovetail.telemetry.traces.spans import Attribute, Span, plan_traced

    Headers = Mapping[str, Payload]

FOR_EVER: Final = (SCHEDULER, CARETAKER, INTERRUPTIONS)
RECORD_SPAN: Final = "dovetail_record_span"


class TraceContext(Interceptor):
    """Wraps every workflow. `share`: the share of traces that is kept; `record` receives each span of a workflow."""

    def __init__(self, share: float, record: Callable[[Span], None]) -> None:
        self.share, self.record = share, record

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """The class that wraps each workflow."""
        input.unsafe_extern_functions[RECORD_SPAN] = self.record
        return _inbound(self.share)


def _inbound(share: float) -> type[WorkflowInboundInterceptor]:
    class Outbound(WorkflowOutboundInterceptor):
        def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
            input.headers = _handed_on(input.headers, share)
            return self.next.start_activity(input)

        async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:
            input.headers = _handed_on(input.headers, share)
            return await self.next.start_child_workflow(input)

        def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
            input.headers = _handed_on(input.headers, share)
            self.next.continue_as_new(input)

    class Inbound(WorkflowInboundInterceptor):
        def init(self, outbound: WorkflowOutboundInterceptor) -> None:
            super().init(Outbound(outbound))

        async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
            given = input.args[0] if input.args else None
            try:
                answer = await super().execute_workflow(input)
            except workflow.ContinueAsNewError:
                _record(given, share, "continued")
                raise
            except Exception as error:
                _record(given, share, "", error=str(error) or type(error).__name__)
                raise
            _record(given, share, str(getattr(answer, "outcome", answer)))
            return answer

    return Inbound


def _own(share: float) -> tuple[SpanId | None, SpanId | None]:
    """The workflow's span and its parent; none if the workflow never ends."""
    info = workflow.info()
    if info.workflow_type in FOR_EVER:
        return None, None
    parent = parent_in(info.headers)
    if parent is not None:
        return parent.within(info.workflow_id, info.run_id), parent
    if info.workflow_type == DISRUPT_NODES:
        return of_plan(info.workflow_id.rpartition("/")[2], share), None
    return of_run(info.workflow_id, info.run_id, share), None


def _handed_on(headers: Headers, share: float) -> Headers:
    own, _ = _own(share)
    if own is None and plan_traced():
        own = of_plan(plan_traced(), share)
    return headers if own is None else {**headers, HEADER: header_of(own)}


def _record(given: object, share: float, outcome: str, error: str = "") -> None:
    """Record the span of this run, if this is the task that ends it and no replay."""
    own, parent = _own(share)
    if own is None or not own.kept or workflow.unsafe.is_replaying():
        return
    info = workflow.info()
    attributes: dict[str, Attribute] = {
        "temporalWorkflowID": info.workflow_id,
        "temporalRunID": info.run_id,
        "dovetail.outcome": outcome,
    }
    began = info.start_time.timestamp()
    spans = []
    if isinstance(given, DisruptInput):
        decided = _decided(given, own, share)
        began = min(began, decided.began)
        attributes |= _of_command(given)
        spans.append(decided)
    ended = workflow.now().timestamp()
    spans.append(
        Span(
            name=info.workflow_type,
            id=own,
            parent=parent,
            began=began,
            ended=ended,
            attributes=attributes,
            error=error,
        )
    )
    for span in spans:
        workflow.extern_functions()[RECORD_SPAN](span)


def _decided(given: DisruptInput, own: SpanId, share: float) -> Span:
    """The decision, as the first part of its consequences; linked to the plan as a whole."""
    return Span(
        name="decide",
        id=own.within("decide"),
        parent=own,
        began=given.seen.taken_at,
        ended=given.seen.decided_at,
        attributes={"dovetail.summary": given.command.summary},
        links=(of_decision(scheduler_id(given.cluster), given.seen, share),),
    )


def _of_command(given: DisruptInput) -> dict[str, Attribute]:
    command = given.command
    return {
        "karpenter.reason": command.reason,
        "karpenter.decision": "replace" if command.replacements else "delete",
        "karpenter.nodeclaims": ", ".join(target.claim for target in command.targets[:20]),
        "k8s.nodes": ", ".join(target.node for target in command.targets[:20]),
        "karpenter.pods": sum(len(target.pods) for target in command.targets),
    }

"""How often waits send heartbeats, by where Temporal runs.

A server of one's own takes a heartbeat for next to nothing, and the sooner a step falls silent, the sooner another
worker takes it up. Temporal Cloud counts each heartbeat as an action that is paid for. So there the waits, which do
nothing or little, may be silent for longer; what acts is taken up as fast as everywhere.

The timeouts are put into the commands of the workflows by the worker that runs them: no input carries them, a replay
does not compare them, and workers with different profiles can serve side by side.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from temporalio import workflow
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from dovetail.workflows.options import ENDS, IDLES, LEAVES, WAITS
from dovetail.workflows.outbound import around_requests

PROFILES: Final[Mapping[str, Mapping[timedelta, timedelta]]] = MappingProxyType(
    {
        "self-hosted": {},
        "cloud": {
            WAITS: timedelta(seconds=40),
            LEAVES: timedelta(seconds=75),  # most instances are gone before the first beat
            IDLES: timedelta(minutes=10),
            ENDS: timedelta(minutes=10),
        },
    }
)


class HeartbeatProfile(Interceptor):
    """Puts the profile's timeouts into the steps that every workflow asks for."""

    def __init__(self, profile: str) -> None:
        self.timeouts = PROFILES[profile]

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """The class that does it; none where nothing is changed."""
        return around_requests(partial(_Outbound, self.timeouts)) if self.timeouts else None


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(self, timeouts: Mapping[timedelta, timedelta], next: WorkflowOutboundInterceptor) -> None:
        super().__init__(next)
        self.timeouts = timeouts

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        given = input.heartbeat_timeout
        if given is not None:
            input.heartbeat_timeout = self.timeouts.get(given, given)
        return self.next.start_activity(input)

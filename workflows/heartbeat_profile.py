"""How often waits send heartbeats, depending on where Temporal runs.

On one's own server a heartbeat costs next to nothing, and the sooner silence is noticed, the sooner another worker
takes over the step. Temporal Cloud charges each heartbeat as an action. So there the waits, which do little or nothing,
may be silent for longer; steps that act are taken over as fast as everywhere.

The worker that runs a workflow puts the timeouts into its commands: no input carries them, a replay does not compare
them, and workers with different profiles can serve together.
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
        """The class that does it; none if nothing is changed."""
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

"""A worker whose clock is far off takes no step; one whose clock is a little off judges deadlines by the cluster's."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from temporalio.worker import ActivityInboundInterceptor

from dovetail.activities.shared.every_step.step_guard import StepGuard
from dovetail.activities.shared.every_step.temporal_errors import translate
from dovetail.adapters.kube.server_clock import ServerClock
from dovetail.lifecycle.liveness import launch_overdue, registration_overdue
from dovetail.ports.clock import unfit_clock
from dovetail.ports.failures import Retryable
from dovetail.termination.evictions import plan_evictions
from tests.lifecycle.objects import a_web_pod
from worlds.disruption import a_claim


@dataclass
class Skewed:
    seconds: float

    def now(self) -> float:
        return 1000.0

    def ahead(self) -> float:
        return self.seconds


class Inner(ActivityInboundInterceptor):
    def __init__(self) -> None:
        self.ran = 0

    async def execute_activity(self, input: Any) -> Any:
        self.ran += 1
        return "done"


@pytest.mark.parametrize("seconds", [301.0, -301.0, 31.0])
async def test_a_worker_whose_clock_is_far_off_takes_no_step_and_says_why(seconds: float) -> None:
    inner = Inner()
    guarded = StepGuard(lambda: unfit_clock(Skewed(seconds))).intercept_activity(inner)
    way = "ahead of" if seconds > 0 else "behind"

    with pytest.raises(Retryable) as raised:
        await guarded.execute_activity(None)  # type: ignore[arg-type]  # what is asked plays no part

    assert inner.ran == 0
    words = f"worker: no step is taken: the clock of this worker is {abs(seconds):.0f} s {way} the API server's"
    assert str(raised.value) == words
    error: Any = translate(raised.value)
    assert (error.non_retryable, error.next_retry_delay.total_seconds()) == (False, 2.0)


async def test_a_worker_whose_clock_is_a_little_off_works() -> None:
    inner = Inner()
    guarded = StepGuard(lambda: unfit_clock(Skewed(29.0))).intercept_activity(inner)
    assert await guarded.execute_activity(None) == "done"  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize("off", [0.0, 301.0, -301.0, 25.0])
def test_deadlines_are_judged_by_the_clusters_time(off: float) -> None:
    """Five minutes ahead, every fresh claim was overdue before it was launched, and pods were deleted early."""
    server, uptime = 2_000_000.0, 5000.0
    clock = ServerClock(lambda: server + off, lambda: uptime)
    clock.heard(float(int(server)), 0.01)
    now = clock.now()
    claim = replace(a_claim(), created=server - 2.0)
    pod = replace(a_web_pod(), grace_seconds=30)

    assert not launch_overdue(claim, now)
    assert not registration_overdue(claim, now)
    assert plan_evictions((pod,), server + 60.0, now).force == ()
    assert plan_evictions((pod,), server + 25.0, now).force == (pod,)

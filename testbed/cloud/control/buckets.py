"""AWS's token buckets: how many calls of an operation, and how many instances, an account may ask for.

EC2 counts each operation alone, and the instances that launches ask for in one bucket beside that of the calls. A call
that finds too few tokens is refused before anything happens. The world's `rateLimits` has a bucket for an operation,
for all that begin alike (`Describe*`: each of them has one of its own), and for `instances`.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import Call
from testbed.cloud.json_object import Json
from testbed.cloud.state.world import World

INSTANCES: Final = "instances"
# What EC2's guide "Request throttling" says of an account whose limits were never raised.
ORDINARY_ACCOUNT: Final[Json] = {
    "Describe*": {"burst": 100, "perSecond": 20},
    "CreateFleet": {"burst": 50, "perSecond": 5},
    "RunInstances": {"burst": 5, "perSecond": 2},
    "TerminateInstances": {"burst": 100, "perSecond": 5},
    "CreateTags": {"burst": 100, "perSecond": 10},
    "CreateLaunchTemplate": {"burst": 50, "perSecond": 5},
    "DeleteLaunchTemplate": {"burst": 50, "perSecond": 5},
    INSTANCES: {"burst": 1000, "perSecond": 2},
}


class Buckets:
    """What is left of each, for as long as the world's rates stay the same."""

    def __init__(self, world: World, now: Callable[[], float] = time.monotonic) -> None:
        self._world, self._now = world, now
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}
        world.on_change(self._forget)

    def refusal(self, call: Call) -> AwsError | None:
        """EC2's answer to a call that comes too fast; None if there is room for it."""
        limits: Json = self._world["rateLimits"] or {}
        named = next((key for key in (call.operation, _family(call.operation)) if limits.get(key)), None)
        with self._lock:
            enough = named is None or self._take(call.operation, limits[named], 1)
            wanted = launched_by(call)
            if enough and wanted and limits.get(INSTANCES):
                enough = self._take(INSTANCES, limits[INSTANCES], wanted)
        return None if enough else AwsError("RequestLimitExceeded", "Request limit exceeded.", 503)

    def _take(self, key: str, limit: Json, tokens: int) -> bool:
        now, burst = self._now(), float(limit["burst"])
        left, since = self._left.get(key, (burst, now))
        left = min(burst, left + (now - since) * float(limit["perSecond"]))
        enough = left >= tokens
        self._left[key] = (left - tokens if enough else left, now)
        return enough

    def _forget(self, changed: Json) -> None:
        if "rateLimits" in changed:
            with self._lock:
                self._left.clear()


def launched_by(call: Call) -> int:
    """The instances that a call asks for. One that only asks whether it may launches none."""
    if call.params.get("DryRun"):
        return 0
    if call.operation == "CreateFleet":
        return int((call.params.get("TargetCapacitySpecification") or {}).get("TotalTargetCapacity", 0))
    return int(call.params.get("MaxCount", 1)) if call.operation == "RunInstances" else 0


def _family(operation: str) -> str:
    return "Describe*" if operation.startswith("Describe") else operation

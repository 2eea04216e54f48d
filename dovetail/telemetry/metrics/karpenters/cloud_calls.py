"""How long calls to the cloud take, and how they fail, under Karpenter's names (CLD-16).

The composition root wraps it around the ports. Methods have the names of upstream's provider; the label `controller` is
the upstream controller that makes the same call.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from temporalio import activity

from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.ports.cloud import ClassNotReady, Cloud, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Failure
from dovetail.telemetry.metrics.karpenters.catalogue import count, observe
from dovetail.telemetry.metrics.karpenters.controllers import controller_of

T = TypeVar("T")

UNKNOWN = "unknown"  # upstream's label of an error that has no name of its own


class MeasuredCloud:
    """The port Cloud, each call timed and its failures counted."""

    def __init__(self, cloud: Cloud, provider: str) -> None:
        self._cloud, self._provider = cloud, provider

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        return await self._cloud.prepare(claim)

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        pool = claim.labels.get(names.NODE_POOL, "")
        found = await self._timed("Create", lambda: self._cloud.launch(claim, request, token, share), pool)
        if isinstance(found, NoCapacity):
            self._failed("Create", "InsufficientCapacityError", pool)
        elif isinstance(found, ClassNotReady):
            self._failed("Create", "NodeClassNotReadyError", pool)
        elif isinstance(found, LaunchRefused):
            self._failed("Create", UNKNOWN, pool)
        return found

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        return await self._timed("Get", lambda: self._cloud.find(claim_uid=claim_uid, provider_id=provider_id))

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        found = await self._timed("Delete", lambda: self._cloud.terminate(provider_id, claim))
        if found == "gone":
            self._failed("Delete", "NodeClaimNotFoundError")
        return found

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        await self._timed("Reboot", lambda: self._cloud.reboot(provider_id, claim))

    async def list_instances(self) -> tuple[Instance, ...]:
        return await self._timed("List", self._cloud.list_instances)

    async def _timed(self, method: str, call: Callable[[], Awaitable[T]], pool: str = "") -> T:
        began = time.monotonic()
        try:
            return await call()
        except Failure:
            self._failed(method, UNKNOWN, pool)
            raise
        finally:
            observe("cloudprovider_duration_seconds", time.monotonic() - began, self._labels(method))

    def _failed(self, method: str, error: str, pool: str = "") -> None:
        """Count the failure, by upstream's name for it. `pool`: whose node was asked for, where one was."""
        count("cloudprovider_errors_total", {**self._labels(method), "error": error, "nodepool": pool})

    def _labels(self, method: str) -> dict[str, str]:
        step = activity.info().activity_type if activity.in_activity() else ""
        return {"controller": controller_of(step), "method": method, "provider": self._provider}

"""Which zones the cluster's traffic is shifted away from (AWS-155).

Asked every half minute if the setting is on. Nothing is launched into such a zone, and its instances are left alone. If
the cluster was never registered for shifts the start is refused, because the setting would have no effect.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Misconfigured

_log = logging.getLogger(__name__)

POLL_SECONDS: Final = 30.0


class ZonalShift:
    def __init__(self, calls: Calls, cluster: str) -> None:
        self._calls, self._cluster = calls, cluster
        self._arn = ""

    async def zones(self) -> dict[str, float]:
        """Ids of the zones with an applied shift, and when it ends: that counts also if the service is silent by then.
        Misconfigured if the cluster is unknown."""
        if not self._arn:
            answer = await self._calls.call("eks", "DescribeCluster", name=self._cluster)
            self._arn = str(answer["cluster"]["arn"])
        found = await self._calls.attempt("arc-zonal-shift", "GetManagedResource", resourceIdentifier=self._arn)
        if isinstance(found, Denied):
            if found.code in NOT_FOUND:
                raise Misconfigured("ENABLE_ZONAL_SHIFT", f"cluster {self._cluster} is not registered for zonal shifts")
            raise refusal("arc-zonal-shift:GetManagedResource", found)
        ends = ((_end(each), each["awayFrom"]) for each in found.get("zonalShifts") or () if _is_applied(each))
        return {zone: end for end, zone in sorted(ends)}

    async def run(self, take: Callable[[dict[str, float]], object]) -> None:
        """Look until cancelled, handing each answer to `take`."""
        while True:
            try:
                take(await self.zones())
            except Failure as failure:
                _log.warning("zonal shifts cannot be read: %s", failure)
            await asyncio.sleep(POLL_SECONDS)


def _is_applied(shift: Json) -> bool:
    return bool(shift.get("appliedStatus") == "APPLIED")


def _end(shift: Json) -> float:
    ends: Any = shift.get("expiryTime")
    return ends.timestamp() if isinstance(ends, datetime) else float("inf")

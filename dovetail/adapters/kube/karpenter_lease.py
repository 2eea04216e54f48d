"""Whether a Karpenter runs in the same cluster, by the Lease that its leader renews every two seconds.

Two controllers on the same NodeClaims launch two instances for each and disrupt beyond the budgets. A leader that ends
releases its Lease, that of a killed one expires after fifteen seconds; after both we may act.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.requests import Request
from dovetail.model.values.json import Json
from dovetail.model.values.time import time_or_none
from dovetail.ports.failures import Failure, Forbidden

_log = logging.getLogger(__name__)

NAME: Final = "karpenter-leader-election"  # the default of its setting LEADER_ELECTION_NAME
LOOK_SECONDS: Final = 60.0
LOOK_AGAIN_SECONDS: Final = 5.0  # while one runs: as soon as it has ended, we go on
_DEFAULT_DURATION: Final = 15.0
_LATE: Final = 15.0  # a leader that has missed a renewal or two may still act

_REQUEST: Final = Request(
    method="GET",
    path="/apis/coordination.k8s.io/v1/leases",
    subject=f"Lease/{NAME}",
    query={"fieldSelector": f"metadata.name={NAME}"},
)


class KarpenterLease:
    """Looks at the Lease, in any namespace. `expected`: we write nothing, so that a Karpenter may run as well."""

    def __init__(self, client: Client, now: Callable[[], float], *, expected: bool = False) -> None:
        self._client, self._now, self._expected = client, now, expected
        self.holder = ""  # who leads, and where; empty: nobody

    def trouble(self) -> str:
        """Why nothing may be done here; empty if no Karpenter runs."""
        if not self.holder or self._expected:
            return ""
        return f"Karpenter runs in this cluster ({self.holder}): stop it, or stop Dovetail"

    async def look(self) -> None:
        """Look now. If the server cannot be asked, the last answer counts."""
        try:
            answer = await self._client.call(_REQUEST)
        except Forbidden as failure:
            _log.warning("cannot find out whether a Karpenter runs beside this worker: %s", failure)
            return
        except Failure as failure:
            _log.debug("cannot find out whether a Karpenter runs beside this worker: %s", failure)
            return
        holders = [_holder(lease) for lease in answer.body.get("items") or () if self._is_held(lease.get("spec") or {})]
        before, self.holder = self.holder, ", ".join(sorted(holders))
        if self.holder and not before:
            self._log_karpenter()
        elif before and not self.holder:
            _log.info("Karpenter has ended; this worker continues%s", " looking only" if self._expected else "")

    def _log_karpenter(self) -> None:
        if self._expected:
            _log.info("Karpenter runs in this cluster (%s); this worker writes nothing", self.holder)
        else:
            _log.error("%s, or let it only look: --beside-karpenter", self.trouble())

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AGAIN_SECONDS if self.holder else LOOK_SECONDS)
            await self.look()

    def _is_held(self, spec: Json) -> bool:
        renewed = time_or_none(str(spec.get("renewTime") or ""))
        lasts = spec.get("leaseDurationSeconds")
        duration = float(lasts) if isinstance(lasts, int) and lasts > 0 else _DEFAULT_DURATION
        return bool(spec.get("holderIdentity")) and renewed is not None and self._now() < renewed + duration + _LATE


def _holder(lease: Json) -> str:
    return f"{lease['spec']['holderIdentity']} in namespace {lease['metadata'].get('namespace', '')}"

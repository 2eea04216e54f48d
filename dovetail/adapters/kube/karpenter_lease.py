"""Whether a Karpenter runs in the same cluster, by the Lease that its leader renews every two seconds.

Two controllers on the same NodeClaims launch two instances for each and disrupt beyond the budgets. A leader that ends
releases its Lease, that of a killed one expires after fifteen seconds; after both we may act.

Who may `edit` a namespace may write a Lease of any name there, and would stop every worker with it. So only the
namespaces count in which a Karpenter is installed and that no tenant has. One held elsewhere is logged, no more.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.paging import list_all
from dovetail.model.names import SYSTEM_NAMESPACE
from dovetail.model.values.json import Json
from dovetail.model.values.listing import shown
from dovetail.model.values.time import time_or_none
from dovetail.ports.failures import Failure, Forbidden

_log = logging.getLogger(__name__)

NAME: Final = "karpenter-leader-election"  # the default of its setting LEADER_ELECTION_NAME
NAMESPACES: Final = frozenset({SYSTEM_NAMESPACE, "karpenter"})  # where its guides install it
LOOK_SECONDS: Final = 60.0
LOOK_AGAIN_SECONDS: Final = 5.0  # while one runs: as soon as it has ended, we go on; and while it cannot be seen
_DEFAULT_DURATION: Final = 15.0
_LONGEST: Final = 300.0  # no leader asks for more: nobody could take over for that long
_LATE: Final = 15.0  # a leader that has missed a renewal or two may still act
_AHEAD: Final = 60.0  # as far as a leader's clock may be ahead of the API server's
_NAMED: Final = 3  # of the namespaces in a line

_PATH: Final = "/apis/coordination.k8s.io/v1/leases"
_NAMED_SO: Final = {"fieldSelector": f"metadata.name={NAME}"}


class KarpenterLease:
    """Looks at the Lease. `own`: further namespaces that count, ours and the one that a setting names. `expected`: we
    write nothing, so that a Karpenter may run as well."""

    def __init__(self, client: Client, now: Callable[[], float], *, own: Iterable[str], expected: bool) -> None:
        self._client, self._now, self._expected = client, now, expected
        self._namespaces = NAMESPACES.union(own) - {""}
        self.holder = ""  # who leads, and where; empty: nobody
        self._unanswered = "it has not been looked yet"  # why nothing is known; empty once there was an answer
        self._refused = ""  # by whom we may not look; that stops nobody, but is no answer
        self._elsewhere: tuple[str, ...] = ()

    def trouble(self) -> str:
        """Why nothing may be done here; empty if no Karpenter runs, or if we lack the right to see one."""
        if self._expected:
            return ""
        if self._unanswered:
            return f"it is not known yet whether Karpenter runs in this cluster: {self._unanswered}"
        if not self.holder:
            return ""
        return f"Karpenter runs in this cluster ({self.holder}): stop it, or stop Dovetail"

    def elsewhere(self) -> str:
        """The namespaces that do not count in which such a Lease is held; empty if there are none. Where we may not
        look, that instead."""
        if self._refused:
            return f"whether Karpenter runs in this cluster cannot be seen: {self._refused}"
        if not self._elsewhere:
            return ""
        counted = ", ".join(sorted(self._namespaces))
        where = shown(self._elsewhere, _NAMED)
        return f"a Lease {NAME} is held in namespace {where}, and stops nobody: only those in {counted} do"

    async def look(self) -> None:
        """Look now. If the server cannot be asked, or nobody knows the time, the last answer counts; until the first
        there is nothing to go by, and we stand aside."""
        try:
            leases = [lease async for lease in list_all(self._client, _PATH, f"Lease/{NAME}", _NAMED_SO)]
            held = [lease for lease in leases if self._is_held(lease.get("spec") or {})]
        except Forbidden as failure:
            if str(failure) != self._refused:
                _log.warning("cannot find out whether a Karpenter runs beside this worker: %s", failure)
            # Believed at the second look: a server that has just started may refuse what it grants a moment later.
            self._unanswered = "" if self._refused else self._unanswered and str(failure)
            self._refused = str(failure)
            return
        except Failure as failure:
            level = logging.WARNING if self._unanswered else logging.DEBUG
            _log.log(level, "cannot find out whether a Karpenter runs beside this worker: %s", failure)
            self._unanswered = self._unanswered and str(failure)
            return
        self._unanswered = self._refused = ""
        self._log_elsewhere({_namespace(lease) for lease in held} - self._namespaces)
        holders = [_holder(lease) for lease in held if _namespace(lease) in self._namespaces]
        before, self.holder = self.holder, ", ".join(sorted(holders))
        if self.holder and not before:
            self._log_karpenter()
        elif before and not self.holder:
            _log.info("Karpenter has ended; this worker continues%s", " looking only" if self._expected else "")

    def _log_elsewhere(self, namespaces: set[str]) -> None:
        before, self._elsewhere = self._elsewhere, tuple(sorted(namespaces))
        if self._elsewhere and self._elsewhere != before:
            _log.warning("%s; where a Karpenter does run there, name it in LEADER_ELECTION_NAMESPACE", self.elsewhere())

    def _log_karpenter(self) -> None:
        if self._expected:
            _log.info("Karpenter runs in this cluster (%s); this worker writes nothing", self.holder)
        else:
            _log.error("%s, or let it only look: --beside-karpenter", self.trouble())

    async def keep(self) -> None:
        while True:
            is_open = self.holder or self._unanswered or self._refused
            await asyncio.sleep(LOOK_AGAIN_SECONDS if is_open else LOOK_SECONDS)
            await self.look()

    def _is_held(self, spec: Json) -> bool:
        renewed = time_or_none(str(spec.get("renewTime") or ""))
        lasts = spec.get("leaseDurationSeconds")
        duration = float(lasts) if isinstance(lasts, int) and lasts > 0 else _DEFAULT_DURATION
        if not spec.get("holderIdentity") or renewed is None or duration > _LONGEST:
            return False
        return renewed - _AHEAD <= self._now() < renewed + duration + _LATE


def _namespace(lease: Json) -> str:
    return str(lease["metadata"].get("namespace", ""))


def _holder(lease: Json) -> str:
    return f"{lease['spec']['holderIdentity']} in namespace {_namespace(lease)}"

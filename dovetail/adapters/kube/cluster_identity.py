"""Which cluster this is, by the UID of its namespace kube-system: created with the cluster, kept by a restored etcd,
and different in every other cluster, whatever its name.

Read when the cluster is opened, and checked again while it is served: another cluster may one day answer at the same
address, and the work in hand is not for that one.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.failures import NOT_FOUND
from dovetail.adapters.kube.requests import Request
from dovetail.ports.failures import Failure, NotReadable

_log = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
LOOK_SECONDS: Final = 60.0

_REQUEST: Final = Request(
    method="GET",
    path=f"/api/v1/namespaces/{NAMESPACE}",
    subject=f"Namespace/{NAMESPACE}, whose UID names the cluster",
    expected=frozenset({NOT_FOUND}),  # a gateway's is no answer
)


class ClusterIdentity:
    """The UID as first read, and whether it is still the same."""

    def __init__(self, client: Client, subject: str = _REQUEST.subject) -> None:
        self._client, self._request = client, replace(_REQUEST, subject=subject)
        self.uid = ""
        self._now = ""

    async def read(self) -> str:
        """The UID, which must stay the same from now on."""
        self.uid = self._now = await self._ask()
        return self.uid

    def trouble(self) -> str:
        """Why nothing may be done here; empty if the cluster is the one that was opened."""
        if self._now == self.uid:
            return ""
        return f"the API server is of another cluster ({self._now}) than when this worker started ({self.uid})"

    async def look(self) -> None:
        """Look now. If the server cannot be asked, the last answer counts."""
        try:
            found = await self._ask()
        except Failure as failure:
            _log.debug("cannot find out whether this is still the same cluster: %s", failure)
            return
        if found != self._now:
            self._now = found
            _log.error("%s", self.trouble() or "the API server is of the right cluster again")

    async def keep(self) -> None:
        """Look again and again until cancelled, once there is a UID to compare with."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self.uid:
                await self.look()

    async def _ask(self) -> str:
        answer = await self._client.call(self._request)
        uid = (answer.body.get("metadata") or {}).get("uid")
        if not isinstance(uid, str) or not uid:
            raise NotReadable(f"Namespace/{NAMESPACE}", "it has no metadata.uid, which names the cluster")
        return uid

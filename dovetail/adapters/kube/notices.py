"""Kubernetes Events for people.

Asked through the port Notices by every step that has something to tell. What was said within its window is not said
again (V-0: remembered in memory, forgotten with the process); what cannot be written is logged. The trap avoided: a
step that fails because its explanation could not be published.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any, Final

from dovetail.adapters.kube.client import Client, Request
from dovetail.model.notice import Notice
from dovetail.model.pod_rules import format_moment
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

COMPONENT: Final = "karpenter"

_AT_ONCE: Final = 10
_REMEMBERED: Final = 50_000  # one plan may speak of every pod; beyond this, what has run out is forgotten
_LONGEST_MESSAGE: Final = 1024  # the API server refuses longer ones

_API_VERSIONS: Final = {
    "Pod": "v1",
    "Node": "v1",
    "NodeClaim": "karpenter.sh/v1",
    "NodePool": "karpenter.sh/v1",
    "EC2NodeClass": "karpenter.k8s.aws/v1",
}

Key = tuple[str, str, str, str, str, str]


class KubeNotices:
    """Events on the API server."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._said: dict[Key, float] = {}  # until when it is not said again
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def publish(self, *notices: Notice) -> None:
        now = self._clock()
        await asyncio.gather(*[self._write(notice, now) for notice in notices if self._is_new(notice, now)])

    def _is_new(self, notice: Notice, now: float) -> bool:
        key = (notice.reason.lower(), notice.kind, notice.namespace, notice.name, notice.uid, notice.distinct)
        if self._said.get(key, 0.0) > now:
            return False
        if len(self._said) >= _REMEMBERED:
            self._said = {k: until for k, until in self._said.items() if until > now}
        self._said[key] = now + notice.window
        return True

    async def _write(self, notice: Notice, now: float) -> None:
        namespace = notice.namespace or "default"
        request = Request(
            method="POST",
            path=f"/api/v1/namespaces/{namespace}/events",
            subject=f"Event/{notice.reason} of {notice.kind}/{notice.name}",
            body=render_event(notice, namespace, now),
        )
        try:
            async with self._slots:
                await self._client.call(request)
        except Failure as failure:
            _log.warning("not published: %s (%s)", failure, notice.message)


def render_event(notice: Notice, namespace: str, now: float) -> dict[str, Any]:
    """A core/v1 Event as upstream's recorder writes it."""
    moment = format_moment(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{notice.name[:200]}.{secrets.token_hex(8)}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": _API_VERSIONS.get(notice.kind, ""),
            "kind": notice.kind,
            "name": notice.name,
            "namespace": notice.namespace,
            "uid": notice.uid,
        },
        "reason": notice.reason,
        "message": notice.message[:_LONGEST_MESSAGE],
        "type": notice.type,
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    }

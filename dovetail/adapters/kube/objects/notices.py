"""Notices, published as Kubernetes Events.

A notice that was published within its window is not published again (EVT-0). What cannot be published is logged: no
step fails because its explanation could not be written.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from dovetail.adapters.kube.client import Client, Request
from dovetail.adapters.kubernetes_json.rendering.events import RecentNotices, namespace_of, render_event
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.notice import Notice
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 10


class KubeNotices:
    """Events on the API server."""

    def __init__(
        self, client: Client, clock: Callable[[], float] = time.time, node_classes: Iterable[Kind] = ()
    ) -> None:
        self._client = client
        self._class_versions = {kind.name: kind.api_version for kind in node_classes}
        self._clock = clock
        self._recent = RecentNotices()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def publish(self, *notices: Notice) -> None:
        now = self._clock()
        await asyncio.gather(*[self._write(notice, now) for notice in notices if self._recent.is_new(notice, now)])

    async def _write(self, notice: Notice, now: float) -> None:
        request = Request(
            method="POST",
            path=f"/api/v1/namespaces/{namespace_of(notice)}/events",
            subject=f"Event/{notice.reason} of {notice.kind}/{notice.name}",
            body=render_event(notice, now, self._class_versions),
        )
        try:
            async with self._slots:
                await self._client.call(request)
        except Failure as failure:
            _log.warning("not published: %s (%s)", failure, notice.message)

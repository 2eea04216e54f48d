"""Notices, published as Kubernetes Events.

A notice that was published within its window is not published again (EVT-0), and one that was published before counts
its Event up (EVT-0). What cannot be published is logged: no
step fails because its explanation could not be written.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from dovetail.adapters.kube.client import Client, Request
from dovetail.adapters.kubernetes_json.rendering.correlating import Correlator, Key, Told
from dovetail.adapters.kubernetes_json.rendering.events import (
    RecentNotices,
    namespace_of,
    render_again,
    render_event,
)
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
        self._correlator = Correlator()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def publish(self, *notices: Notice) -> None:
        now = self._clock()
        waiting: dict[Key, list[tuple[Notice, Told]]] = {}
        for notice in notices:
            told = self._correlator.told(notice, now) if self._recent.is_new(notice, now) else None
            if told is not None:
                waiting.setdefault(told.key, []).append((notice, told))
        await asyncio.gather(*[self._write_all(of_one, now) for of_one in waiting.values()])

    async def _write_all(self, of_one: list[tuple[Notice, Told]], now: float) -> None:
        """One after the other what goes into one Event."""
        for notice, told in of_one:
            try:
                async with self._slots:
                    if told.count == 1 or not await self._count_up(notice, told, now):
                        await self._create(notice, told, now)
            except Failure as failure:
                self._correlator.failed(told)
                _log.warning("not published: %s (%s)", failure, notice.message)

    async def _count_up(self, notice: Notice, told: Told, now: float) -> bool:
        """False where the Event is gone."""
        reply = await self._client.call(
            Request(
                method="PATCH",
                path=f"/api/v1/namespaces/{namespace_of(notice)}/events/{told.name}",
                subject=_subject(notice),
                body=render_again(told, now),
                expected=frozenset({404}),
            )
        )
        return reply.status != 404

    async def _create(self, notice: Notice, told: Told, now: float) -> None:
        if told.count > 1:
            told = self._correlator.renamed(notice, told)
        await self._client.call(
            Request(
                method="POST",
                path=f"/api/v1/namespaces/{namespace_of(notice)}/events",
                subject=_subject(notice),
                body=render_event(notice, told, now, self._class_versions),
            )
        )


def _subject(notice: Notice) -> str:
    return f"Event/{notice.reason} of {notice.kind}/{notice.name}"

"""Notices, published as Kubernetes Events.

A notice that was published within its window is not published again (EVT-0), and one that was published before
increments its Event's count (EVT-0). What cannot be published is logged: no step fails because its explanation could
not be written.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from dovetail.adapters.kube.requests import Caller, Request
from dovetail.adapters.kubernetes_json.rendering.correlating import Correlator, EventState, Key
from dovetail.adapters.kubernetes_json.rendering.events import (
    RecentNotices,
    namespace_of,
    render_again,
    render_event,
)
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 10


class KubeNotices:
    def __init__(self, client: Caller, clock: Callable[[], float], node_classes: Iterable[Kind]) -> None:
        self._client = client
        self._class_versions = {kind.name: kind.api_version for kind in node_classes}
        self._clock = clock
        self._recent = RecentNotices()
        self._correlator = Correlator()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def publish(self, *notices: Notice) -> None:
        now = self._clock()
        waiting: dict[Key, list[tuple[Notice, EventState]]] = {}
        for notice in notices:
            event = self._correlator.correlated(notice, now) if self._recent.is_new(notice, now) else None
            if event is not None:
                waiting.setdefault(event.key, []).append((notice, event))
        await asyncio.gather(*[self._write_all(of_one, now) for of_one in waiting.values()])

    async def _write_all(self, of_one: list[tuple[Notice, EventState]], now: float) -> None:
        """Write what belongs to one Event, one after the other."""
        for notice, event in of_one:
            try:
                async with self._slots:
                    if event.count == 1 or not await self._count_up(notice, event, now):
                        await self._create(notice, event, now)
            except Failure as failure:
                self._correlator.failed(event)
                _log.warning("not published: %s (%s)", failure, notice.message)

    async def _count_up(self, notice: Notice, event: EventState, now: float) -> bool:
        """False if the Event is gone."""
        reply = await self._client.call(
            Request(
                method="PATCH",
                path=f"/api/v1/namespaces/{namespace_of(notice)}/events/{event.name}",
                subject=_subject(notice),
                body=render_again(event, now),
                expected=frozenset({404}),
            )
        )
        return reply.status != 404

    async def _create(self, notice: Notice, event: EventState, now: float) -> None:
        if event.count > 1:
            event = self._correlator.renamed(notice, event)
        await self._client.call(
            Request(
                method="POST",
                path=f"/api/v1/namespaces/{namespace_of(notice)}/events",
                subject=_subject(notice),
                body=render_event(notice, event, now, self._class_versions),
            )
        )


def _subject(notice: Notice) -> str:
    return f"Event/{notice.reason} of {notice.kind}/{notice.name}"

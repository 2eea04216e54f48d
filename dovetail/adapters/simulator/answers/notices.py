"""The port Notices over the simulated cluster: Events for people, each published once within its window (EVT-0).

What cannot be published is logged: no step fails because its explanation could not be written.
"""

import logging

from dovetail.adapters.kubernetes_json.rendering.correlating import Correlator, EventState
from dovetail.adapters.kubernetes_json.rendering.events import (
    RecentNotices,
    namespace_of,
    render_again,
    render_event,
)
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud.node_classes import CLASS_VERSIONS
from dovetail.model.values.json import Json
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)


class SimulatedNotices:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._recent = RecentNotices()
        self._correlator = Correlator()

    async def publish(self, *notices: Notice) -> None:
        for notice in notices:
            now = self._calls.clock()
            event = self._correlator.correlated(notice, now) if self._recent.is_new(notice, now) else None
            if event is not None:
                await self._write(notice, event)

    async def _write(self, notice: Notice, event: EventState) -> None:
        key = f"{namespace_of(notice)}/{event.name}"

        def write(cluster: Cluster) -> Json:
            if event.count > 1 and cluster.read("Event", key) is not None:
                return cluster.patch("Event", key, render_again(event, cluster.now))
            return cluster.create(render_event(notice, event, cluster.now, CLASS_VERSIONS))

        try:
            await self._calls.cluster("create", f"Event/{notice.reason}", write)
        except (Failure, Rejected) as error:
            self._correlator.failed(event)
            _log.warning("not published: %s of %s %s: %s", notice.reason, notice.kind, notice.name, error)

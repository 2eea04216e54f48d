"""The port Notices over the simulated cluster: Events for people, each published once within its window (EVT-0).

What cannot be published is logged: no step fails because its explanation could not be written.
"""

import logging

from dovetail.adapters.kubernetes_json.rendering.events import RecentNotices, render_event
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud.node_classes import CLASS_VERSIONS
from dovetail.model.notice import Notice
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)


class SimulatedNotices:
    """Events in the file."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._recent = RecentNotices()

    async def publish(self, *notices: Notice) -> None:
        for notice in notices:
            if self._recent.is_new(notice, self._calls.clock()):
                await self._write(notice)

    async def _write(self, notice: Notice) -> None:
        try:
            await self._calls.cluster(
                "create",
                f"Event/{notice.reason}",
                lambda cluster: cluster.create(render_event(notice, cluster.now, CLASS_VERSIONS)),
            )
        except (Failure, Rejected) as error:
            _log.warning("not published: %s of %s %s: %s", notice.reason, notice.kind, notice.name, error)

"""The port Notices over the embedded cluster: Events for people, each said once within its window (V-0).

What was said is remembered in memory and forgotten with the process, as on a real cluster. The trap avoided: a step
that fails because nobody could be told.
"""

import logging
from typing import Final

from dovetail.adapters.kube.notices import render_event
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls
from dovetail.model.notice import Notice
from dovetail.ports.failures import Failure

_log = logging.getLogger(__name__)

# One plan may speak of every pod; beyond this, what has run out is forgotten.
_REMEMBERED: Final = 50_000

Key = tuple[str, str, str, str, str, str]


class EmbeddedNotices:
    """Where notices go."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._said: dict[Key, float] = {}  # until when it is not said again

    async def publish(self, *notices: Notice) -> None:
        for notice in notices:
            if self._is_new(notice):
                await self._write(notice)

    def _is_new(self, notice: Notice) -> bool:
        now = self._calls.clock()
        key = (notice.reason.lower(), notice.kind, notice.namespace, notice.name, notice.uid, notice.distinct)
        if self._said.get(key, 0.0) > now:
            return False
        if len(self._said) >= _REMEMBERED:
            self._said = {k: until for k, until in self._said.items() if until > now}
        self._said[key] = now + notice.window
        return True

    async def _write(self, notice: Notice) -> None:
        namespace = notice.namespace or "default"
        try:
            await self._calls.cluster(
                "create",
                f"Event/{notice.reason}",
                lambda cluster: cluster.create(render_event(notice, namespace, cluster.now)),
            )
        except (Failure, Rejected) as error:
            _log.warning("could not say %s of %s %s: %s", notice.reason, notice.kind, notice.name, error)

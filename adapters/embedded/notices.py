"""The port Notices over the embedded cluster: Events for people, each said once within its window (V-0).

Asked by every step that tells a person something. What was said is looked up among the Events themselves, so that a
restart does not say it again. The trap avoided: a step that fails because nobody could be told.
"""

import hashlib
import logging

from adapters.embedded import objects
from adapters.embedded.calls import Calls
from adapters.embedded.cluster import Cluster
from adapters.embedded.rejected import Rejected
from adapters.kube.parsing.times import parse_time
from core.model.pod_rules import format_moment
from ports.failures import Failure
from ports.objects import Notice

_log = logging.getLogger(__name__)


class EmbeddedNotices:
    """Where notices go."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def publish(self, *notices: Notice) -> None:
        for notice in notices:
            subject = f"Event/{notice.kind}/{notice.name}"
            try:
                await self._calls.cluster("create", subject, lambda cluster, n=notice: _say(cluster, n))  # type: ignore[misc]
            except (Failure, Rejected) as error:
                _log.warning("could not publish %s on %s %s: %s", notice.reason, notice.kind, notice.name, error)


def _say(cluster: Cluster, notice: Notice) -> None:
    body = _event(notice, cluster.now)
    key = objects.key_of(body)
    earlier = cluster.read("Event", key)
    if earlier is None:
        cluster.create(body)
    elif cluster.now - parse_time(earlier["lastTimestamp"]) >= notice.window:
        patch = {"message": notice.message, "lastTimestamp": format_moment(cluster.now), "count": earlier["count"] + 1}
        cluster.patch("Event", key, patch)


def _event(notice: Notice, now: float) -> objects.Body:
    """An Event whose name is made of what makes it the same Event."""
    sameness = "\n".join((notice.kind, notice.namespace, notice.name, notice.uid, notice.reason, notice.distinct))
    name = f"{notice.name}.{hashlib.sha256(sameness.encode()).hexdigest()[:16]}"
    involved = {"kind": notice.kind, "name": notice.name, "namespace": notice.namespace, "uid": notice.uid}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": notice.namespace or "default"},
        "involvedObject": involved,
        "type": notice.type,
        "reason": notice.reason,
        "message": notice.message,
        "firstTimestamp": format_moment(now),
        "lastTimestamp": format_moment(now),
        "count": 1,
        "source": {"component": "karpenter"},
    }

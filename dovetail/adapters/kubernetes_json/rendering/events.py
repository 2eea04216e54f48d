"""Kubernetes Events: how a notice is written, and which notices were published too recently to be published again."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from dovetail.adapters.kubernetes_json.rendering.correlating import EventState
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.notices.notice import Notice

COMPONENT: Final = "karpenter"

_REMEMBERED: Final = 50_000  # one plan may speak of every pod; beyond this the oldest notice is forgotten
_FORGETTING_SECONDS: Final = 1.0  # between two looks for windows that have ended: each takes milliseconds
_LONGEST_MESSAGE: Final = 1024  # the API server refuses longer ones

_API_VERSIONS: Final = {
    "Pod": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "Node": "v1",
    "NodeClaim": "karpenter.sh/v1",
    "NodePool": "karpenter.sh/v1",
    "NodeRollout": "dovetail.sh/v1alpha1",
}

_Key = tuple[str, str, str, str, str, str]


class RecentNotices:
    """What was published within its window (EVT-0). Kept in memory, bounded, and forgotten with the process."""

    def __init__(self) -> None:
        self._until: OrderedDict[_Key, float] = OrderedDict()  # the end of each notice's window, oldest notice first
        self._forgot = float("-inf")

    def is_new(self, notice: Notice, now: float) -> bool:
        """Whether to publish a notice now; it then counts as published."""
        key = (notice.reason.lower(), notice.kind, notice.namespace, notice.name, notice.uid, notice.distinct)
        if self._until.get(key, 0.0) > now:
            return False
        self._until.pop(key, None)
        self._until[key] = now + notice.window
        if len(self._until) > _REMEMBERED:
            self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        """What has ended, once a second; then the oldest."""
        if abs(now - self._forgot) >= _FORGETTING_SECONDS:
            self._forgot = now
            self._until = OrderedDict((k, until) for k, until in self._until.items() if until > now)
        while len(self._until) > _REMEMBERED:
            self._until.popitem(last=False)


def namespace_of(notice: Notice) -> str:
    """The namespace that its Event is stored in: the object's own, or default for objects without a namespace."""
    return notice.namespace or "default"


def render_event(notice: Notice, event: EventState, now: float, class_versions: Mapping[str, str]) -> Json:
    """A core/v1 Event as upstream's recorder writes it. `class_versions`: the API version of each kind of NodeClass."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": namespace_of(notice)},
        "involvedObject": {
            "apiVersion": _API_VERSIONS.get(notice.kind) or class_versions.get(notice.kind, ""),
            "kind": notice.kind,
            "name": notice.name,
            "namespace": notice.namespace,
            "uid": notice.uid,
        },
        "reason": notice.reason,
        **render_again(event, now),
        "type": notice.type,
        "firstTimestamp": format_time(event.first),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    }


def render_again(event: EventState, now: float) -> Json:
    """The changed fields of a repeated Event."""
    return {"message": event.message[:_LONGEST_MESSAGE], "count": event.count, "lastTimestamp": format_time(now)}

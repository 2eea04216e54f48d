"""What a decision tells people, made ready to publish.

Core names an object by kind and name; an Event also wants its namespace and UID.
"""

from collections.abc import Mapping
from typing import Any, Final

from dovetail.model.notice import Notice
from dovetail.model.snapshot import Snapshot
from dovetail.notices import decisions as core_notices

# How long the same words about the same object are not repeated, where upstream has its own window (section 3).
WINDOWS: Final = {"Unconsolidatable": 900.0, "NoCompatibleInstanceTypes": 60.0, "FailedScheduling": 300.0}
POOL_WINDOW: Final = 60.0
DEFAULT_WINDOW: Final = 120.0


def publishable(snapshot: Snapshot, notice: core_notices.Notice) -> Notice:
    """The same, with the object's namespace and UID."""
    namespace, _, name = notice.name.rpartition("/")
    window = POOL_WINDOW if notice.kind == "NodePool" else WINDOWS.get(notice.reason, DEFAULT_WINDOW)
    return Notice(
        kind=notice.kind,
        namespace=namespace,
        name=name,
        uid=_uid(snapshot, notice.kind, notice.name),
        type="Warning" if notice.type == "Warning" else "Normal",
        reason=notice.reason,
        message=notice.message,
        distinct=notice.message,
        window=window,
    )


def _uid(snapshot: Snapshot, kind: str, name: str) -> str:
    if kind == "Pod":
        return next((uid for uid, pod in snapshot.pods.items() if pod.key == name), "")
    objects: Mapping[str, Mapping[str, Any]] = {
        "Node": snapshot.nodes,
        "NodeClaim": snapshot.claims,
        "NodePool": snapshot.pools,
    }
    found = objects.get(kind, {}).get(name)
    return str(found.uid) if found is not None else ""

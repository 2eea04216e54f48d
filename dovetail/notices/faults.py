"""The notices about objects that are set aside: those that cannot be read, and those that cannot be judged."""

from collections.abc import Iterable, Iterator
from typing import Final

from dovetail.model.objects.judging import Unjudged
from dovetail.model.objects.unreadable import Unreadable
from dovetail.notices.notice import Notice

WINDOW: Final = 900.0
MOST: Final = 50  # of one decision: a person who can create one such object can create a thousand

# Kinds that an Event can be about. A step of ours is not an object, and a virtual pod does not exist.
_KINDS: Final = frozenset(
    {
        "Pod",
        "Node",
        "NodeClaim",
        "NodePool",
        "NodeOverlay",
        "CapacityBuffer",
        "DaemonSet",
        "PodDisruptionBudget",
        "PersistentVolumeClaim",
        "VolumeAttachment",
    }
)


def unjudged_notices(faults: Iterable[Unjudged]) -> Iterator[Notice]:
    """A notice for each object that a decision could not judge."""
    named = [fault for fault in faults if fault.kind in _KINDS]
    for fault in named[:MOST]:
        message = f"Left out of decisions, cannot be judged ({fault.step}): {fault.message}"
        yield _notice(fault.kind, fault.name, fault.uid, "CannotBeJudged", message)


def unreadable_notices(faults: Iterable[Unreadable]) -> Iterator[Notice]:
    """A notice for each object that cannot be read."""
    named = [fault for fault in faults if fault.kind in _KINDS]
    for fault in named[:MOST]:
        message = f"Left out of decisions, cannot be read: {fault.field}: {fault.message}"
        yield _notice(fault.kind, fault.name, fault.uid, "CannotBeRead", message)


def _notice(kind: str, name: str, uid: str, reason: str, message: str) -> Notice:
    namespace, _, own = name.rpartition("/")
    return Notice(
        kind=kind,
        namespace=namespace,
        name=own,
        uid=uid,
        type="Warning",
        reason=reason,
        message=message,
        distinct=uid,
        window=WINDOW,
    )

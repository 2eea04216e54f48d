"""An answer about the whole cluster that is recomputed only when an object that it depends on has changed.

Most looks are made because a pod has come or gone, and most questions are about NodeClaims and Nodes. A kubelet's
heartbeat does not count as a change. The answer must depend on nothing else: neither on the time nor on the versions of
the objects.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.snapshot import Snapshot

T = TypeVar("T")


class LastAnswer(Generic[T]):
    """The last answer, for the snapshots of one view as it gives them."""

    def __init__(self, kinds: Kinds, question: Callable[[Snapshot], T]) -> None:
        self._kinds, self._question = kinds, question
        self._last: tuple[tuple[object, ...], T] | None = None

    def of(self, snapshot: Snapshot) -> T:
        version = snapshot.version_of(self._kinds)
        if self._last is not None and version == self._last[0]:
            return self._last[1]
        answer = self._question(snapshot)
        self._last = None if version is None else (version, answer)
        return answer

"""Which of thousands of drafts have room for this much at all?

Asked once several drafts in a row have refused a pod, as happens when every pod has a different size. The bound is
coarse (the largest type of a draft's state, minus what is used): it may include a draft without room, but never omits
one that has room. Like the masks of existing nodes it is computed with numpy, which is faster here than integers.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.placement.facts.masks import bits, mask_of
from dovetail.placement.facts.states import State
from dovetail.placement.search.node_draft import NodeDraft

_LARGEST = 2**62


class Headroom:
    """An upper bound of what is left on each draft, updated when asked for."""

    def __init__(self) -> None:
        self.changed: set[int] = set()  # drafts that gained pods or lost possible types
        self._most: dict[State, list[int]] = {}
        self._room: np.ndarray[tuple[int, int], np.dtype[np.int64]] = np.zeros((0, 0), dtype=np.int64)

    def _left(self, draft: NodeDraft) -> list[int]:
        most = self._most.get(draft.state)
        if most is None:
            fit = draft.template.fit
            room = [fit.room[row] for row in bits(draft.state.rows & fit.valid)]
            columns = zip(*room, strict=True) if room else ([0] * len(draft.used) for _ in draft.used)
            most = self._most[draft.state] = [min(max(column), _LARGEST) for column in columns]
        return [have - want for have, want in zip(most, draft.used, strict=True)]

    def with_room(self, wanted: tuple[int, ...], drafts: Sequence[NodeDraft]) -> int:
        if len(self._room) < len(drafts):
            grown = np.full((2 * len(drafts), len(wanted)), -1, dtype=np.int64)
            grown[: len(self._room)] = self._room if len(self._room) else grown[:0]
            self._room = grown
        if self.changed:
            numbers = list(self.changed)
            self._room[numbers] = [self._left(drafts[number]) for number in numbers]
            self.changed.clear()
        row = np.array([min(amount, _LARGEST) for amount in wanted], dtype=np.int64)
        fits = (self._room[: len(drafts)] >= row).all(axis=1)
        return mask_of(fits)

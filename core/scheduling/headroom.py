"""Which of thousands of claims have room for this much at all?

Asked when a pod was refused by several claims in a row, as happens when every pod has a size of its own. The bound is
coarse (the largest type of a claim's state, minus what is used) and only ever too generous. This is one of two places
where numpy is faster than plain integers.
"""

import numpy as np

from core.scheduling.states import State
from core.scheduling.templates import Template
from core.scheduling.type_table import bits

_LARGEST = 2**62


class Headroom:
    """An upper bound of what is left on each claim; brought up to date when it is asked for."""

    def __init__(self) -> None:
        self._changed: dict[int, list[int]] = {}
        self._most: dict[State, list[int]] = {}
        self._room: np.ndarray[tuple[int, int], np.dtype[np.int64]] | None = None
        self._count = 0

    def update(self, claim: int, template: Template, state: State, used: list[int]) -> None:
        """The claim has this state and uses this much now."""
        most = self._most.get(state)
        if most is None:
            room = [template.fit.room[row] for row in bits(state.rows & template.fit.valid)]
            columns = zip(*room, strict=True) if room else ([0] * len(used) for _ in used)
            most = self._most[state] = [min(max(column), _LARGEST) for column in columns]
        self._changed[claim] = [have - want for have, want in zip(most, used, strict=True)]
        self._count = max(self._count, claim + 1)

    def _grown(self, width: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        old = self._room
        if old is not None and len(old) >= self._count:
            return old
        room = np.full((max(64, 2 * self._count), width), -1, dtype=np.int64)
        if old is not None:
            room[: len(old)] = old
        self._room = room
        return room

    def with_room(self, wanted: tuple[int, ...]) -> int:
        """The claims that may have room."""
        room = self._grown(len(wanted))
        if self._changed:
            room[list(self._changed)] = list(self._changed.values())
            self._changed = {}
        row = np.array([min(amount, _LARGEST) for amount in wanted], dtype=np.int64)
        fits = (room[: self._count] >= row).all(axis=1)
        return int.from_bytes(np.packbits(fits, bitorder="little").tobytes(), "little")

"""Which is the cheapest choice that suits and holds? Asked of very many nodes at once.

Choices are bits, the cheapest one lowest. For each amount of a resource that some choice has, the choices that have as
much are kept as bits; the answer is the lowest bit of what all resources and all needs leave.
"""

import numpy as np

from dovetail.placement.cost.problem import Flags, Floats, Integers

Bits = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
SLACK = 1e-9
_WORD = 64


def as_bits(flags: Flags) -> Bits:
    """The last axis in words of 64."""
    packed = np.packbits(flags, axis=-1, bitorder="little")
    missing = -packed.shape[-1] % (_WORD // 8)
    padded = np.pad(packed, [*[(0, 0)] * (packed.ndim - 1), (0, missing)])
    found: Bits = np.ascontiguousarray(padded).view("<u8").astype(np.uint64, copy=False)
    return found


class Cheapest:
    """The choices of a problem by the room that they have, the cheapest first."""

    def __init__(self, rooms: Floats) -> None:
        self.choices = len(rooms)
        self._amounts = [np.unique(column) for column in rooms.T]
        self._holding = [  # a last row for what no choice holds
            np.concatenate([as_bits(column[None, :] >= amounts[:, None]), as_bits(np.zeros((1, len(rooms)), bool))])
            for column, amounts in zip(rooms.T, self._amounts, strict=True)
        ]

    def first(self, suiting: Bits, wanted: Floats) -> tuple[Flags, Integers]:
        """Whether any of the suiting choices holds the amounts, and the first that does."""
        holding = suiting
        for resource, (amounts, bits) in enumerate(zip(self._amounts, self._holding, strict=True)):
            holding = holding & bits[amounts.searchsorted(wanted[..., resource] - SLACK)]
        words = holding.reshape(-1, holding.shape[-1])
        word = (words != 0).argmax(axis=1)
        lowest = words[np.arange(len(words)), word]
        first = word * _WORD + np.bitwise_count((lowest - np.uint64(1)) & ~lowest)
        shape = holding.shape[:-1]
        return (lowest != 0).reshape(shape), first.reshape(shape)

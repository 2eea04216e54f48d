"""Sets of nodes, drafts and rows of types are kept as the bits of an integer.

An AND over 400 bits takes 22 ns, a tenth of what numpy's smallest operation takes. Where numpy works out the flags,
they become an integer at once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np


def mask_of(flags: "np.ndarray[Any, np.dtype[np.bool_]] | np.bool_") -> int:
    """The numbers whose flag is set."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def bits(mask: int) -> Iterator[int]:
    """The numbers of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low

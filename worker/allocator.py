"""Makes the C library return memory that a worker frees.

glibc gives each thread its own heap and keeps freed memory for later. A worker has twenty threads (Temporal's core, the
calls to AWS) and sometimes reads large answers; the memory kept for later is a seventh of all that it uses.
"""

import ctypes
from typing import Final

# Names and numbers of <malloc.h>.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

SPARING: Final = {_ARENA_MAX: 1, _TRIM_THRESHOLD: 128 * 1024, _MMAP_THRESHOLD: 64 * 1024}


def keep_little() -> bool:
    """Give freed memory back to the system at once. False where the C library has no such settings (not glibc)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    taken = [mallopt(name, value) for name, value in SPARING.items()]  # each, whatever became of the one before
    return all(each == 1 for each in taken)

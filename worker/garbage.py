"""How often the interpreter looks for reference cycles.

Nearly all that a worker holds is its cache: hundreds of thousands of objects in a large cluster, none of them in a
cycle. Traversing them takes longer than a heartbeat may be late, and the interpreter's default is to do so after every
few decisions. So it looks more rarely, and never at what exists before the first step is served.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000  # more than were freed since the last look; 700 without this


def look_rarely() -> None:
    """Raise the thresholds of the collector."""
    _, younger, older = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, younger, older)


def leave_alone_what_stands() -> None:
    """Collect once more, then exempt all objects that exist now; they are still freed when nothing refers to them."""
    gc.collect()
    gc.freeze()

"""How often the interpreter looks for garbage in cycles.

Nearly all that a worker holds is its cache: hundreds of thousands of objects in a large cluster, none of them in a
cycle. Going through them takes longer than a heartbeat may wait, and by the interpreter's own measure it is due after
every few decisions. So it looks more rarely, and leaves alone what stands before the first step is served.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000  # more than were freed since the last look; 700 without this


def look_rarely() -> None:
    """From now on."""
    _, younger, older = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, younger, older)


def leave_alone_what_stands() -> None:
    """What is there now is looked at once more, and then never again; it is freed as before where nobody holds it."""
    gc.collect()
    gc.freeze()

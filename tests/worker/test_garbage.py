"""How often the interpreter looks for garbage in cycles, in a process of its own: it is the process that is set."""

import subprocess
import sys

PLAYED = """
import gc, weakref
from dovetail.worker.garbage import NEW_OBJECTS, leave_alone_what_stands, look_rarely

class Thing:
    pass

cache = {number: [Thing()] for number in range(50_000)}
look_rarely()
leave_alone_what_stands()
standing, seen = gc.get_freeze_count(), []
gc.callbacks.append(lambda phase, info: seen.append(info["generation"]) if phase == "start" else None)
for number in range(200):
    made = [[each] for each in range(NEW_OBJECTS // 10)]  # as a decision makes them, and lets go of them
few, seen[:] = len(seen), []
kept = [[each] for each in range(NEW_OBJECTS * 25)]
many, oldest = len(seen), seen.count(2)
replaced = weakref.ref(cache[7][0])
cache[7] = [Thing()]
print(standing >= 100_000, few, many, oldest, replaced() is None)
ring = Thing()
ring.itself, gone = ring, weakref.ref(ring)
del ring
gc.collect()
print(gone() is None)
"""


def test_what_stands_is_left_alone_and_freed_where_nobody_holds_it_and_new_cycles_are_found() -> None:
    done = subprocess.run([sys.executable, "-c", PLAYED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0", "25", "0", "True", "True"], done.stdout + done.stderr

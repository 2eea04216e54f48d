"""What a write of ours left behind: the object and its version.

Returned by every step that writes, kept by the Scheduler as `must_see` for a minute, and handed to each plan: a
snapshot that has not seen our own writes would decide on yesterday's cluster (27 of 150 creates are answered before
the watch delivers them).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """An object at a version. Version 0 stands for "gone": a delete that has been carried out."""

    kind: str
    name: str  # namespace/name for namespaced kinds
    uid: str
    version: int

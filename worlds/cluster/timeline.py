"""What happened between two moments, according to the API server's audit log.

Nothing of ours can distort it: marks, deletes and counts of calls are read from what the API server wrote, by the user
agent of the caller.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from testbed.up import WORKER_USER


def moment(entry: AuditEntry) -> float:
    """When the request came in, in seconds since the epoch."""
    return datetime.fromisoformat(entry.time).timestamp()


def has_true(body: Json | None, kind: str) -> bool:
    """Whether that condition is True in an answer."""
    status = (body or {}).get("status")
    conditions = (status.get("conditions") or []) if isinstance(status, dict) else []  # a refusal's is a word
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def has_taint(body: Json | None) -> bool:
    """Whether a node carries the mark of a disruption."""
    return any(t["key"] == names.DISRUPTED_TAINT for t in ((body or {}).get("spec") or {}).get("taints") or [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How many calls a worker made, and how many of them conflicted with another writer."""

    total: int
    conflicts: int
    kinds: tuple[tuple[str, int], ...]


class Timeline:
    """The successful writes in a stretch of the log."""

    def __init__(self, entries: Iterable[AuditEntry]) -> None:
        self.entries = list(entries)
        self.writes = [e for e in self.entries if e.is_write and e.code < 300]

    def first(self, resource: str, wanted: Callable[[AuditEntry], bool]) -> dict[str, float]:
        """By name, when an object of that kind was first written so."""
        found: dict[str, float] = {}
        for entry in self.writes:
            if entry.resource == resource and wanted(entry):
                name = entry.name or str(((entry.response or {}).get("metadata") or {}).get("name", ""))
                found[name] = min(found.get(name, moment(entry)), moment(entry))
        return found

    def marked(self) -> dict[str, float]:
        """Claims, by when an owner was written on them."""
        return self.first("nodeclaims", lambda e: e.verb == "patch" and bool(_owner(e.request)))

    def tainted(self) -> dict[str, float]:
        """Nodes, by when the mark appeared on them."""
        return self.first("nodes", lambda e: e.verb == "patch" and has_taint(e.response))

    def deleted(self) -> dict[str, float]:
        """Claims, by when their delete was requested."""
        return self.first("nodeclaims", lambda e: e.verb == "delete")

    def created(self) -> dict[str, float]:
        """Claims, by when they were created."""
        return self.first("nodeclaims", lambda e: e.verb == "create")

    def reached(self, condition: str) -> dict[str, float]:
        """Claims, by when that condition became True."""
        return self.first("nodeclaims", lambda e: has_true(e.response, condition))

    def released(self) -> dict[str, float]:
        """Claims, by when their last finalizer was removed."""
        return self.first("nodeclaims", lambda e: e.verb == "patch" and _is_released(e.response))

    def calls(self) -> Calls:
        """The worker's calls except watches: each is a single, lasting call."""
        ours = [e for e in self.entries if e.user == WORKER_USER and e.verb != "watch"]
        kinds = Counter(f"{e.verb} {e.resource}{'/' + e.subresource if e.subresource else ''}" for e in ours)
        conflicts = sum(1 for e in ours if e.code == 409)
        return Calls(total=len(ours), conflicts=conflicts, kinds=tuple(kinds.most_common()))


def _owner(body: Json | None) -> str:
    return str((((body or {}).get("metadata") or {}).get("annotations") or {}).get(names.OWNER) or "")


def _is_released(body: Json | None) -> bool:
    metadata = (body or {}).get("metadata") or {}
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")

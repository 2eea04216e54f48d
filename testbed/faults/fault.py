"""What a sick server does to a request, as data, so that a random day can draw faults."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Whom it hits, and what happens then. Without an effect named, the request is only delayed.

    In this order: wait `delay` seconds; `hang`: never answer, the connection stays open (half-open); `drop`: close it
    without an answer; `status`: answer that, with `retry_after`, instead of the server; `cut_after`: pass on so many
    bytes of the server's answer and break off. A TcpProxy knows no requests: there a fault hits connections, and
    `method`, `path` and `status` play no part.
    """

    path: str = ""  # a regular expression, searched in path and query
    method: str = ""  # empty: any
    share: float = 1.0  # of the requests that match
    delay: float = 0.0
    hang: bool = False
    drop: bool = False
    status: int = 0
    retry_after: int | None = None
    cut_after: int | None = None

    def hits(self, method: str, path: str, chance: random.Random) -> bool:
        """Whether the fault applies to this request."""
        return self.method in ("", method) and bool(re.search(self.path, path)) and chance.random() < self.share


@dataclass(slots=True)
class Sickness:
    """The faults that are in force, and what they have done."""

    chance: random.Random = field(default_factory=lambda: random.Random(0))
    faults: list[Fault] = field(default_factory=list)
    done: list[tuple[Fault, str, str]] = field(default_factory=list)  # fault, method, path

    def met_by(self, method: str, path: str) -> Fault | None:
        """The fault that applies to this request; the latest one counts."""
        for fault in reversed(self.faults):
            if fault.hits(method, path, self.chance):
                self.done.append((fault, method, path))
                return fault
        return None

    @contextmanager
    def sick(self, *faults: Fault) -> Iterator[None]:
        """These faults are in force within the block."""
        self.faults += faults
        try:
            yield
        finally:
            for fault in faults:
                self.faults.remove(fault)

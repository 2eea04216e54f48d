"""Which numbers may the next claims of a pool with a fixed number of nodes have?

The Caretaker fills such pools and the Scheduler replaces their nodes. Both count on a cache that may lag, and neither
knows of the other, so no count alone keeps limits.nodes; a reservation in memory would not be seen by a second worker
and be forgotten by a restart. The name keeps it: where a pool has a limit, every claim made for it is named by a number
below an end, and the API server gives each name once. Claims that have no such name (a predecessor's, or made before
there was a limit) lower that end, and no more of them are made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from dovetail.messages.plans import claim_name
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.values.resources import NODES


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The claims of a static pool by number. `awaited`: how many replacements of marked nodes do not exist yet."""

    pool: NodePool
    taken: frozenset[int]
    unnumbered: int
    awaited: int

    @property
    def limit(self) -> int | None:
        """limits.nodes."""
        return (self.pool.limits or {}).get(NODES)

    @property
    def end(self) -> int | None:
        """Numbers below it are used: that many claims and all those without such a number make up the limit."""
        if self.limit is None:
            return None
        end = self.limit
        while end > 0 and end + self._outside(end) > self.limit:
            end = max(0, self.limit - self._outside(end))
        return end

    def _outside(self, end: int) -> int:
        return self.unnumbered + sum(1 for number in self.taken if number >= end)

    def room(self, wanted: int) -> int:
        """How many of the wanted claims the limit leaves room for, beside the replacements that are awaited."""
        if self.limit is None:
            return wanted
        return max(0, min(wanted, self.limit - len(self.taken) - self.unnumbered - self.awaited))

    def lowest(self, wanted: int) -> tuple[int, ...]:
        """The lowest free numbers, for claims that the pool lacks: every look, however old, names the same claims
        again."""
        numbers: Iterable[int] = count() if self.end is None else range(self.end)
        return tuple(islice(self._free(numbers), wanted))

    def highest(self, wanted: int) -> tuple[int, ...]:
        """The highest free numbers, for replacements: after those that are awaited. None without a limit."""
        if self.end is None:
            return ()
        return tuple(islice(self._free(range(self.end - 1, -1, -1)), self.awaited, self.awaited + wanted))

    def _free(self, numbers: Iterable[int]) -> Iterator[int]:
        return (number for number in numbers if number not in self.taken)

    def name(self, number: int) -> str:
        return claim_name(self.pool.name, static_plan(self.pool), number)


def static_plan(pool: NodePool) -> str:
    """What stands for a plan's id in the names of a static pool's claims."""
    return f"static-{pool.uid}"


def numbering_of(pool: NodePool, claims: Iterable[NodeClaim]) -> Numbering:
    """The numbers of a pool, by all claims that there are."""
    start = claim_name(pool.name, static_plan(pool), 0)[:-1]
    every = list(claims)
    mine = [claim for claim in every if claim.labels.get(names.NODE_POOL) == pool.name]
    made = {claim.plan for claim in every if claim.plan}
    return Numbering(
        pool=pool,
        taken=frozenset(int(claim.name[len(start) :]) for claim in every if _has_number(claim.name, start)),
        unnumbered=sum(1 for claim in mine if not _has_number(claim.name, start)),
        awaited=sum(1 for claim in mine if _is_awaited(claim, made)),
    )


def _has_number(name: str, start: str) -> bool:
    tail = name[len(start) :]
    return name.startswith(start) and tail.isdecimal() and tail == str(int(tail))


def _is_awaited(claim: NodeClaim, made: set[str]) -> bool:
    """A mark names the disruption that carries out its plan; its replacement carries the plan's id from the start."""
    plan = claim.annotations.get(names.OWNER, "").rpartition("/")[2]
    return bool(plan) and claim.deleting_since is None and plan not in made

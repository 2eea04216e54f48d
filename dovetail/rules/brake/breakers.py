"""The breaker of a NodePool: what it remembers about failed replacements, and what they hold back.

A bad image would otherwise be tried on node after node, ten minutes each. Kept as an annotation of the NodePool, by the
reason of the disruption, with the hash of the template that was tried: another template begins anew. An unreadable
annotation is ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.values.brake import Brake
from dovetail.model.values.memory import Memory, mark
from dovetail.model.values.time import format_time

MOST: Final = 20  # failures that are remembered, of each reason; no rule waits for more
PROVES: Final = 300.0  # seconds for which a replacement must stay ready
PROBE: Final = 1200.0  # seconds after which a try that left no trace is over: ten minutes to come, five to prove itself


@dataclass(frozen=True, slots=True, order=True)
class Happened:
    """A failure, or a try: when, and the mark by which a second report is known."""

    at: float
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """What a NodePool remembers for one reason and template. `opened`: the last failure while it is open; None: it is
    closed. `ended`: when a person resumed the pool, or the last failure that a good replacement has answered; what was
    made before counts no more."""

    reason: str
    failures: tuple[Happened, ...] = ()
    opened: float | None = None
    tries: int = 0
    probe: Happened | None = None
    ended: float = 0.0
    template: str = field(default="", compare=False)

    @property
    def last(self) -> float:
        return self.failures[-1].at if self.failures else self.ended

    @property
    def answered(self) -> "Breaker":
        """The breaker once a replacement was good: its failed nodes may stand for hours yet."""
        return Breaker(reason=self.reason, ended=self.last)

    def judges(self, claim: NodeClaim) -> bool:
        return claim.created >= self.ended

    def until(self, rule: Brake) -> float | None:
        """When one is tried; None if it is closed."""
        return None if self.opened is None else rule.until(self.opened, self.tries)

    def is_due(self, rule: Brake, now: float) -> bool:
        """Whether exactly one may be tried now."""
        until = self.until(rule)
        return until is not None and now >= until and self.probe is None

    def failed(self, what: str, rule: Brake, now: float) -> "Breaker":
        """The breaker with one more failure, unless it is known. If there is a try, it is the try's failure."""
        if any(known.mark == mark(what) for known in self.failures):
            return self
        failures = (*self.failures, Happened(now, mark(what)))[-MOST:]
        tries = self.tries + (self.probe is not None)
        opens = self.opened is not None or rule.holds(sum(each.at > now - rule.window for each in failures))
        opened = now if opens else None
        return Breaker(reason=self.reason, failures=failures, opened=opened, tries=tries, ended=self.ended)

    def is_tried_by(self, owner: str) -> bool:
        """Whether the workflow's disruption is the try."""
        return self.probe is not None and self.probe.mark == mark(_disruption(owner))

    def says(self, pool: str, rule: Brake, now: float) -> str:
        until = self.until(rule) or now
        when = f"one is tried at {format_time(until)}" if now < until else "one is tried now"
        if self.probe is not None:
            when = f"one is being tried since {format_time(self.probe.at)}"
        return (
            f"{len(self.failures)} replacements for {self.reason} were not ready in time or did not stay so: {when}, "
            f"a change of the template or `dovetail resume --pool {pool}` frees all"
        )


_MEMORY: Final = Memory(names.BREAKER, Breaker)


def probe_of(owner: str, now: float) -> Happened:
    return Happened(now, mark(_disruption(owner)))


def _disruption(owner: str) -> str:
    """A disruption by its workflow, whose id ends in its plan's."""
    return owner.partition("/disrupt/")[2] or owner


def breaker_of(pool: NodePool, reason: str) -> Breaker | None:
    return breakers_of(pool).get(reason)


def breakers_of(pool: NodePool) -> Mapping[str, Breaker]:
    """All breakers that the pool remembers for its current template."""
    read = (each for each in _MEMORY.read(pool) if each.template == _template(pool))
    return {each.reason: each for each in read if each.reason in frozenset(DisruptionReason)}


def open_breakers(pool: NodePool) -> tuple[Breaker, ...]:
    return tuple(each for each in breakers_of(pool).values() if each.opened is not None)


def with_breaker(pool: NodePool, breaker: Breaker) -> NodePool:
    """The pool with this breaker instead of the one that it remembered for that reason."""
    return _remembering(pool, {**breakers_of(pool), breaker.reason: breaker})


def without_breaker(pool: NodePool, reason: str) -> NodePool:
    """The pool as if nothing had failed."""
    if names.BREAKER not in pool.annotations:
        return pool
    return _remembering(pool, {key: each for key, each in breakers_of(pool).items() if key != reason})


def with_failures_answered(pool: NodePool, now: float) -> NodePool:
    """The pool once a person says that what has failed is mended: what was made before may fail for ten minutes yet."""
    return _remembering(pool, {reason: Breaker(reason=reason, ended=now) for reason in breakers_of(pool)})


def without_probe(pool: NodePool, reason: str, owner: str) -> NodePool:
    known = breaker_of(pool, reason)
    return with_breaker(pool, replace(known, probe=None)) if known is not None and known.is_tried_by(owner) else pool


def _remembering(pool: NodePool, known: Mapping[str, Breaker]) -> NodePool:
    return _MEMORY.write(pool, [replace(known[reason], template=_template(pool)) for reason in sorted(known)])


def _template(pool: NodePool) -> str:
    return pool.annotations.get(names.NODE_POOL_HASH, "")

"""The breaker of a NodePool: what it remembers about failed replacements, and what they hold back.

A bad image would otherwise be tried on node after node, ten minutes each. Kept as an annotation of the NodePool, by the
reason of the disruption, with the hash of the template that was tried: another template begins anew. An unreadable
annotation is ignored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from dovetail.model import names
from dovetail.model.own.breaker_rules import BreakerRule
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.values.time import format_time

MOST: Final = 20  # failures that are remembered, of each reason; no rule waits for more
PROVES: Final = 300.0  # seconds for which a replacement must stay ready
PROBE: Final = 1200.0  # seconds after which a try that left no trace is over: ten minutes to come, five to prove itself

_FAILURE: Final = r"\d{1,12}:[0-9a-f]{8}"
_ENTRY: Final = re.compile(
    rf"([A-Za-z]{{1,40}})@([0-9a-z]{{0,40}})="
    rf"(?:({_FAILURE}(?:\.{_FAILURE})*)(?:/(\d{{1,12}})x(\d{{1,12}}))?(?:\+({_FAILURE}))?)?(?:-(\d{{1,12}}))?\Z"
)

Happened = tuple[float, str]  # when, and a mark by which a second report is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """What a NodePool remembers for one reason. `opened`: the last failure while it is open; None: it is closed.
    `ended`: the last failure that a good replacement or a person has answered; what failed by then counts no more."""

    reason: str
    failures: tuple[Happened, ...] = ()
    opened: float | None = None
    tries: int = 0
    probe: Happened | None = None
    ended: float = 0.0

    @property
    def last(self) -> float:
        return self.failures[-1][0] if self.failures else self.ended

    @property
    def answered(self) -> "Breaker":
        """The breaker once a replacement was good, or a person resumes: its failed nodes may stand for hours yet."""
        return Breaker(reason=self.reason, ended=self.last)

    def until(self, rule: BreakerRule) -> float | None:
        """When one is tried; None if it is closed."""
        return None if self.opened is None else self.opened + rule.rest(self.tries)

    def is_due(self, rule: BreakerRule, now: float) -> bool:
        """Whether exactly one may be tried now."""
        until = self.until(rule)
        return until is not None and now >= until and self.probe is None

    def failed(self, mark: str, rule: BreakerRule, now: float) -> "Breaker":
        """The breaker with one more failure, unless it is known. If there is a try, it is the try's failure."""
        if any(known == mark for _, known in self.failures):
            return self
        failures = (*self.failures, (now, mark))[-MOST:]
        tries = self.tries + (self.probe is not None)
        recent = sum(1 for at, _ in failures if at > now - rule.within)
        opens = self.opened is not None or recent >= rule.failures
        opened = now if opens else None
        return Breaker(reason=self.reason, failures=failures, opened=opened, tries=tries, ended=self.ended)

    def says(self, pool: str, rule: BreakerRule, now: float) -> str:
        until = self.until(rule) or now
        when = f"one is tried at {format_time(until)}" if now < until else "one is tried now"
        if self.probe is not None:
            when = f"one is being tried since {format_time(self.probe[0])}"
        return (
            f"{len(self.failures)} replacements for {self.reason} were not ready in time or did not stay so: {when}, "
            f"a change of the template or `dovetail resume --pool {pool}` frees all"
        )


def happened_mark(text: str) -> str:
    """A disruption by its plan, or a node by its NodeClaim, in eight characters."""
    return f"{crc32(text.encode()):08x}"


def probe_mark(owner: str) -> str:
    """A disruption by its workflow, whose id ends in its plan's."""
    return happened_mark(owner.partition("/disrupt/")[2] or owner)


def breaker_of(pool: NodePool, reason: str) -> Breaker | None:
    """What the pool remembers for that reason."""
    return breakers_of(pool).get(reason)


def breakers_of(pool: NodePool) -> Mapping[str, Breaker]:
    """All breakers that the pool remembers for its current template."""
    text = pool.annotations.get(names.BREAKER, "")
    found = [_ENTRY.match(entry) for entry in text.split(",")] if text else []
    read = [_breaker(match) for match in found if match is not None and match[2] == _template(pool)]
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


def with_failures_answered(pool: NodePool) -> NodePool:
    """The pool once a person says that what has failed is mended."""
    return _remembering(pool, {reason: each.answered for reason, each in breakers_of(pool).items()})


def without_probe(pool: NodePool, reason: str, mark: str) -> NodePool:
    known = breaker_of(pool, reason)
    if known is None or known.probe is None or known.probe[1] != mark:
        return pool
    return with_breaker(pool, replace(known, probe=None))


def _remembering(pool: NodePool, known: Mapping[str, Breaker]) -> NodePool:
    text = ",".join(_entry(known[reason], _template(pool)) for reason in sorted(known))
    others = {key: value for key, value in pool.annotations.items() if key != names.BREAKER}
    return replace(pool, annotations={**others, **({names.BREAKER: text} if text else {})})


def _entry(breaker: Breaker, template: str) -> str:
    failures = ".".join(map(_happened, breaker.failures))
    opened = "" if breaker.opened is None else f"/{breaker.opened:.0f}x{breaker.tries}"
    probe = "" if breaker.probe is None else f"+{_happened(breaker.probe)}"
    ended = f"-{breaker.ended:.0f}" if breaker.ended else ""
    return f"{breaker.reason}@{template}={failures}{opened}{probe}{ended}"


def _happened(found: Happened) -> str:
    return f"{found[0]:.0f}:{found[1]}"


def _breaker(match: re.Match[str]) -> Breaker:
    return Breaker(
        reason=match[1],
        failures=tuple(sorted(map(_read, match[3].split(".")))) if match[3] else (),
        opened=None if match[4] is None else float(match[4]),
        tries=int(match[5] or 0),
        probe=None if match[6] is None else _read(match[6]),
        ended=float(match[7] or 0),
    )


def _read(text: str) -> Happened:
    at, _, mark = text.partition(":")
    return float(at), mark


def _template(pool: NodePool) -> str:
    return pool.annotations.get(names.NODE_POOL_HASH, "")

"""What a NodePool's breakers become by what has become of its replacements.

A replacement that is not ready within five minutes of having been ready has failed; one that has stayed ready for five,
made after the last failure, ends what is held for its reason. A try that has left no trace is over, so that a breaker
is never held by one for ever.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.remembered.breakers import (
    PROBE,
    PROVES,
    Breaker,
    BreakerRule,
    breaker_of,
    breakers_of,
    happened_mark,
    probe_mark,
    with_breaker,
    without_breaker,
)
from dovetail.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A replacement at the pool's template that has been initialised. `since`: when it became ready, or ceased to be;
    `mark`: by which its failure is known."""

    reason: str
    initialized: float
    ready: bool
    since: float
    mark: str

    @property
    def proven(self) -> float:
        """When it has stayed ready for long enough, if it does."""
        return max(self.initialized, self.since) + PROVES

    def failed(self, rule: BreakerRule, now: float) -> bool:
        """Whether it has, not so long ago that it says nothing any more."""
        return not self.ready and self.since <= self.initialized + PROVES and self.since > now - rule.within


def next_breakers(pool: NodePool, snapshot: Snapshot, rule: BreakerRule, now: float) -> NodePool:
    """The pool with them as they are to be."""
    claims = snapshot.claims_by_pool.get(pool.name, ())
    proofs = list(proofs_of(pool, claims, snapshot))
    for proof in proofs:
        if proof.failed(rule, now):
            known = breaker_of(pool, proof.reason) or Breaker(reason=proof.reason)
            pool = with_breaker(pool, known.failed(proof.mark, rule, now))
    marked = {probe_mark(owner) for claim in claims if (owner := claim.annotations.get(names.OWNER))}
    for reason, known in breakers_of(pool).items():
        well = any(p.reason == reason and p.ready and p.initialized > known.last and now >= p.proven for p in proofs)
        if well or (known.opened is None and known.last <= now - rule.within):
            pool = without_breaker(pool, reason)
        elif known.probe is not None and now >= known.probe[0] + PROBE and known.probe[1] not in marked:
            pool = with_breaker(pool, replace(known, probe=None))
    return pool


def breakers_look_again(pool: NodePool, snapshot: Snapshot, rule: BreakerRule) -> Iterator[float]:
    """When time alone may change them."""
    known = breakers_of(pool)
    if not known:
        return
    claims = snapshot.claims_by_pool.get(pool.name, ())
    yield from (proof.proven for proof in proofs_of(pool, claims, snapshot) if proof.ready)
    yield from (each.last + rule.within for each in known.values() if each.opened is None)
    yield from (each.probe[0] + PROBE for each in known.values() if each.probe is not None)


def proofs_of(pool: NodePool, claims: Iterable[NodeClaim], snapshot: Snapshot) -> Iterator[Proof]:
    """The replacements that say something."""
    template = pool.annotations.get(names.NODE_POOL_HASH, "")
    for claim in claims:
        reason, node = claim.annotations.get(names.REPLACEMENT_FOR, ""), snapshot.nodes.get(claim.node_name)
        if not reason or claim.annotations.get(names.NODE_POOL_HASH, "") != template:
            continue
        initialized = claim.condition(names.INITIALIZED_CONDITION)
        ready = node.condition(names.READY) if node is not None else None
        if claim.deleting_since is None and initialized is not None and initialized.status == "True" and ready:
            yield Proof(
                reason=reason,
                initialized=initialized.changed,
                ready=ready.status == "True",
                since=ready.changed,
                mark=happened_mark(claim.uid),
            )

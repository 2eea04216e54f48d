"""How a NodePool's breakers change by how its replacements fare.

A replacement that ceases to be ready within five minutes has failed; one that was made after the last failure and has
stayed ready for five minutes ends the hold on its reason. A try that has left no trace is over, so that it never holds
a breaker for ever.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.rollouts import is_of_target
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.brake import Brake
from dovetail.rules.brake.breakers import (
    PROBE,
    PROVES,
    Breaker,
    breaker_of,
    breakers_of,
    with_breaker,
    without_breaker,
)
from dovetail.rules.said import rollouts_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """An initialised replacement at the pool's template. `since`: when it became ready, or ceased to be."""

    reason: str
    initialized: float
    ready: bool
    since: float
    claim: NodeClaim

    @property
    def proven(self) -> float:
        """When it will have stayed ready for long enough."""
        return max(self.initialized, self.since) + PROVES

    def failed(self, rule: Brake, now: float) -> bool:
        """Whether it has failed recently enough to count."""
        return not self.ready and self.since <= self.initialized + PROVES and self.since > now - rule.window


def next_breakers(pool: NodePool, snapshot: Snapshot, rule: Brake, now: float) -> NodePool:
    claims = snapshot.claims_by_pool.get(pool.name, ())
    proofs = list(proofs_of(pool, claims, snapshot))
    for proof in proofs:
        known = breaker_of(pool, proof.reason) or Breaker(reason=proof.reason)
        if proof.failed(rule, now) and known.judges(proof.claim):
            pool = with_breaker(pool, known.failed(proof.claim.uid, rule, max(now, proof.since)))
    owners = [owner for claim in claims if (owner := claim.annotations.get(names.OWNER))]
    for reason, known in breakers_of(pool).items():
        well = any(p.reason == reason and p.ready and p.initialized > known.last and now >= p.proven for p in proofs)
        if known.failures and well:
            pool = with_breaker(pool, known.answered)
        elif known.opened is None and known.last <= now - rule.window:
            pool = without_breaker(pool, reason)
        elif known.probe is not None and now >= known.probe.at + PROBE and not any(map(known.is_tried_by, owners)):
            pool = with_breaker(pool, replace(known, probe=None))
    return pool


def breakers_look_again(pool: NodePool, snapshot: Snapshot, rule: Brake) -> Iterator[float]:
    """When time alone may change them."""
    known = breakers_of(pool)
    if not known:
        return
    claims = snapshot.claims_by_pool.get(pool.name, ())
    yield from (proof.proven for proof in proofs_of(pool, claims, snapshot) if proof.ready)
    yield from (each.last + rule.window for each in known.values() if each.opened is None)
    yield from (each.probe.at + PROBE for each in known.values() if each.probe is not None)


def proofs_of(pool: NodePool, claims: Iterable[NodeClaim], snapshot: Snapshot) -> Iterator[Proof]:
    """The replacements that count as evidence."""
    rollouts = rollouts_in(snapshot, pool.name)
    for claim in claims:
        reason, node = memory_of(claim.annotations).replacement_for, snapshot.nodes.get(claim.node_name)
        if not reason or not is_of_target(claim, pool, rollouts):
            continue
        initialized = claim.condition(names.INITIALIZED_CONDITION)
        ready = node.condition(names.READY) if node is not None else None
        if claim.deleting_since is None and initialized is not None and initialized.status == "True" and ready:
            yield Proof(
                reason=reason,
                initialized=initialized.changed,
                ready=ready.status == "True",
                since=ready.changed,
                claim=claim,
            )

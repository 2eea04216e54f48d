"""When nodes leave because of their age: when they may first be replaced, and when they are deleted in any case.

Both moments are worked out from the objects alone, so that every worker finds the same ones, before and after a crash.
"""

from collections.abc import Collection, Mapping
from math import inf
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.policies import Expiry, Policy, policies_of
from dovetail.model.pools import NodePool

NODE_START_SECONDS: Final = 120.0  # what a node may take from its launch to its first pod
_MOST_OF_A_LIFE: Final = 0.5  # of its expireAfter: no spread takes a node earlier
_LEFT_TO_THE_LAST: Final = 0.125  # of the spread: what remains even to the last one for its replacement and drain


def replaced_from(policies: Mapping[str, Policy], pool: NodePool, claims: Collection[NodeClaim]) -> Mapping[str, float]:
    """When each claim that is replaced first becomes due, by name: never (infinity) if it does not expire.

    `claims`: all of the pool. If its policies spread expiry, nodes are due at the pace at which the whole pool would
    leave within the spread, each as late as that allows: few nodes of one age use only its last part, and those that
    have already left shift no others. Random moments would bunch: of 200 in a day, often 16 and more in one hour. The
    shortest spread of several policies applies.
    """
    rules = expiry_rules(policies, pool)
    if not rules:
        return {c.name: inf if c.expires_at is None else c.expires_at for c in claims if pool.replaces_first(c)}
    staying = [claim for claim in claims if claim.deleting_since is None]
    lives = [_MOST_OF_A_LIFE * claim.expire_after for claim in staying if claim.expire_after is not None]
    spread = min([rule.spread for rule in rules] + lives)
    last = spread * _LEFT_TO_THE_LAST
    gap = (spread - last) / max(len(staying), 1)
    found: dict[str, float] = {}
    following = inf
    for claim in sorted(staying, key=_youngest_first):
        following = min(inf if claim.expires_at is None else claim.expires_at - last, following) - gap
        found[claim.name] = following
    return found


def _youngest_first(claim: NodeClaim) -> tuple[float, str]:
    return (-inf if claim.expires_at is None else -claim.expires_at), claim.uid


def deleted_at(policies: Mapping[str, Policy], pool: NodePool | None, claim: NodeClaim) -> float | None:
    """When the claim is deleted for its age, whatever its pods are; None for never.

    At its expiry, unless a disruption replaces it first. With a termination grace period the pods would be gone by
    expiry plus grace, so the disruption has at most until then; and if that is too short for a node to start, no time
    at all. A policy may set the time instead; the longest of several applies.
    """
    expires = claim.expires_at
    if expires is None or pool is None or not claim.is_true(names.INITIALIZED_CONDITION):
        return expires
    left = [rule.hard_after for rule in expiry_rules(policies, pool) if rule.hard_after is not None]
    if left:
        return expires + max(left) if max(left) < inf else None
    if not pool.replaces_first(claim):
        return expires
    grace = claim.termination_grace
    if grace is None:
        return None
    return expires + grace if grace >= NODE_START_SECONDS else expires


def expiry_rules(policies: Mapping[str, Policy], pool: NodePool) -> tuple[Expiry, ...]:
    if not policies:
        return ()
    return tuple([each.expiry for each in policies_of(policies, pool) if each.expiry is not None])

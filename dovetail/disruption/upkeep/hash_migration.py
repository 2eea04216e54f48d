"""Which hash annotations a pool and its claims should carry (DIS-177 to DIS-179, NPL-5).

If the pool was last hashed by another version of the algorithm, its claims get the pool's new hash, so that a change
of the algorithm makes nothing drift; a claim that had drifted before keeps its old hash and stays drifted. The claims
are stamped before the pool: otherwise they would be forgotten if we stopped in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM

Annotations = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """Annotations to write: the claims' first, then the pool's. Empty where nothing changes."""

    claims: tuple[tuple[str, Annotations], ...]
    pool: Annotations


def hash_stamps(pool: NodePool, claims: Iterable[NodeClaim]) -> Stamps:
    """What to write, given the pool as it is and all claims that carry its label."""
    migrating = pool.annotations.get(names.NODE_POOL_HASH_VERSION) != NODE_POOL_HASH_ALGORITHM
    stamped = tuple((c.name, _claim_stamp(pool, c)) for c in claims if migrating and _is_old(pool, c))
    wanted = ((names.NODE_POOL_HASH, pool.hash), (names.NODE_POOL_HASH_VERSION, NODE_POOL_HASH_ALGORITHM))
    current = all(pool.annotations.get(key) == value for key, value in wanted)
    return Stamps(claims=stamped, pool=() if current else wanted)


def _is_old(pool: NodePool, claim: NodeClaim) -> bool:
    ours = claim.labels.get(names.NODE_POOL) == pool.name
    return ours and claim.annotations.get(names.NODE_POOL_HASH_VERSION) != NODE_POOL_HASH_ALGORITHM


def _claim_stamp(pool: NodePool, claim: NodeClaim) -> Annotations:
    version = (names.NODE_POOL_HASH_VERSION, NODE_POOL_HASH_ALGORITHM)
    return (version,) if claim.condition(names.DRIFTED) else ((names.NODE_POOL_HASH, pool.hash), version)

"""A claim and its nodes as the cache has them, for changes that their versions guard.

That saves a request for nearly every write. A claim that the cache does not have may be newer than the cache, so it is
read live before it counts as gone.
"""

from dovetail.messages.subjects import ClaimRef
from dovetail.model.nodes import Node, NodeClaim
from dovetail.ports.objects import NodeClaims
from dovetail.ports.view import ClusterLookups


class KnownClaims:
    """Claims by the cache, or live, and their nodes by the cache."""

    def __init__(self, lookups: ClusterLookups, claims: NodeClaims) -> None:
        self.lookups, self.claims = lookups, claims

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        """The nodes of that instance in the cache; none where there is no providerID."""
        return self.lookups.nodes_of(provider_id) if provider_id else ()

    async def find(self, ref: ClaimRef) -> NodeClaim | None:
        """The claim; None where it is gone, another one has its name, or there was none."""
        if not ref.uid:
            return None
        claim = self.lookups.claim(ref.name)
        if claim is None or not is_same(claim, ref.uid):
            claim = await self.claims.read(ref.name)
        return claim if claim is not None and is_same(claim, ref.uid) else None


def is_same(claim: NodeClaim | None, uid: str) -> bool:
    """Whether this is the claim of that UID, and not another one under the same name."""
    return claim is not None and claim.uid == uid

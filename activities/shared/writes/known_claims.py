"""A claim and its nodes as the cache has them, for changes that their versions guard.

That saves a request for nearly every write. A claim that the cache does not have may be newer than the cache, so it is
read live before it counts as gone.
"""

from typing import TYPE_CHECKING

from dovetail.messages.subjects import ClaimRef
from dovetail.model.nodes import Node, NodeClaim
from dovetail.ports.failures import Refused
from dovetail.ports.objects import NodeClaims

if TYPE_CHECKING:  # a person's order needs no view of the cluster
    from dovetail.ports.view import ClusterLookups


class KnownClaims:
    """Claims by the cache, or live, and their nodes by the cache."""

    def __init__(self, lookups: "ClusterLookups", claims: NodeClaims) -> None:
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

    async def leaving(self, ref: ClaimRef) -> NodeClaim | None:
        """The claim of that UID, which somebody has deleted; None where it is gone.

        Everybody who may write to Temporal's namespace may ask for any step: none of those that end a node does
        anything to a claim that stays. A deletion is never taken back, so one that was seen once needs no look at the
        server.
        """
        if not ref.name or not ref.uid:
            raise Refused("NodeClaim", "none is named that leaves, so nothing is ended")
        claim = await self.newest_deletion(ref)
        if claim is None or not is_same(claim, ref.uid):
            return None
        if claim.deleting_since is None:
            raise Refused(f"NodeClaim/{ref.name}", "is not being deleted, so nothing of it is ended")
        return claim

    async def newest_deletion(self, ref: ClaimRef) -> NodeClaim | None:
        """The claim as the cache or an answer to this process has it, where that shows that it is being deleted; else
        as it is now."""
        for known in (self.lookups.claim(ref.name), self.claims.answered(ref.name)):
            if known is not None and known.uid == ref.uid and known.deleting_since is not None:
                return known
        return await self.claims.read(ref.name)


def is_same(claim: NodeClaim | None, uid: str) -> bool:
    """Whether this is the claim of that UID, and not another one under the same name."""
    return claim is not None and claim.uid == uid

"""A claim and its nodes from the cache, for changes that are guarded by their versions.

That saves a read for nearly every write. A claim that is missing in the cache may be newer than the cache, so it is
read live before it counts as gone. When the cache lags, as during a burst on a busy machine, three hundred waits look
again and again at claims that it does not have: they use the last answer that this process got, and read live the more
rarely the longer the claim has been missing in the cache.
"""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dovetail.messages.subjects import ClaimRef
from dovetail.model.nodes import Node, NodeClaim
from dovetail.ports.failures import Refused
from dovetail.ports.objects import NodeClaims

if TYPE_CHECKING:  # a person's order needs no view of the cluster
    from dovetail.ports.view import ClusterLookups


# Seconds between two live reads of a claim that the cache lacks.
SHORTEST: Final = 1.0
LONGEST: Final = 15.0

MOST_LACKING: Final = 5_000  # what is forgotten of more is read live at the next look


class KnownClaims:
    """Claims by the cache, or live, and their nodes by the cache."""

    def __init__(
        self, lookups: "ClusterLookups", claims: NodeClaims, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.lookups, self.claims, self._clock = lookups, claims, clock
        self._lacking: dict[str, tuple[float, float]] = {}  # UID -> since when the cache lacks it, last read live

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        """The nodes of that instance in the cache; none where there is no providerID."""
        return self.lookups.nodes_of(provider_id) if provider_id else ()

    async def find(self, ref: ClaimRef) -> NodeClaim | None:
        """The claim; None where it is gone, another one has its name, or there was none."""
        if not ref.uid:
            return None
        cached, answered = self.lookups.claim(ref.name), self.claims.answered(ref.name)
        answered = answered if is_same(answered, ref.uid) else None
        if cached is not None and is_same(cached, ref.uid):
            self._lacking.pop(ref.uid, None)
            return cached if answered is None or _version(answered) <= _version(cached) else answered
        now = self._clock()
        since, read = self._lacking.get(ref.uid, (now, -math.inf))
        if answered is not None and now - read < min(max(read - since, SHORTEST), LONGEST):
            return answered
        claim = await self.claims.read(ref.name)
        if claim is None or not is_same(claim, ref.uid):
            self._lacking.pop(ref.uid, None)
            return None
        self._lacking[ref.uid] = since, now
        if len(self._lacking) > MOST_LACKING:
            del self._lacking[next(iter(self._lacking))]
        return claim

    async def live_unless_cached(self, ref: ClaimRef) -> NodeClaim | None:
        """The same for what cannot be undone: where the cache lacks it, it is read live however lately that was, since
        it may have become unreadable, and then nobody knows what it asks for (NotReadable)."""
        if is_same(self.lookups.claim(ref.name), ref.uid):
            return await self.find(ref)
        claim = await self.claims.read(ref.name)
        return claim if is_same(claim, ref.uid) else None

    async def leaving(self, ref: ClaimRef) -> NodeClaim | None:
        """The claim of that UID, which somebody has deleted; None if it is gone.

        Anybody who can write to Temporal's namespace can request any step, so none of those that end a node touches a
        claim that is not being deleted. A deletion is never taken back, so one that was seen once needs no look at the
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
        """The claim from the cache or from an answer to this process, if that shows that it is being deleted; otherwise
        read live."""
        for known in (self.lookups.claim(ref.name), self.claims.answered(ref.name)):
            if known is not None and known.uid == ref.uid and known.deleting_since is not None:
                return known
        return await self.claims.read(ref.name)


def _version(claim: NodeClaim) -> int:
    return int(claim.resource_version or 0)


def is_same(claim: NodeClaim | None, uid: str) -> bool:
    """Whether this is the claim of that UID, and not another one under the same name."""
    return claim is not None and claim.uid == uid

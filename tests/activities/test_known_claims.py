"""A claim that leaves: the watch has a moment to show its deletion, before the API server is asked."""

import pytest

from dovetail.activities.shared.known_claims import WATCH_LOOKS, KnownClaims
from dovetail.messages.subjects import ClaimRef
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Refused
from testing.fakes import FakeClaims, FakeLookups, World
from tests.lifecycle.objects import a_joined_claim

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")


class Behind(FakeLookups):
    """Shows the claim as it was, for so many looks."""

    def __init__(self, world: World, looks: int) -> None:
        super().__init__(world)
        self.left = looks

    def claim(self, name: str) -> NodeClaim | None:
        self.left -= 1
        return a_joined_claim() if self.left >= 0 else super().claim(name)


class Reads(FakeClaims):
    """Counts the live reads."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.count = 0

    async def read(self, name: str) -> NodeClaim | None:
        self.count += 1
        return await super().read(name)


@pytest.mark.parametrize(("looks", "reads"), [(0, 0), (2, 0), (WATCH_LOOKS, 0), (WATCH_LOOKS + 1, 1), (1000, 1)])
async def test_a_deletion_that_the_watch_brings_soon_is_not_read(looks: int, reads: int) -> None:
    world = World()
    world.put(a_joined_claim(deleting_since=world.now()))
    claims = Reads(world)

    claim = await KnownClaims(Behind(world, looks), claims, world.pause).leaving(REF)

    assert claim is not None and claim.deleting_since is not None
    assert claims.count == reads


async def test_a_claim_that_nobody_has_deleted_is_read_and_refused() -> None:
    world = World()
    world.put(a_joined_claim())
    claims = Reads(world)

    with pytest.raises(Refused, match="is not being deleted"):
        await KnownClaims(FakeLookups(world), claims, world.pause).leaving(REF)

    assert claims.count == 1


async def test_a_claim_that_is_gone_from_the_cache_is_not_waited_for() -> None:
    world = World()
    began = world.now()

    assert await KnownClaims(FakeLookups(world), FakeClaims(world), world.pause).leaving(REF) is None
    assert world.now() == began

"""What steps know of a claim where the cache lags behind."""

from dataclasses import dataclass, field, replace

import pytest

from dovetail.activities.shared.writes.known_claims import LONGEST, KnownClaims
from dovetail.messages.subjects import ClaimRef
from dovetail.model.nodes import NodeClaim
from worlds.disruption import a_claim
from worlds.fakes import FakeClaims, FakeLookups, World

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")


class Answered(FakeClaims):
    """Remembers what it answered last, as the adapter does."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.last: dict[str, NodeClaim] = {}

    async def read(self, name: str) -> NodeClaim | None:
        found = await super().read(name)
        if found is not None:
            self.last[name] = found
        return found

    def answered(self, name: str) -> NodeClaim | None:
        return self.last.get(name)


@dataclass
class Lagging:
    """A cache that lacks the claim, or has it as it was."""

    world: World = field(default_factory=World)
    claims: Answered = field(init=False)
    known: KnownClaims = field(init=False)

    def __post_init__(self) -> None:
        self.world.put(a_claim())
        self.world.hidden.add("pool-1")
        self.claims = Answered(self.world)
        self.known = KnownClaims(FakeLookups(self.world), self.claims, self.world.now)

    @property
    def reads(self) -> int:
        return self.world.ledger.count("get claim pool-1")

    async def look_for(self, seconds: float) -> None:
        """As a wait does, five times a second."""
        until = self.world.clock + seconds
        while self.world.clock < until:
            assert await self.known.find(REF) is not None
            await self.world.pause(0.2)


@pytest.fixture
def lagging() -> Lagging:
    return Lagging()


async def test_a_claim_that_the_cache_lacks_for_long_is_read_rarely(lagging: Lagging) -> None:
    """Three hundred waits read theirs 5,400 times in a minute and a half, which kept the watch from its turn."""
    await lagging.look_for(90.0)
    assert lagging.reads <= 12


async def test_what_this_process_was_answered_meanwhile_is_seen_at_once(lagging: Lagging) -> None:
    await lagging.look_for(30.0)
    written = replace(lagging.world.claims["pool-1"], provider_id="aws:///zone/i-1")
    lagging.claims.last["pool-1"] = written

    assert await lagging.known.find(REF) is written


async def test_where_the_cache_has_it_as_it_was_our_own_newer_answer_counts(lagging: Lagging) -> None:
    """A node joins though the watch of claims lags behind: that of nodes does not."""
    lagging.world.hidden.clear()
    cached = lagging.world.claims["pool-1"]
    newer = replace(cached, provider_id="aws:///zone/i-1", resource_version=str(int(cached.resource_version) + 1))
    lagging.claims.last["pool-1"] = newer

    assert await lagging.known.find(REF) is newer
    lagging.claims.last["pool-1"] = replace(newer, resource_version="1")
    assert await lagging.known.find(REF) is cached
    lagging.claims.last["pool-1"] = replace(newer, uid="of another claim of that name")
    assert await lagging.known.find(REF) is cached
    assert lagging.reads == 0


@pytest.mark.parametrize("after", [0.0, 60.0])
async def test_a_claim_that_is_gone_is_known_to_be_gone_whatever_was_answered(lagging: Lagging, after: float) -> None:
    """At once where the cache had it; where it lacked it, with the next live read."""
    await lagging.look_for(after)
    lagging.world.hidden.clear()
    assert await lagging.known.find(REF) is not None
    lagging.claims.last["pool-1"] = lagging.world.claims["pool-1"]
    lagging.world.claims.clear()

    assert await lagging.known.find(REF) is None


async def test_a_claim_that_goes_while_the_cache_lacks_it_is_gone_with_the_next_read(lagging: Lagging) -> None:
    await lagging.look_for(60.0)
    lagging.world.claims.clear()
    await lagging.world.pause(LONGEST)

    assert await lagging.known.find(REF) is None

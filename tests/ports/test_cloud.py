"""The contract of Cloud: what is launched, for whom, how often, and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.values.resources import fits
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Refused
from tests.ports.worlds.cloud_contract import CloudWorld
from tests.ports.worlds.contract import PATIENCE_SECONDS, unique


@pytest.fixture
async def claim(cloud_world: CloudWorld) -> AsyncIterator[NodeClaim]:
    """A claim of a ready class."""
    yield await cloud_world.claim(await cloud_world.node_class(unique("class")))
    await cloud_world.end_shortages()


async def prepared(world: CloudWorld, claim: NodeClaim) -> str:
    """The request for a claim; waits until shortages that other tests left behind are forgotten."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        answer = await world.cloud.prepare(claim)
        if isinstance(answer, Prepared):
            return answer.request
        assert asyncio.get_running_loop().time() < deadline, answer
        await asyncio.sleep(0.05)


async def launched(world: CloudWorld, claim: NodeClaim, token: str = "") -> Instance:
    answer = await world.cloud.launch(claim, await prepared(world, claim), token or unique("token"))
    assert isinstance(answer, Instance)
    return answer


async def until_gone(world: CloudWorld, provider_id: str) -> str:
    """The answers to `terminate` up to and including `gone`."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while (answer := await world.cloud.terminate(provider_id)) != "gone":
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.05)
    return answer


class TestPreparing:
    async def test_preparing_launches_nothing_and_gives_the_same_twice(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        before = await cloud_world.launches()

        requests = [await prepared(cloud_world, claim) for _ in range(2)]

        assert requests[0] == requests[1]
        assert await cloud_world.launches() == before

    async def test_a_class_that_is_not_ready_is_an_answer(self, cloud_world: CloudWorld, claim: NodeClaim) -> None:
        await cloud_world.make_class_unready(claim.node_class)

        assert isinstance(await cloud_world.cloud.prepare(claim), ClassNotReady)

    async def test_a_class_that_is_missing_is_an_answer(self, cloud_world: CloudWorld, claim: NodeClaim) -> None:
        await cloud_world.remove_class(claim.node_class)

        assert isinstance(await cloud_world.cloud.prepare(claim), ClassNotReady | NoCapacity)

    async def test_what_nothing_on_offer_suits_is_refused_with_its_reason(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        """As no capacity, of which nothing would be remembered, its pods would be planned for again at once, and a
        NodeClaim made and deleted every few seconds without end."""
        type_of_nobody = Expression(key=names.INSTANCE_TYPE, operator="In", values=("no-such-type",))

        answer = await cloud_world.cloud.prepare(replace(claim, requirements=(*claim.requirements, type_of_nobody)))

        assert isinstance(answer, LaunchRefused)
        assert answer.reason == "InstanceTypeFilteringFailed"

    async def test_what_is_short_for_a_while_is_no_capacity(self, cloud_world: CloudWorld, claim: NodeClaim) -> None:
        await cloud_world.make_short(None)
        while isinstance(request := await cloud_world.cloud.prepare(claim), Prepared):
            assert isinstance(await cloud_world.cloud.launch(claim, request.request, unique("token")), NoCapacity)

        assert isinstance(request, NoCapacity)


class TestLaunching:
    async def test_an_instance_is_the_claims_and_says_what_it_is(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        instance = await launched(cloud_world, claim)

        assert (instance.claim_uid, instance.claim_name) == (claim.uid, claim.name)
        assert instance.provider_id
        assert instance.image_id
        for label in (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE, names.ARCH, names.OS):
            assert instance.labels[label]
        assert fits(claim.requests, instance.allocatable)
        assert fits(instance.allocatable, instance.capacity)

    async def test_the_same_token_never_launches_a_second(self, cloud_world: CloudWorld, claim: NodeClaim) -> None:
        """AWS-181."""
        before, token = await cloud_world.launches(), unique("token")
        request = await prepared(cloud_world, claim)

        answers = [await cloud_world.cloud.launch(claim, request, token) for _ in range(3)]

        assert len({answer.provider_id for answer in answers if isinstance(answer, Instance)}) == 1
        assert await cloud_world.launches() == before + 1

    async def test_a_token_used_for_another_request_is_refused(self, cloud_world: CloudWorld, claim: NodeClaim) -> None:
        """AWS-181: IdempotentParameterMismatch."""
        token = unique("token")
        await launched(cloud_world, claim, token)
        other = await cloud_world.claim(claim.node_class)
        before = await cloud_world.launches()

        with pytest.raises(Refused):
            await cloud_world.cloud.launch(other, await prepared(cloud_world, other), token)

        assert await cloud_world.launches() == before

    async def test_no_capacity_anywhere_is_an_answer_and_launches_nothing(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        before = await cloud_world.launches()
        request = await prepared(cloud_world, claim)
        await cloud_world.make_short(None)

        answer = await cloud_world.cloud.launch(claim, request, unique("token"))

        assert isinstance(answer, NoCapacity)
        assert await cloud_world.launches() == before

    async def test_where_one_capacity_pool_is_empty_another_serves(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        first = await launched(cloud_world, claim)
        await cloud_world.make_short(first)
        other = await cloud_world.claim(claim.node_class)

        second = await launched(cloud_world, other)

        offerings = [
            tuple(i.labels[x] for x in (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)) for i in (first, second)
        ]
        assert offerings[0] != offerings[1]


class TestFinding:
    async def test_it_is_found_by_its_claim_and_by_its_id(self, cloud_world: CloudWorld, claim: NodeClaim) -> None:
        instance = await launched(cloud_world, claim)

        by_claim = await cloud_world.cloud.find(claim_uid=claim.uid)
        by_id = await cloud_world.cloud.find(provider_id=instance.provider_id)

        assert by_claim is not None
        assert by_id is not None
        assert by_claim.provider_id == by_id.provider_id == instance.provider_id

    async def test_what_was_never_launched_is_none(self, cloud_world: CloudWorld, claim: NodeClaim) -> None:
        assert await cloud_world.cloud.find(claim_uid=claim.uid) is None

    async def test_this_clusters_instances_are_listed_and_no_others(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        instance, foreign = await launched(cloud_world, claim), await cloud_world.foreign_instance()

        listed = {i.provider_id: i.claim_uid for i in await cloud_world.cloud.list_instances()}

        assert listed[instance.provider_id] == claim.uid
        assert foreign not in listed


class TestTerminating:
    async def test_an_instance_is_gone_in_the_end_and_is_found_no_more(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        """CLD-2, CLD-3."""
        instance = await launched(cloud_world, claim)

        first = await cloud_world.cloud.terminate(instance.provider_id)
        await until_gone(cloud_world, instance.provider_id)

        assert first == "terminating"
        assert await cloud_world.cloud.find(provider_id=instance.provider_id) is None
        assert await cloud_world.cloud.find(claim_uid=claim.uid) is None
        assert instance.provider_id not in {i.provider_id for i in await cloud_world.cloud.list_instances()}

    async def test_an_instance_that_is_ending_is_listed_as_such(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        """CLD-4."""
        instance = await launched(cloud_world, claim)
        before = {i.provider_id: i.state for i in await cloud_world.cloud.list_instances()}

        answer = await cloud_world.cloud.terminate(instance.provider_id)
        after = {i.provider_id: i.state for i in await cloud_world.cloud.list_instances()}

        assert answer == "terminating"
        assert before[instance.provider_id] in ("pending", "running")
        assert after[instance.provider_id] == "terminating"

    async def test_what_is_gone_stays_gone_however_often_it_is_asked(
        self, cloud_world: CloudWorld, claim: NodeClaim
    ) -> None:
        instance = await launched(cloud_world, claim)
        await until_gone(cloud_world, instance.provider_id)

        assert await cloud_world.cloud.terminate(instance.provider_id) == "gone"

    async def test_an_empty_id_is_gone(self, cloud_world: CloudWorld) -> None:
        assert await cloud_world.cloud.terminate("") == "gone"

"""How often AWS is asked by all that goes on by itself, and how long each answer is kept (AWS-144, AWS-145, AWS-169,
AWS-170).

The adapter is the one that a worker opens, on a simulated clock and before an AWS that is a table of answers: a day
passes in a second.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, cast

import pytest

from dovetail.activities.interruptions.watch_interruptions import InstanceChecks, WarningReader
from dovetail.adapters.aws import names
from dovetail.adapters.aws.adapter import AwsAdapter, Surroundings, UpkeepCluster
from dovetail.adapters.aws.catalogue.shortages import Shortage, Shortages
from dovetail.adapters.aws.cluster import Cluster, ServerNow
from dovetail.adapters.aws.failures import Denied
from dovetail.adapters.aws.instance_types import region_types
from dovetail.adapters.aws.instance_types.observed_memory import ObservedMemory
from dovetail.adapters.aws.launch.launch_templates import LaunchTemplates
from dovetail.adapters.aws.node_class.node_class import NodeClass, read_class
from dovetail.adapters.aws.resources.available_images import AvailableImages
from dovetail.adapters.aws.resources.images import ImageError, Images
from dovetail.adapters.aws.resources.instance_profiles import Profiles, RoleMissing
from dovetail.adapters.aws.resources.placement_groups import PlacementGroups
from dovetail.adapters.aws.resources.reservations import Reservations
from dovetail.adapters.aws.resources.security_groups import SecurityGroups
from dovetail.adapters.aws.resources.subnets import Subnets
from dovetail.adapters.aws.settings import AwsSettings, ClusterFacts
from dovetail.adapters.aws.upkeep.node_classes import ClusterNow, Ec2NodeClassUpkeep
from dovetail.messages.interruptions import Interruption
from dovetail.model import names as core
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable
from tests.adapters.aws.scripted import REGION, ZONES, Answer, ScriptedCalls, price_answers, region_answers
from tests.placement.builders import a_joined_pair
from tests.simulated_loop import for_seconds, now, played
from worlds.aws import CLUSTER, ClassStore, Notices, a_claim_of_ec2

MINUTE, HOUR = 60.0, 3600.0
DAY = 24 * HOUR
SETTINGS = AwsSettings(cluster="dovetail", region=REGION, enable_zonal_shift=True)
NOT_FOUND = Denied(code="NoSuchEntity", message="not found")
ALLOWED = Denied(code="DryRunOperation", message="it would be")
GROUP = {"GroupId": "pg-1", "GroupName": "g", "Strategy": "cluster"}


def a_reservation(count: int = 5, **change: Any) -> Json:
    """A reservation as EC2 describes it."""
    return {
        "CapacityReservationId": "cr-1",
        "InstanceType": "m5.large",
        "AvailabilityZone": ZONES[0],
        "OwnerId": "111122223333",
        "InstanceMatchCriteria": "targeted",
        "AvailableInstanceCount": count,
        **change,
    }


def answers(**change: Answer) -> dict[str, Answer]:
    """An account in which a class resolves, with everything that such a class may name."""
    subnets = [
        {
            "SubnetId": f"subnet-{n}",
            "AvailabilityZone": zone,
            "AvailabilityZoneId": f"id-{n}",
            "AvailableIpAddressCount": 9,
        }
        for n, zone in enumerate(ZONES)
    ]
    image = {"ImageId": "ami-1", "Name": "i", "Architecture": "x86_64", "CreationDate": "2026-01-01T00:00:00.000Z"}
    profile = {"InstanceProfile": {"InstanceProfileName": "p", "Roles": [{"RoleName": "KarpenterNodeRole-dovetail"}]}}
    return {
        **region_answers(),
        **price_answers(),
        "DescribeSubnets": {"Subnets": subnets},
        "DescribeSecurityGroups": {"SecurityGroups": [{"GroupId": "sg-1", "GroupName": "g"}]},
        "GetParameter": {"Parameter": {"Value": "ami-1"}},
        "DescribeImages": {"Images": [image]},
        "GetInstanceProfile": profile,
        "ListInstanceProfiles": {"InstanceProfiles": []},
        "DescribePlacementGroups": {"PlacementGroups": [GROUP]},
        "DescribeCapacityReservations": {"CapacityReservations": [a_reservation()]},
        "DescribeLaunchTemplates": {"LaunchTemplates": []},
        "CreateLaunchTemplate": {},
        "CreateFleet": ALLOWED,
        "RunInstances": ALLOWED,
        "DescribeInstances": {"Reservations": []},
        "DescribeInstanceStatus": {"InstanceStatuses": []},
        "DescribeCluster": {"cluster": {"arn": "arn:c", "version": "1.36"}},
        "GetManagedResource": {"zonalShifts": []},
        **change,
    }


class Written:
    """Takes every write; there are no nodes."""

    async def patch(self, *_: Any) -> None: ...

    async def patch_status(self, *_: Any) -> None: ...

    async def delete(self, *_: Any) -> None: ...

    async def list_by_provider_id(self, *_: Any) -> list[Any]:
        return []


NAMING: Json = {
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "placementGroupSelector": {"name": "g"},
    "capacityReservationSelectorTerms": [{"id": "cr-1"}],
}


@dataclass(frozen=True, slots=True)
class World:
    """The adapter as a worker has it, and the cluster beside it."""

    calls: ScriptedCalls
    adapter: AwsAdapter
    classes: ClassStore
    versions: list[float]  # when the API server was asked for its version

    @classmethod
    def opened(cls, **change: Answer) -> "World":
        calls, classes, versions = ScriptedCalls(answers(**change), now), ClassStore(), list[float]()

        async def version_now() -> str:
            versions.append(now())
            return "1.36"

        facts = replace(CLUSTER, service_cidr="10.0.0.0/16")
        given = Surroundings(
            node_classes=classes.raw, cluster=facts, calls=calls, server=ServerNow(version_now), clock=now
        )
        return cls(calls, AwsAdapter.open(SETTINGS, given), classes, versions)

    def keeper(self, *claims: NodeClaim) -> Ec2NodeClassUpkeep:
        """What keeps the classes, with these claims in the cluster."""
        written = cast(Any, Written())
        cluster = UpkeepCluster(
            objects=self.classes,
            claims=written,
            notices=Notices(),
            nodes=written,
            now=ClusterNow(claims=lambda: claims, pools=tuple),
        )
        return self.adapter.node_class_upkeep(cluster)

    async def upkeep(self, *claims: NodeClaim) -> None:
        """As the worker's step does it: the next look is at the moment that the last one has named."""
        self.classes.apply(**NAMING)
        keeper = self.keeper(*claims)
        while True:
            again = await keeper.keep()
            await asyncio.sleep(max(again - now(), 0.2))

    def rhythm(self, operation: str) -> set[float]:
        """The pauses between the moments at which it was asked."""
        moments = sorted({round(moment) for moment in self.calls.moments(operation)})
        return {later - earlier for earlier, later in pairwise(moments)}


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_types, "monotonic", now)


# --- loops


def test_the_adapter_refreshes_types_prices_and_shifted_zones_at_upstreams_pace() -> None:
    """AWS-169."""

    async def a_day() -> World:
        world = World.opened()
        world.adapter.start()
        await asyncio.sleep(25 * HOUR)
        await world.adapter.close()
        return world

    world = played(a_day())

    assert {operation: world.rhythm(operation) for operation in world.calls.answers if world.rhythm(operation)} == {
        "DescribeInstanceTypes": {12 * HOUR},
        "DescribeInstanceTypeOfferings": {12 * HOUR},
        "GetProducts": {12 * HOUR},
        "DescribeSpotPriceHistory": {12 * HOUR},
        "GetManagedResource": {30.0},
    }


def test_the_upkeep_of_a_class_asks_aws_at_upstreams_pace() -> None:
    """AWS-169: but for what a launch would be allowed, which upstream looks at every ten minutes, and asks EC2 about
    every thirty."""
    reserved = a_claim_of_ec2(
        provider_id="aws:///us-west-2a/i-1",
        labels={core.CAPACITY_TYPE: core.CAPACITY_RESERVED, names.RESERVATION_ID: "cr-1"},
    )

    async def two_hours() -> World:
        world = World.opened()
        await for_seconds(2 * HOUR + MINUTE, world.upkeep(reserved))
        return world

    world = played(two_hours())

    assert {operation: world.rhythm(operation) for operation in world.calls.answers if world.rhythm(operation)} == {
        "DescribeSubnets": {MINUTE},
        "DescribeSecurityGroups": {MINUTE},
        "DescribeImages": {MINUTE},
        "DescribePlacementGroups": {MINUTE},
        "DescribeCapacityReservations": {MINUTE},
        "DescribeInstances": {MINUTE},
        "GetInstanceProfile": {15 * MINUTE},
        "CreateFleet": {30 * MINUTE},
        "RunInstances": {30 * MINUTE},
        "ListInstanceProfiles": {30 * MINUTE},
        "DescribeLaunchTemplates": {30 * MINUTE},
        "CreateLaunchTemplate": {30 * MINUTE},
    }
    assert {later - earlier for earlier, later in pairwise(world.versions)} == {5 * MINUTE}


def test_instances_are_checked_every_minute_and_the_queue_is_asked_without_a_pause() -> None:
    """AWS-169: a question waits twenty seconds for messages."""
    settings = replace(SETTINGS, interruption_queue="q")

    async def answer(_: Sequence[Interruption]) -> None: ...

    async def an_hour() -> World:
        world = World.opened(GetQueueUrl={"QueueUrl": "u"}, ReceiveMessage={})
        world.calls.takes["ReceiveMessage"] = 20.0
        given = Surroundings(node_classes=dict, calls=world.calls, clock=now)
        interruptions = AwsAdapter.open(settings, given).interruptions
        checks, reader = InstanceChecks(interruptions, answer), WarningReader(interruptions, answer)
        await for_seconds(HOUR, checks.run(), reader.read(lambda: True))
        return world

    world = played(an_hour())

    assert (world.rhythm("DescribeInstanceStatus"), world.rhythm("ReceiveMessage")) == ({MINUTE}, {20.0})
    assert {each["WaitTimeSeconds"] for each in world.calls.parameters("ReceiveMessage")} == {20}


def test_a_class_is_looked_at_again_when_the_first_of_its_reservations_has_ended() -> None:
    """AWS-144: and the reservation is gone from its status, though EC2's answer is not a minute old."""
    seconds = [61.0, 70.5]

    async def story() -> list[tuple[float, int]]:
        began, seen = now(), list[tuple[float, int]]()
        ends = [a_reservation(CapacityReservationId=f"cr-{n}", EndDate=at(began + s)) for n, s in enumerate(seconds)]
        world = World.opened(DescribeCapacityReservations={"CapacityReservations": ends})
        world.classes.apply(**NAMING)
        keeper = world.keeper()
        while now() - began < 100.0:
            again = await keeper.keep()
            left = world.classes.objects["default"]["status"].get("capacityReservations") or []
            if not seen or len(left) != seen[-1][1]:
                seen.append((now() - began, len(left)))
            await asyncio.sleep(max(again - now(), 0.2))
        return seen

    found = played(story())

    assert [left for _, left in found] == [2, 1, 0]
    assert all(0.0 <= moment - end <= 1.0 for (moment, _), end in zip(found[1:], seconds, strict=True))


# --- what is remembered


def at(moment: float) -> datetime:
    """As EC2 gives a moment."""
    return datetime.fromtimestamp(moment, UTC)


def a_class(**change: Any) -> NodeClass:
    """A class as it is read."""
    found = read_class(ClassStore().apply(**{**NAMING, **change}))
    assert isinstance(found, NodeClass)
    return found


Look = Callable[[], Awaitable[object]]


async def asked_again(look: Look, calls: ScriptedCalls, operation: str, seconds: float) -> tuple[bool, bool]:
    """Whether AWS is asked again just before so many seconds are over, and just after."""
    await look()
    before = len(calls.moments(operation))
    assert before, "it was never asked"
    await asyncio.sleep(seconds - 1.5)
    await look()
    early = len(calls.moments(operation))
    await asyncio.sleep(2.0)
    await look()
    return early > before, len(calls.moments(operation)) > early


def images(calls: ScriptedCalls) -> Look:
    found, node_class = Images(calls, MINUTE, now), a_class()
    return lambda: found.of_class(node_class, "1.36")


def published_images(calls: ScriptedCalls) -> Look:
    found, node_class = Images(calls, 1.0, now), a_class()
    return lambda: found.of_class(node_class, "1.36")


def images_of_a_parameter(calls: ScriptedCalls) -> Look:
    found, terms = Images(calls, 1.0, now), [{"ssmParameter": "/my/image"}]
    node_class = a_class(amiSelectorTerms=terms, amiFamily="AL2023")
    return lambda: found.of_class(node_class, "1.36")


def subnets(calls: ScriptedCalls) -> Look:
    found, node_class = Subnets(calls, MINUTE, now), a_class()
    return lambda: found.of_class(node_class)


def groups(calls: ScriptedCalls) -> Look:
    found, node_class = SecurityGroups(calls, MINUTE, now), a_class()
    return lambda: found.of_class(node_class)


def placement(calls: ScriptedCalls) -> Look:
    found, node_class = PlacementGroups(calls, now), a_class()
    return lambda: found.of_class(node_class)


def reservations(calls: ScriptedCalls) -> Look:
    found, node_class = Reservations(calls, now), a_class()
    return lambda: found.of_class(node_class)


def profiles(calls: ScriptedCalls) -> Look:
    found, raw = Profiles(calls, SETTINGS, now), ClassStore().apply()
    node_class = read_class({**raw, "status": {"instanceProfile": "p"}})
    assert isinstance(node_class, NodeClass)
    return lambda: found.of_class(node_class)


def version(calls: ScriptedCalls) -> Look:
    return Cluster(calls, SETTINGS, ClusterFacts(), clock=now, server=None).version


def templates(calls: ScriptedCalls) -> Look:
    calls.answers["DescribeLaunchTemplates"] = {"LaunchTemplates": [{"LaunchTemplateName": "t"}]}
    found = LaunchTemplates(calls, now)
    return lambda: found.exists("t")


@pytest.mark.parametrize(
    ("made", "operation", "seconds"),
    [
        (subnets, "DescribeSubnets", MINUTE),
        (images, "DescribeImages", MINUTE),
        (published_images, "GetParameter", DAY),
        (images_of_a_parameter, "GetParameter", 5 * MINUTE),
        (groups, "DescribeSecurityGroups", 59.0),
        (placement, "DescribePlacementGroups", MINUTE),
        (reservations, "DescribeCapacityReservations", MINUTE),
        (profiles, "GetInstanceProfile", 15 * MINUTE),
        (version, "DescribeCluster", 5 * MINUTE),
    ],
)
def test_an_answer_is_kept_as_long_as_upstream_keeps_it(
    made: Callable[[ScriptedCalls], Look], operation: str, seconds: float
) -> None:
    """AWS-170."""

    async def story() -> tuple[bool, bool]:
        calls = ScriptedCalls(answers(), now)
        return await asked_again(made(calls), calls, operation, seconds)

    assert played(story()) == (False, True)


def available_images(calls: ScriptedCalls) -> Look:
    found = AvailableImages(calls, now)
    return lambda: found.among(frozenset({"ami-1"}))


@pytest.mark.parametrize(
    ("made", "operation"),
    [
        (subnets, "DescribeSubnets"),
        (placement, "DescribePlacementGroups"),
        (reservations, "DescribeCapacityReservations"),
        (available_images, "DescribeImages"),
    ],
)
def test_a_question_that_hangs_is_one_call_and_its_former_answer_serves(
    made: Callable[[ScriptedCalls], Look], operation: str
) -> None:
    """AWS-29, AWS-45, AWS-144: three hundred launches at once would fill every thread with calls that hang."""

    async def story() -> list[tuple[int, float, set[bool]]]:
        calls, seen = ScriptedCalls(answers(), now), list[tuple[int, float, set[bool]]]()
        look, seconds = made(calls), asyncio.get_running_loop().time

        async def look_at_once() -> None:
            begun = seconds()
            found = await asyncio.gather(*[look() for _ in range(50)], return_exceptions=True)
            unknown = {isinstance(each, Unreachable) for each in found}
            seen.append((len(calls.moments(operation)), round(seconds() - begun, 1), unknown))

        calls.takes[operation] = 170.0
        for pause in (0.0, 150.0, 20.0, HOUR, 30.0, 120.0):  # the first hangs, the second has just been answered
            await asyncio.sleep(pause)
            await look_at_once()
        await asyncio.sleep(170.0)
        return seen

    assert played(story()) == [
        (1, 10.0, {True}),
        (1, 10.0, {False}),
        (1, 0.0, {False}),
        (2, 10.0, {False}),
        (2, 0.0, {False}),
        (2, 0.0, {False}),
    ]


def test_a_template_that_is_used_stays_known_for_ten_minutes_more() -> None:
    """AWS-170: upstream knows one for a minute; here its name is that of its content, so that it cannot be stale."""

    async def story() -> list[int]:
        calls, known = ScriptedCalls(answers(), now), []
        look = templates(calls)
        for pause in (0.0, 599.0, 599.0, 601.0):
            await asyncio.sleep(pause)
            await look()
            known.append(len(calls.moments("DescribeLaunchTemplates")))
        return known

    assert played(story()) == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("term", "minutes"),
    [({"alias": "al2023@latest"}, 10), ({"ssmParameter": "/golden/image"}, 1)],
    ids=["alias", "own"],
)
def test_a_parameter_that_is_missing_is_asked_for_again_after_ten_minutes_and_a_users_own_after_one(
    term: dict[str, str], minutes: int
) -> None:
    """AWS-170, AWS-37: upstream asks every minute. A user's own may be made in the minute in which its class is."""

    async def story() -> tuple[bool, bool]:
        missing = Denied(code="ParameterNotFound", message="none")
        calls = ScriptedCalls(answers(GetParameter=missing), now)
        found, node_class = Images(calls, MINUTE, now), a_class(amiSelectorTerms=[term], amiFamily="AL2023")

        async def look() -> None:
            with suppress(ImageError):  # only an alias without any image is one
                await found.of_class(node_class, "1.36")

        return await asked_again(look, calls, "GetParameter", minutes * MINUTE)

    assert played(story()) == (False, True)


def test_a_role_that_is_missing_is_asked_for_again_after_a_minute() -> None:
    """AWS-170."""

    async def story() -> tuple[bool, bool]:
        missing: dict[str, Answer] = {"CreateInstanceProfile": {}, "AddRoleToInstanceProfile": NOT_FOUND}
        missing["DeleteInstanceProfile"] = {}
        calls = ScriptedCalls(answers(GetInstanceProfile={"InstanceProfile": {"Roles": []}}, **missing), now)
        found, node_class = Profiles(calls, SETTINGS, now), a_class()

        async def look() -> None:
            with pytest.raises(RoleMissing):
                await found.of_class(node_class)

        return await asked_again(look, calls, "AddRoleToInstanceProfile", MINUTE)

    assert played(story()) == (False, True)


Holds = Callable[[], Awaitable[bool]]


async def a_shortage(_: ScriptedCalls) -> Holds:
    shortages, one = Shortages(None, now), Shortage(capacity_type="spot", instance_type="m5.large", zone=ZONES[0])
    await shortages.remember([one])
    return as_answer(lambda: shortages.holds(one))


async def free_addresses(calls: ScriptedCalls) -> Holds:
    found = Subnets(calls, MINUTE, now)
    await found.of_class(a_class())
    return as_answer(lambda: found.room("subnet-0") == 9)


async def free_addresses_of_a_slower_refresh(calls: ScriptedCalls) -> Holds:
    found = Subnets(calls, 10 * MINUTE, now)
    await found.of_class(a_class())
    return as_answer(lambda: found.room("subnet-0") == 9)


async def a_placement_group(calls: ScriptedCalls) -> Holds:
    found, node_class = PlacementGroups(calls, now), a_class()
    await found.of_class(node_class)
    return as_answer(lambda: found.known(node_class) is not None)


async def a_count(calls: ScriptedCalls) -> Holds:
    found = Reservations(calls, now)
    [one] = await found.of_class(a_class())
    return as_answer(lambda: found.counted(one).count == 5)


async def a_profile_that_was_just_made(calls: ScriptedCalls) -> Holds:
    """It is not collected, though no class names it yet."""
    calls.answers |= {"CreateInstanceProfile": {}, "AddRoleToInstanceProfile": {}, "DeleteInstanceProfile": {}}
    calls.answers |= {"GetInstanceProfile": NOT_FOUND}
    found = Profiles(calls, SETTINGS, now)
    name = await found.of_class(a_class())
    listed = {"InstanceProfileName": name, "Path": found.path("x")}
    calls.answers["ListInstanceProfiles"] = {"InstanceProfiles": [listed]}

    async def stays() -> bool:
        return await found.unused(frozenset()) == []

    return stays


async def memory_that_a_node_has_shown(_: ScriptedCalls) -> Holds:
    node, claim = a_joined_pair("n")
    labels, registered = {core.INSTANCE_TYPE: "m5.large"}, Condition(type=core.REGISTERED_CONDITION, status="True")
    shown = [(replace(claim, labels=labels, image_id="ami-1", conditions=(registered,)), node)]
    found, raw = ObservedMemory(lambda: tuple(shown), now), ClassStore().apply()
    status = {"amis": [{"id": "ami-1", "name": "i", "requirements": []}]}
    node_class = read_class({**raw, "status": status})
    assert isinstance(node_class, NodeClass)
    assert found.of_class(node_class)
    shown.clear()
    return as_answer(lambda: "m5.large" in found.of_class(node_class))


def as_answer(look: Callable[[], bool]) -> Holds:
    async def answer() -> bool:
        return look()

    return answer


@pytest.mark.parametrize(
    ("learned", "seconds"),
    [
        (a_shortage, 3 * MINUTE),
        (free_addresses, 5 * MINUTE),
        (free_addresses_of_a_slower_refresh, 14 * MINUTE),
        (a_placement_group, DAY),
        (a_count, DAY),
        (a_profile_that_was_just_made, HOUR),
        (memory_that_a_node_has_shown, 60 * DAY),
    ],
)
def test_what_was_learned_holds_as_long_as_upstream_remembers_it(
    learned: Callable[[ScriptedCalls], Awaitable[Holds]], seconds: float
) -> None:
    """AWS-170."""

    async def story() -> tuple[bool, bool]:
        calls = ScriptedCalls(answers(), now)
        holds = await learned(calls)
        await asyncio.sleep(seconds - 1.5)
        early = await holds()
        await asyncio.sleep(3.0)
        return early, await holds()

    assert played(story()) == (True, False)


def test_counts_of_reservations_outlast_an_outage_of_ec2_for_a_day() -> None:
    """AWS-145: less our own launches; after that nothing is known to be left."""

    async def story() -> list[int]:
        calls = ScriptedCalls(answers(), now)
        found, node_class = Reservations(calls, now), a_class()
        [known] = await found.of_class(node_class)
        calls.answers["DescribeCapacityReservations"] = Unreachable("ec2", "away")
        seen = []
        for pause in (HOUR, 23 * HOUR, 2 * HOUR):
            await asyncio.sleep(pause)
            if pause == HOUR:
                found.launched("cr-1")
                assert await found.of_class(node_class) == [replace(known, count=4)]
            else:
                with pytest.raises(Unreachable):
                    await found.of_class(node_class)
            seen.append(found.counted(known).count)
        return seen

    assert played(story()) == [4, 4, 0]

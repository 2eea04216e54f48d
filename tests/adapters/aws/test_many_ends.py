"""Three hundred instances that end at once: what EC2 is asked for each of them, on a simulated clock."""

import asyncio
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.adapters.aws import names
from dovetail.adapters.aws.cloud import AwsCloud, Parts
from dovetail.adapters.aws.instances.instance import LIVE_STATES
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.values.json import Json
from tests.lifecycle.objects import a_joined_claim
from tests.simulated_loop import now, played
from worlds.fakes import World, departure_ports

SHUTDOWN, LAG = 45.0, 3.0  # seconds; a description is as old as the second
CLUSTER = "c"


def identity(number: int) -> str:
    return f"i-{number:017x}"


@dataclass
class Ec2:
    """Instances that run until they are told to end; `deaf`: how many requests for an instance get lost."""

    region: str = "eu-west-1"
    deaf: dict[str, int] = field(default_factory=dict)
    told: dict[str, float] = field(default_factory=dict)
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    async def attempt(self, service: str, operation: str, **given: Any) -> Json:
        ids: list[str] = given["InstanceIds"]
        self.asked.append((operation, ids))
        await asyncio.sleep(0.1)
        if operation == "DescribeInstances":
            rows = [self.shown(one) for one in ids]
            states = next((each["Values"] for each in given.get("Filters", ())), ("terminated", *LIVE_STATES))
            return {"Reservations": [{"Instances": [row for row in rows if row["State"]["Name"] in states]}]}
        for one in ids:
            if self.deaf.get(one, 0):
                self.deaf[one] -= 1
            else:
                self.told.setdefault(one, now())
        return {}

    def shown(self, one: str) -> Json:
        """One that has ended is shown for an hour."""
        since = now() - self.told.get(one, now())
        state = "terminated" if since >= SHUTDOWN else "shutting-down" if since >= LAG else "running"
        tags = [{"Key": names.CLUSTER_TAG, "Value": CLUSTER}]
        return {"InstanceId": one, "State": {"Name": state}, "Tags": tags}

    def times(self, operation: str, one: str) -> int:
        return sum(one in ids for name, ids in self.asked if name == operation)


def cloud_over(ec2: Ec2) -> AwsCloud:
    settings = cast(Any, SimpleNamespace(cluster=CLUSTER, cluster_uid="", reserved_capacity=True))
    calls, unused = cast(Any, ec2), cast(Any, None)
    offerings = cast(Any, SimpleNamespace(shifted=frozenset(), sources=SimpleNamespace(settings=settings)))
    inventory = Inventory(calls, settings, claims=tuple, clock=time.time, shifted=frozenset)
    parts = Parts(
        calls=calls,
        classes=unused,
        offerings=offerings,
        inventory=inventory,
        preparer=unused,
        launcher=unused,
        sized=unused,
    )
    return AwsCloud(parts)


async def end(cloud: AwsCloud, count: int, apart: float) -> None:
    """The step for each of them, one begun every so many seconds."""
    world = World()
    departing = BeginAndEndDeparture(departure_ports(world, cloud=cloud), now)
    step = TerminateInstance(departing.known, cloud, now, departing)

    async def one(number: int) -> None:
        await asyncio.sleep(apart * number)
        claim = ClaimRef(name=f"claim-{number}", uid=f"uid-{number}")
        provider_id = f"aws:///eu-west-1a/{identity(number)}"
        world.put(a_joined_claim(claim.name, uid=claim.uid, provider_id=provider_id, deleting_since=1.0))
        outcome = await step.terminate_instance(Departure(claim=claim, provider_id=provider_id))
        assert outcome.message == f"{provider_id} is gone"

    await asyncio.gather(*[one(number) for number in range(count)])


def test_three_hundred_ends_at_once_are_less_than_two_calls_each() -> None:
    """It was fifteen: each look of each of them had a call of its own."""
    ec2 = Ec2()
    played(end(cloud_over(ec2), 300, apart=0.1))

    assert len(ec2.asked) <= 2 * 300
    assert {ec2.times("TerminateInstances", identity(n)) for n in range(300)} == {1}


def test_an_instance_is_told_to_end_again_only_where_the_request_was_lost() -> None:
    ec2 = Ec2(deaf={identity(1): 1})
    played(end(cloud_over(ec2), 3, apart=1.0))

    assert [ec2.times("TerminateInstances", identity(n)) for n in range(3)] == [1, 2, 1]

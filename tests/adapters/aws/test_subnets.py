"""Which subnet of a class is offered to a launch: the one with the most room that our launches leave (AWS-71)."""

from types import SimpleNamespace
from typing import Any, cast

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.subnets import Subnets

FREE = {"subnet-a": 5, "subnet-b": 20, "subnet-c": 0}


class Described:
    """Answers with these subnets, all of one zone."""

    async def every(self, *asked: object, **fields: object) -> list[dict[str, Any]]:
        return [
            {"SubnetId": name, "AvailabilityZone": "z1", "AvailableIpAddressCount": free} for name, free in FREE.items()
        ]


async def described() -> tuple[Subnets, list[str]]:
    subnets = Subnets(cast(Calls, Described()), refresh=60.0, clock=lambda: 1000.0)
    selected = SimpleNamespace(subnet_selector_terms=[SimpleNamespace(id="", tags={"a": "b"})])
    found = await subnets.of_class(cast(NodeClass, SimpleNamespace(uid="u", generation=1, spec=selected)))
    return subnets, [subnet.id for subnet in found]


async def test_the_roomiest_subnet_comes_first() -> None:
    """AWS-71."""
    _, found = await described()

    assert found == ["subnet-b", "subnet-a", "subnet-c"]


async def test_what_our_launches_may_use_is_taken_off_and_given_back() -> None:
    """AWS-71: it may go below nothing, and that alone makes no subnet full."""
    subnets, _ = await described()

    subnets.take("subnet-a", 7)
    taken = subnets.room("subnet-a")
    subnets.take("subnet-a", -7)

    assert (taken, subnets.room("subnet-a")) == (-2, 5)
    assert [subnets.is_full(name) for name in FREE] == [False, False, True]

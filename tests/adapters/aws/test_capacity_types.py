"""AWS-104: whether an instance is spot, reserved or on-demand, by what EC2 says of it."""

import pytest

from dovetail.adapters.aws.instances.instance import read_instance
from dovetail.model import names
from dovetail.model.values.json import Json

IN_A_RESERVATION = {"CapacityReservationId": "cr-01"}
ONLY_THERE = {"CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-only"}}
ANYWHERE = {"CapacityReservationSpecification": {"CapacityReservationPreference": "open"}}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, (names.CAPACITY_ON_DEMAND, None)),
        ({"SpotInstanceRequestId": "sir-1"}, (names.CAPACITY_SPOT, None)),
        ({"InstanceLifecycle": "spot"}, (names.CAPACITY_SPOT, None)),
        ({**IN_A_RESERVATION, **ONLY_THERE}, (names.CAPACITY_RESERVED, "cr-01")),
        ({**IN_A_RESERVATION, **ANYWHERE}, (names.CAPACITY_ON_DEMAND, None)),
        (IN_A_RESERVATION, (names.CAPACITY_ON_DEMAND, None)),
        (ONLY_THERE, (names.CAPACITY_ON_DEMAND, None)),
    ],
)
def test_an_instance_is_what_its_request_or_its_reservation_makes_it(said: Json, found: tuple[str, str | None]) -> None:
    """AWS-104: one that happens to be in an open reservation was not launched for it."""
    facts = read_instance({"InstanceId": "i-0a000000", **said})

    assert (facts.capacity_type, facts.reservation_id) == found

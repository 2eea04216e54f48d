"""Why a class, a reservation or a placement group keeps instance types back, in the words of `dovetail explain`."""

import time
from dataclasses import replace
from typing import Any

import pytest

from dovetail.adapters.aws import names as aws
from dovetail.adapters.aws.catalogue.shortages import Shortage, class_scope
from dovetail.answers.explain.pool_words import pools_left_out
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.pods import Expression
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import CPU, NANO
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import PlacementSettings
from tests.adapters.aws.conftest import Stage
from tests.adapters.aws.test_provider_rules import OPEN, with_reservations
from tests.placement.builders import a_shape, a_snapshot, a_waiting_pod
from worlds.aws import REFERENCE, amd64, one_of

SETTINGS = PlacementSettings(well_known=names.WELL_KNOWN_LABELS | aws.WELL_KNOWN)
IN_RESERVATION = a_shape(node_selector=((names.CAPACITY_TYPE, "reserved"),))


async def _world(stage: Stage, *requirements: Expression, **pod: Any) -> Snapshot:
    """A pod, and a pool with these requirements and the catalogue that EC2's stand-in leaves it."""
    template = ClaimTemplate(node_class=REFERENCE, requirements=(amd64(), *requirements))
    pool = NodePool(name="gpu", uid="p", conditions=(Condition(type="Ready", status="True"),), template=template)
    catalogue = await stage.adapter.catalogues.catalogue(pool)
    world = a_snapshot([a_waiting_pod("p", **pod)], pools=[pool])
    return replace(world, catalogues={"gpu": catalogue}, now=time.time())


def _left_out(world: Snapshot) -> str:
    [(_, words)] = pools_left_out(Index(world, SETTINGS))
    return words


async def test_a_reservation_without_an_instance_left_is_named(stage: Stage) -> None:
    """Where a pool has nothing else, and where a pod asks for it."""
    await with_reservations(stage, {**OPEN, "available": 0})
    alone = await _world(stage, one_of(names.CAPACITY_TYPE, "reserved"))
    beside = await _world(stage, one_of(names.CAPACITY_TYPE, "reserved", "on-demand"), shape=IN_RESERVATION)
    says = f"reservation {OPEN['id']} has no instance left: reserved in us-west-2a"

    assert _left_out(alone) == f"{says}; wider types or zones would help"
    [refused] = place(Index(beside, SETTINGS)).refused
    assert refused.pools[0].conflict.startswith(f"{says}; requirements=")


async def test_a_reservation_with_instances_left_is_none_of_the_reasons(stage: Stage) -> None:
    await with_reservations(stage, {**OPEN, "available": 2})
    world = await _world(stage, one_of(names.CAPACITY_TYPE, "reserved"))

    assert pools_left_out(Index(world, SETTINGS)) == ()
    assert place(Index(world, SETTINGS)).new


@pytest.mark.parametrize("how", ["in use", "left", "short", "refused the class", "ending"])
async def test_a_reservation_is_full_only_where_nothing_else_keeps_an_instance_from_being_launched(
    stage: Stage, how: str
) -> None:
    """AWS-146: a node that leaves gives the others nothing back."""
    left = {"available": 3 if how == "left" else 0}
    ends = {"rtype": "capacity-block", "endIn": 1800.0} if how == "ending" else {}
    await with_reservations(stage, {**OPEN, **left, **ends})
    uid = stage.classes.objects[REFERENCE.name]["metadata"]["uid"]
    scope = {"short": "cr-01", "refused the class": class_scope("cr-01", uid)}.get(how, "")
    if scope:
        shortages = stage.adapter.cloud._parts.offerings.sources.shortages
        await shortages.remember([Shortage(capacity_type="reserved", scope=scope)])
    world = await _world(stage, one_of(names.CAPACITY_TYPE, "reserved"))
    found = [
        offering
        for each in world.catalogues["gpu"].types
        for offering in each.offerings
        if one_of("karpenter.k8s.aws/capacity-reservation-id", "cr-01") in offering.requirements
    ]

    assert [(each.full, each.available) for each in found] == [(how == "in use", how == "left")]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"placementGroupSelector": {"id": "pg-01"}}, "placement group ps takes no such type: t3.medium"),
        ({"enclaveOptions": {"enabled": True}}, "no enclaves (spec.enclaveOptions): t3.medium"),
    ],
)
async def test_types_that_cannot_be_launched_as_the_class_asks_are_named_with_the_reason(
    stage: Stage, spec: dict[str, Any], says: str
) -> None:
    stage.patch(placementGroups=[{"id": "pg-01", "name": "ps", "strategy": "cluster"}])
    await stage.with_class(**spec)
    world = await _world(stage, one_of(names.CAPACITY_TYPE, "on-demand"), one_of(names.INSTANCE_TYPE, "t3.medium"))

    assert _left_out(world) == says
    [refused] = place(Index(world, SETTINGS)).refused
    assert refused.pools[0].conflict.endswith(says)


async def test_a_pod_that_asks_for_a_type_that_is_sold_out_reads_that(stage: Stage) -> None:
    await stage.with_class()
    wanted = a_shape(node_selector=((names.INSTANCE_TYPE, "m5.large"),))
    world = await _world(stage, one_of(names.CAPACITY_TYPE, "on-demand"), shape=wanted)
    [sold] = [each for each in world.catalogues["gpu"].types if each.name == "m5.large"]
    offerings = tuple(replace(o, available=False, short_until=world.now + 60) for o in sold.offerings)
    others = (each for each in world.catalogues["gpu"].types if each is not sold)
    types = (*others, replace(sold, offerings=offerings))
    short = replace(world, catalogues={"gpu": replace(world.catalogues["gpu"], types=types)})

    assert place(Index(world, SETTINGS)).new
    [refused] = place(Index(short, SETTINGS)).refused
    assert refused.pools[0].conflict.startswith("the cloud has run out of m5.large on-demand in us-west-2a")
    assert refused.reasons == ("it_offering",)
    large = replace(short, pods={"p": replace(short.pods["uid-p"], requests={CPU: 99 * NANO})})
    [refused] = place(Index(large, SETTINGS)).refused
    assert refused.reasons != ("it_offering",)  # it would not hold the pod either

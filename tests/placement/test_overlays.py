"""NodeOverlays: which types they select, who wins, who contradicts whom (PLC-138, NPL-50 to NPL-56)."""

from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.names import CAPACITY_OVERLAY, PRICE_OVERLAY
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, InstanceType, NodePool, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.placement.facts.type_table import allocatable
from dovetail.placement.overlays import Overlaid, overlay
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import a_general_pool, a_type, a_waiting_pod

GPU = {"example.com/gpu": 2}


def an_overlay(name: str, *wanted: tuple[str, str], **fields: object) -> NodeOverlay:
    requirements = tuple(Expression(key=key, operator="In", values=(value,)) for key, value in wanted)
    return NodeOverlay(name=name, requirements=requirements, **fields)  # type: ignore[arg-type]


def overlaid(
    *overlays: NodeOverlay,
    pools: tuple[NodePool, ...] = (),
    fault: str = "",
    types: tuple[InstanceType, ...] = (a_type("small", "2", 0.1), a_type("large", "8", 0.4)),
) -> Overlaid:
    chosen = pools or (a_general_pool(),)
    catalogues = {pool.name: Catalogue(types=types) for pool in chosen}
    if fault:
        catalogues[fault] = Catalogue(error="cannot be listed")
    return overlay(overlays, {pool.name: pool for pool in chosen}, catalogues)


def the_type(found: Overlaid, name: str, pool: str = "default") -> InstanceType:
    return next(item for item in found.catalogues[pool].types if item.name == name)


def _value(offering: Offering, key: str) -> str:
    return next(e.values[0] for e in offering.requirements if e.key == key)


def prices(item: InstanceType) -> dict[tuple[str, str], float]:
    return {(_value(o, names.ZONE), _value(o, names.CAPACITY_TYPE)): o.price for o in item.offerings}


def test_an_overlay_prices_only_the_offerings_that_it_selects() -> None:
    """An overlay prices only the offerings that it selects (NPL-52, NPL-56)."""
    before = overlaid()
    after = overlaid(an_overlay("a", (names.CAPACITY_TYPE, "spot"), (names.INSTANCE_TYPE, "small"), price="0.001"))

    changed = {
        place: price
        for place, price in prices(the_type(after, "small")).items()
        if price != prices(the_type(before, "small"))[place]
    }
    assert set(changed.values()) == {0.001}
    assert {kind for _, kind in changed} == {"spot"}
    assert the_type(after, "large") == the_type(before, "large")
    assert {o.price_overlay for o in the_type(after, "small").offerings} == {True, False}


def test_a_signed_price_changes_what_the_cloud_asks_and_never_below_nothing() -> None:
    """A signed price is added to the price of the cloud, down to zero at most (PLC-138, NPL-56)."""
    base = prices(the_type(overlaid(), "small"))
    assert prices(the_type(overlaid(an_overlay("a", price="+50%")), "small")) == {k: v * 1.5 for k, v in base.items()}
    assert set(prices(the_type(overlaid(an_overlay("a", price="-1000")), "small")).values()) == {0.0}


def test_capacity_belongs_to_the_whole_type_if_any_offering_is_selected() -> None:
    """Capacity belongs to the whole type if any offering is selected (NPL-52)."""
    found = overlaid(an_overlay("a", (names.CAPACITY_TYPE, "spot"), capacity=GPU))
    assert the_type(found, "large").capacity["example.com/gpu"] == 2
    assert the_type(found, "large").capacity_overlay


def test_a_type_none_of_whose_offerings_is_selected_gets_no_capacity() -> None:
    """NPL-52: although the type itself would suit, by its zones and by its capacity types."""
    large = a_type("large", "8", 0.4)
    sold = {(_value(o, names.ZONE), _value(o, names.CAPACITY_TYPE)): o for o in large.offerings}
    (zone, kind), *_ = sold
    others = tuple(o for (where, how), o in sold.items() if (where == zone) != (how == kind))
    asked = an_overlay("a", (names.ZONE, zone), (names.CAPACITY_TYPE, kind), capacity=GPU)

    with_it, without_it = overlaid(asked, types=(large,)), overlaid(asked, types=(replace(large, offerings=others),))

    assert "example.com/gpu" in the_type(with_it, "large").capacity
    assert {_value(o, names.ZONE) for o in others} > {zone}
    assert "example.com/gpu" not in the_type(without_it, "large").capacity


def test_the_heavier_overlay_wins_per_offering_and_per_resource() -> None:
    """The heavier overlay wins per offering and per resource (PLC-138, NPL-51, NPL-53)."""
    found = overlaid(
        an_overlay("light", price="7", capacity={**GPU, "example.com/fpga": 1}, weight=1),
        an_overlay("heavy", price="5", capacity={"example.com/gpu": 4}, weight=2),
    )
    small = the_type(found, "small")
    assert set(prices(small).values()) == {5.0}
    assert (small.capacity["example.com/gpu"], small.capacity["example.com/fpga"]) == (4, 1)
    assert found.verdicts == {"light": "applied", "heavy": "applied"}


def test_of_two_overlays_of_one_weight_on_one_price_the_earlier_name_is_rejected_everywhere() -> None:
    """NPL-51, NPL-53: names are taken from the end of the alphabet."""
    found = overlaid(
        an_overlay("a", price="5", capacity=GPU),
        an_overlay("b", (names.INSTANCE_TYPE, "small"), price="5"),
    )
    assert found.verdicts == {"a": "conflict", "b": "applied"}
    assert "example.com/gpu" not in the_type(found, "large").capacity
    assert set(prices(the_type(found, "small")).values()) == {5.0}


def test_of_two_overlays_of_one_weight_on_one_resource_the_earlier_name_is_rejected_everywhere() -> None:
    """NPL-53: also where both say the same; another resource is no contradiction."""
    found = overlaid(
        an_overlay("a", price="5", capacity=GPU),
        an_overlay("b", (names.INSTANCE_TYPE, "small"), capacity=GPU),
        an_overlay("c", capacity={"example.com/fpga": 1}),
    )
    assert found.verdicts == {"a": "conflict", "b": "applied", "c": "applied"}
    assert "example.com/gpu" not in the_type(found, "large").capacity
    assert 5.0 not in prices(the_type(found, "large")).values()


def test_two_overlays_of_one_weight_that_meet_nowhere_are_both_applied() -> None:
    """Two overlays of one weight that meet nowhere are both applied (NPL-53)."""
    found = overlaid(
        an_overlay("a", (names.INSTANCE_TYPE, "large"), price="5"),
        an_overlay("b", (names.INSTANCE_TYPE, "small"), price="6"),
    )
    assert set(found.verdicts.values()) == {"applied"}


def test_equals_below_a_heavier_overlay_still_contradict_each_other() -> None:
    """Equals below a heavier overlay still contradict each other (NPL-53)."""
    found = overlaid(an_overlay("top", price="1", weight=9), an_overlay("a", price="2"), an_overlay("b", price="3"))
    assert found.verdicts == {"top": "applied", "b": "applied", "a": "conflict"}


def test_an_overlay_may_select_by_the_pools_name_and_its_labels() -> None:
    """A label that is defined nowhere selects nothing (PLC-138)."""
    pools = (a_general_pool("left"), a_general_pool("right"))
    found = overlaid(
        an_overlay("a", (names.NODE_POOL, "left"), price="5"), an_overlay("b", ("team", "none"), price="6"), pools=pools
    )
    assert set(prices(the_type(found, "small", "left")).values()) == {5.0}
    assert 5.0 not in prices(the_type(found, "small", "right")).values()
    assert found.verdicts["b"] == "applied"


def test_an_overlay_with_a_fault_is_skipped() -> None:
    """An overlay with a fault is skipped (NPL-51)."""
    found = overlaid(an_overlay("a", price="5", fault="nonsense"))
    assert found.verdicts == {"a": "invalid"}
    assert found.catalogues == overlaid().catalogues


def test_a_pool_that_cannot_be_listed_keeps_its_error_and_the_others_go_on() -> None:
    """A pool that cannot be listed keeps its error and the others go on (NPL-50)."""
    found = overlaid(an_overlay("a", price="5"), fault="broken")
    assert found.catalogues["broken"].error == "cannot be listed"
    assert set(prices(the_type(found, "small")).values()) == {5.0}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"price": "0.01"}, {PRICE_OVERLAY: "true"}),
        ({"capacity": GPU}, {CAPACITY_OVERLAY: "true"}),
        ({"price": "0.01", "capacity": GPU}, {PRICE_OVERLAY: "true", CAPACITY_OVERLAY: "true"}),
        ({}, {}),
    ],
)
def test_a_proposed_node_says_that_an_overlay_has_touched_its_types(
    fields: dict[str, object], said: dict[str, str]
) -> None:
    """PLC-139, NPL-56: its types' prices, their capacity, or both."""
    pool = a_general_pool()
    found = overlaid(an_overlay("a", (names.INSTANCE_TYPE, "small"), **fields), pools=(pool,))
    snapshot = Snapshot(
        now=0.0, pools={pool.name: pool}, catalogues=found.catalogues, pods={"uid-p": a_waiting_pod("p")}
    )

    (node,) = place(Index(snapshot, PlacementSettings())).new

    assert {key: value for key, value in node.annotations.items() if "overlay" in key} == said


def test_an_offering_that_gets_another_price_keeps_the_capacity_that_it_overrides() -> None:
    """PLC-139, PLQ-22: upstream's copy loses it."""
    small = a_type("small", "2", 0.1)
    first, *others = small.offerings
    larger = replace(small, offerings=(replace(first, capacity_override={"example.com/gpu": 1}), *others))
    pool = a_general_pool()
    wanted = an_overlay("a", (names.INSTANCE_TYPE, "small"), price="0.01")

    found = overlay((wanted,), {pool.name: pool}, {pool.name: Catalogue(types=(larger,))})

    changed = the_type(found, "small").offerings[0]
    assert (changed.price, changed.capacity_override) == (0.01, {"example.com/gpu": 1})


def test_a_capacity_replaces_what_the_type_has_of_it_and_an_offering_that_overrides_it_comes_before_both() -> None:
    """NPL-56: two GPUs in place of eight, not ten; one, where an offering says so."""
    small = a_type("small", "2", 0.1)
    first, *others = small.offerings
    offerings = (replace(first, capacity_override={"example.com/gpu": 1}), *others)
    eight = replace(small, capacity={**small.capacity, "example.com/gpu": 8}, offerings=offerings)

    item = the_type(overlaid(an_overlay("a", capacity=GPU), types=(eight,)), "small")

    assert item.capacity == {**eight.capacity, "example.com/gpu": 2}
    assert [allocatable(item, each)["example.com/gpu"] for each in item.offerings] == [1, *(2 for _ in others)]


@pytest.mark.parametrize(
    ("wanted", "price", "stands_in"),
    [
        (((names.INSTANCE_TYPE, "large"),), "0.7", True),
        (((names.INSTANCE_TYPE, "large"),), "+0.7", False),
        (((names.INSTANCE_TYPE, "large"), (names.ZONE, "z")), "0.7", False),
        (((names.ZONE, "z"),), "0.7", False),
    ],
)
def test_an_overlay_of_a_type_and_a_price_stands_in_for_a_price_that_the_cloud_does_not_name(
    wanted: tuple[tuple[str, str], ...], price: str, stands_in: bool
) -> None:
    """NPL-57. What is not available for another reason stays so."""
    plain = a_type("large", "8", 0.4, zones=("z",))
    first = plain.offerings[0]
    offered = (replace(first, price=0.0, available=False, unpriced=True), replace(first, price=0.0, available=False))
    catalogue = Catalogue(types=(replace(plain, offerings=offered),))

    found = overlay(
        [an_overlay("preview", *wanted, price=price)], {"default": a_general_pool()}, {"default": catalogue}
    )

    sold, never = the_type(found, "large").offerings
    assert (sold.available, never.available) == (stands_in, False)
    assert not stands_in or sold.price == 0.7

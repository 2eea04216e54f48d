"""Pods with resource claims, through placement's door (PLC-201 to PLC-207)."""

import sys
from collections import Counter
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.devices import (
    parse_claim_template,
    parse_device,
    parse_device_class,
    parse_resource_claim,
    parse_resource_slice,
)
from dovetail.model import names
from dovetail.model.expressions.evaluation import read_expression
from dovetail.model.expressions.values import ExpressionError
from dovetail.model.places.placements import Placement
from dovetail.model.pods import DeviceClaimUse, Pod
from dovetail.model.pools import Catalogue
from dovetail.model.scheduling.devices import Device, DevicePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.devices.matching import Matcher
from dovetail.placement.devices.needs import JudgedRequest
from dovetail.placement.place_pods import Index, place, simulate
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import TYPES, a_joined_pair, a_shape, a_snapshot, a_waiting_pod

DRIVER = "gpu.example.com"
LARGE = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
SETTINGS = PlacementSettings(ignore_dra=False)


def raw_device(name: str, memory: str = "80Gi", rack: str = "a") -> dict[str, Any]:
    return {"name": name, "attributes": {"rack": {"string": rack}}, "capacity": {"memory": {"value": memory}}}


def a_slice(node: str, *devices: dict[str, Any], **pool: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"driver": DRIVER, "nodeName": node, "devices": list(devices)}
    spec["pool"] = {"name": node, "generation": 1, "resourceSliceCount": 1, **pool}
    return {"metadata": {"name": f"{node}-{len(devices)}"}, "spec": spec}


def asking(count: int = 1, *selectors: str, **more: Any) -> dict[str, Any]:
    cel = [{"cel": {"expression": each}} for each in selectors]
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count, "selectors": cel, **more}}


def a_template(*requests: dict[str, Any], name: str = "gpu", **devices: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": list(requests), **devices}}},
    }


def gpu_pod(name: str, template: str = "gpu", claim: str = "") -> Pod:
    use = DeviceClaimUse(name="gpu", claim=claim, template="" if claim else template)
    return a_waiting_pod(name, cpu="100m", shape=a_shape(uses_resource_claims=True, device_claims=(use,)))


def with_devices(
    snapshot: Snapshot, *templates: dict[str, Any], slices: Any = (), claims: Any = (), **of_types: Any
) -> Snapshot:
    """`of_types`: the devices of each instance type."""
    types = tuple(
        replace(
            each,
            devices=(
                DevicePool(driver=DRIVER, devices=tuple(parse_device(DRIVER, "", d) for d in of_types[each.name])),
            )
            if each.name in of_types
            else (),
        )
        for each in TYPES
    )
    device_class = {
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
    }
    read = [parse_claim_template(each) for each in templates]
    made = [parse_resource_claim(each) for each in claims]
    return replace(
        snapshot,
        catalogues={name: Catalogue(types=types) for name in snapshot.catalogues},
        device_classes={"gpu": parse_device_class(device_class)},
        claim_templates={f"default/{each.name}": each for each in read},
        resource_claims={each.key: each for each in made},
        resource_slices={each["metadata"]["name"]: parse_resource_slice(each) for each in slices},
    )


def placed(snapshot: Snapshot) -> Placement:
    return place(Index(snapshot, SETTINGS))


def reasons(placement: Placement) -> dict[str, str]:
    return {each.pod.name: f"{each.pools[0].reason}: {each.pools[0].conflict}" for each in placement.refused}


def test_a_pod_gets_a_node_of_a_type_that_brings_its_device_and_the_claim_names_the_driver() -> None:
    """PLC-156, PLC-191, PLC-204."""
    snapshot = with_devices(
        a_snapshot([gpu_pod("p")]),
        a_template(asking(1, LARGE)),
        medium=[raw_device("small", "16Gi")],
        huge=[raw_device("large")],
    )
    [node] = placed(snapshot).new
    assert [each.name for each in node.types] == ["huge"]
    assert node.annotations[names.DEVICE_DRIVERS] == DRIVER


def test_free_devices_of_nodes_are_used_first_and_none_is_given_twice() -> None:
    """PLC-147, PLC-203."""
    pods = [gpu_pod(f"p{number}") for number in range(5)]
    snapshot = with_devices(
        a_snapshot(pods, [a_joined_pair("n1"), a_joined_pair("n2")]),
        a_template(asking()),
        slices=[a_slice("n1", raw_device("g0"), raw_device("g1"))],
        huge=[raw_device("g0"), raw_device("g1")],
    )
    placement = placed(snapshot)
    assert {name: len(found) for name, found in placement.existing.items()} == {"n1": 2}
    assert sorted(len(node.pods) for node in placement.new) == [1, 2]
    assert placement.refused == ()


@pytest.mark.parametrize("count", range(1, 5))
def test_as_many_pods_as_there_are_devices_are_placed_whatever_they_ask_for(count: int) -> None:
    pods = [gpu_pod(f"p{number}") for number in range(12)]
    devices = [raw_device(f"g{number}") for number in range(8)]
    snapshot = with_devices(
        a_snapshot(pods, [a_joined_pair("n1")]), a_template(asking(count)), slices=[a_slice("n1", *devices)]
    )
    placement = placed(snapshot)
    assert len(placement.existing["n1"]) == 8 // count
    assert Counter(each.pools[0].reason for each in placement.refused) == {"devices": 12 - 8 // count}


def test_the_devices_of_an_allocated_claim_are_taken_until_its_pods_leave() -> None:
    """PLC-203, DIS-94."""
    held = {
        "metadata": {"name": "held", "namespace": "default"},
        "spec": a_template(asking())["spec"]["spec"],
        "status": {
            "allocation": {"devices": {"results": [{"driver": DRIVER, "pool": "n1", "device": "g0"}]}},
            "reservedFor": [{"resource": "pods", "name": "holder", "uid": "holder"}],
        },
    }
    holder = replace(gpu_pod("holder", claim="held"), uid="holder", node_name="n1", phase="Running")
    slices = [a_slice("n1", raw_device("g0")), a_slice("n2", raw_device("g0"))]
    alone = with_devices(
        a_snapshot([holder, gpu_pod("p")], [a_joined_pair("n1")]),
        a_template(asking()),
        slices=slices[:1],
        claims=[held],
    )
    assert list(reasons(placed(alone))) == ["p"]

    both = with_devices(a_snapshot([holder], [a_joined_pair("n1"), a_joined_pair("n2")]), slices=slices, claims=[held])
    moved = simulate(Index(both, SETTINGS), frozenset({"n1"}))
    assert {name: [pod.name for pod in found] for name, found in moved.existing.items()} == {"n2": ["holder"]}


def test_alternatives_are_tried_in_order_and_devices_of_a_claim_agree() -> None:
    first = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "large", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": LARGE}}]},
            {"name": "two", "deviceClassName": "gpu", "count": 2},
        ],
    }
    same: dict[str, Any] = {"constraints": [{"matchAttribute": f"{DRIVER}/rack"}]}
    devices = [raw_device("g0", "16Gi"), raw_device("g1", "16Gi", "b"), raw_device("g2", "16Gi", "b")]
    for given, fits in ((devices, True), (devices[:2], False)):
        snapshot = with_devices(
            a_snapshot([gpu_pod("p")], [a_joined_pair("n1")]), a_template(first, **same), slices=[a_slice("n1", *given)]
        )
        assert bool(placed(snapshot).existing) is fits


def test_a_claim_for_all_devices_needs_every_one_of_them() -> None:
    every = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    snapshot = with_devices(
        a_snapshot([gpu_pod("p0", "every"), gpu_pod("p1", "every")], [a_joined_pair("n1")]),
        a_template(every, name="every"),
        slices=[a_slice("n1", raw_device("g0"), raw_device("g1"))],
    )
    assert len(placed(snapshot).existing["n1"]) == 1


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (asking(1, "device.matches('a')"), "matches() with 1 arguments is not understood here"),
        (asking(1, adminAccess=True), "adminAccess is not supported"),
        (asking(33), "more than 32 devices"),
        (asking(1, "device.attributes['x'].y"), "no such key: y"),
        (asking(1, LARGE.replace("40Gi", "400Gi")), "no type is known to bring 1 of the devices of class gpu"),
    ],
)
def test_a_claim_that_nothing_fulfils_is_named_and_stops_nobody(request_: dict[str, Any], says: str) -> None:
    snapshot = with_devices(
        a_snapshot([gpu_pod("bad", "bad"), gpu_pod("good")]),
        a_template(request_, name="bad"),
        a_template(asking()),
        huge=[raw_device("g0")],
    )
    placement = placed(snapshot)
    assert list(reasons(placement)) == ["bad"]
    assert reasons(placement)["bad"].startswith("devices: ") and says in reasons(placement)["bad"]
    assert [pod.name for node in placement.new for pod in node.pods] == ["good"]


def test_nobody_gets_a_device_of_a_pool_that_is_not_whole() -> None:
    snapshot = with_devices(
        a_snapshot([gpu_pod("p")], [a_joined_pair("n1")]),
        a_template(asking()),
        slices=[a_slice("n1", raw_device("g0"), resourceSliceCount=2)],
    )
    assert list(reasons(placed(snapshot))) == ["p"]


def test_pods_that_share_a_claim_share_its_node() -> None:
    """PLC-206."""
    claim = {"metadata": {"name": "one", "namespace": "default"}, "spec": a_template(asking())["spec"]["spec"]}
    snapshot = with_devices(
        a_snapshot([gpu_pod(f"p{number}", claim="one") for number in range(3)]), claims=[claim], huge=[raw_device("g0")]
    )
    [node] = placed(snapshot).new
    assert len(node.pods) == 3


def test_where_devices_are_ignored_such_pods_are_refused_as_before() -> None:
    """PLC-200."""
    snapshot = with_devices(a_snapshot([gpu_pod("p")]), a_template(asking()), huge=[raw_device("g0")])
    assert place(Index(snapshot, PlacementSettings())).refused[0].reasons == ("dra",)


DEVICE: dict[str, Any] = {"driver": "d", "attributes": {"d": {"n": 3, "name": "Tesla T4"}}, "capacity": {}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("device.driver == 'd' && device.attributes['d'].n >= 3", True),
        ("device.attributes['d'].name.startsWith(\"Tesla\") || 1 / 0 == 1", True),
        ("1 / 0 == 1 && false", False),
        ("'n' in device.attributes['d'] && !('m' in device.attributes['d'])", True),
        ("has(device.attributes['d'].m) ? false : true", True),
        ("has(device.attributes[" * 40 + "true" + " ? 'd' : 'd'].m)" * 40, False),
        ("device.attributes['d'].n in [1, 2, 3]", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.1')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", True),
        ("quantity('1Gi') == quantity('1024Mi') && quantity('1.5').isLessThan(quantity('2'))", True),
        ("-7 / 2 == -3 && -7 % 2 == -1 && 'a' + 'b' == 'ab' && 1 != '1'", True),
    ],
)
def test_an_expression_is_what_cel_says(text: str, value: bool) -> None:
    assert read_expression(text, ("device",)).value({"device": DEVICE}) is value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "device.",
        "1 +",
        "a",
        "'a' < 1 && true",
        "device[['a']]",
        "has(device)",
        "[1].exists(x, x == 1)",
        "(" * 5000,
        "!" * 9000 + "true",
        "9" * 99,
    ],
)
def test_what_is_no_expression_or_has_no_value_is_an_error_and_nothing_worse(text: str) -> None:
    with pytest.raises(ExpressionError):
        read_expression(text, ("device",)).value({"device": DEVICE})


def lines_of_devices(snapshot: Snapshot, chosen: PlacementSettings) -> tuple[int, int]:
    """The lines that a pass runs of this package, index included, and all."""
    of_devices = every = 0

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal of_devices, every
        every += event == "line"
        of_devices += event == "line" and "/placement/devices/" in frame.f_code.co_filename
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        place(Index(snapshot, chosen))
    finally:
        sys.settrace(before)
    return of_devices, every


def evaluated(selectors: list[str], nodes: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Placement]:
    """For how many devices a pass evaluates the selectors of one claim; eight are on each node."""
    asked, count = Matcher._asked, Counter[str]()

    def counted(matcher: Matcher, request: JudgedRequest, device: Device) -> bool | str:
        count["devices"] += 1
        return asked(matcher, request, device)

    monkeypatch.setattr(Matcher, "_asked", counted)
    names_of = [f"n{number}" for number in range(nodes)]
    snapshot = with_devices(
        a_snapshot([gpu_pod("p")], [a_joined_pair(name) for name in names_of]),
        a_template(asking(1, *selectors)),
        slices=[a_slice(name, *[raw_device(f"g{number}") for number in range(8)]) for name in names_of],
        huge=[raw_device("g0")],
    )
    placement = place(Index(snapshot, SETTINGS))
    monkeypatch.undo()
    return count["devices"], placement


def test_long_selectors_of_one_claim_take_no_more_of_a_pass_than_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may make a claim may give it 31 selectors of 10,000 characters: on one node they took 8 s, whatever the
    limit of the pass."""
    long = f"'{'x' * 9_900}'.upperAscii() == 'y'"

    many, _ = evaluated(["device.driver == 'none'"], 100, monkeypatch)
    few, _ = evaluated([long] * 5, 100, monkeypatch)
    none, refused = evaluated([long] * 31, 100, monkeypatch)

    assert (many, none) == (801, 0) and 0 < few < 0.5 * many
    assert "; not every device was looked at" in reasons(refused)["p"]


def test_pairs_of_requests_and_devices_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims that ask for as many different things took 0.5 GiB in one pass."""
    monkeypatch.setattr("dovetail.placement.devices.matching.MOST_KNOWN", 3)
    devices = [raw_device(f"g{number}", rack="a" if number else "b") for number in range(8)]
    other = f"device.attributes['{DRIVER}'].rack == 'a'"
    index = Index(
        with_devices(
            a_snapshot([gpu_pod("p")], [a_joined_pair("n1")]),
            a_template(asking(7, other)),
            slices=[a_slice("n1", *devices)],
        ),
        SETTINGS,
    )

    assert index.devices is not None and list(place(index).existing) == ["n1"]
    assert 0 < len(index.devices.matcher._known) <= 3


def test_what_is_off_costs_nothing_and_what_nobody_asks_for_next_to_nothing() -> None:
    pods = [a_waiting_pod(f"p{number}", cpu="100m") for number in range(300)]
    nodes = [a_joined_pair(f"n{number}") for number in range(20)]
    with_claims = with_devices(a_snapshot([*pods, gpu_pod("gpu")], nodes), a_template(asking()), huge=[raw_device("g")])
    without = with_devices(a_snapshot(pods, nodes), huge=[raw_device("g")])
    for snapshot in (with_claims, without):
        lines_of_devices(snapshot, PlacementSettings())  # what is kept from one pass to the next is there

    assert lines_of_devices(with_claims, PlacementSettings())[0] == 0
    (of_devices, every), (_, off) = lines_of_devices(without, SETTINGS), lines_of_devices(without, PlacementSettings())
    assert 0 < of_devices < 0.01 * every
    assert every < 1.01 * off

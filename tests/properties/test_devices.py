"""Random devices, random claims: what the planner says is possible, and what it refuses is not.

The judge (acceptance/checker) shares no code with the planner and reads no expression; the world is given to one in
plain terms and to the other as Kubernetes has it.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.checker.devices import faults
from dovetail.model.places.placements import Placement
from dovetail.model.pods import DeviceClaimUse, Pod
from dovetail.model.values.json import Json
from dovetail.placement.place_pods import Index, place
from tests.placement.builders import a_joined_pair, a_shape, a_snapshot, a_waiting_pod
from tests.placement.devices.test_devices import DRIVER, SETTINGS, a_slice, with_devices

QUIET = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
RACK = f"{DRIVER}/rack"
World = dict[str, Any]


@st.composite
def devices(draw: st.DrawFn, most: int) -> list[dict[str, Any]]:
    """Devices of two models in two racks."""
    one = st.fixed_dictionaries(
        {"model": st.sampled_from("ab"), "rack": st.sampled_from("xy"), "memory": st.sampled_from([16, 80])}
    )
    return [{"name": f"g{number}", **each} for number, each in enumerate(draw(st.lists(one, max_size=most)))]


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, Any]:
    """So many devices of some kind."""
    wish: dict[str, Any] = {"count": draw(st.sampled_from([1, 1, 1, 2, 3, "all"]))}
    if draw(st.booleans()):
        wish["model"] = draw(st.sampled_from("ab"))
    if draw(st.booleans()):
        wish["memory"] = 40
    return wish


@st.composite
def claims(draw: st.DrawFn) -> dict[str, Any]:
    """One or two requests, each with one or two alternatives."""
    requests = draw(st.lists(st.lists(wishes(), min_size=1, max_size=2), min_size=1, max_size=2))
    return {"requests": requests, "same": draw(st.booleans())}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Two nodes, four types of which two have devices, a few claims, and up to six pods."""
    nodes = {name: draw(devices(5)) for name in ("n1", "n2")}
    templates = {name: draw(claims()) for name in ("t0", "t1")}
    shared = {"c0": draw(claims())}
    uses = st.sampled_from([("template", "t0"), ("template", "t1"), ("claim", "c0")])
    pods = {f"p{n}": draw(st.lists(uses, min_size=1, max_size=2, unique=True)) for n in range(draw(st.integers(1, 6)))}
    taken = {
        name: [each["name"] for each in held if draw(st.integers(0, 3)) == 0] for name, held in sorted(nodes.items())
    }
    types = {"small": [], "medium": draw(devices(3)), "large": [], "huge": draw(devices(6))}
    return {"nodes": nodes, "types": types, "templates": templates, "claims": shared, "pods": pods, "taken": taken}


# ---- as Kubernetes has it


def raw_device(device: Mapping[str, Any]) -> Json:
    attributes = {"rack": {"string": device["rack"]}, "model": {"string": device["model"]}}
    return {
        "name": device["name"],
        "attributes": attributes,
        "capacity": {"memory": {"value": f"{device['memory']}Gi"}},
    }


def raw_wish(wish: Mapping[str, Any]) -> Json:
    selectors = []
    if "model" in wish:
        selectors.append(f"device.attributes['{DRIVER}'].model == '{wish['model']}'")
    if "memory" in wish:
        selectors.append(f"!device.capacity['{DRIVER}'].memory.isLessThan(quantity('{wish['memory']}Gi'))")
    every = {"allocationMode": "All"} if wish["count"] == "all" else {"count": wish["count"]}
    return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": each}} for each in selectors], **every}


def raw_claim(claim: Mapping[str, Any]) -> Json:
    requests: list[Json] = []
    for number, alternatives in enumerate(claim["requests"]):
        raw = [raw_wish(each) for each in alternatives]
        if len(raw) == 1:
            requests.append({"name": f"r{number}", "exactly": raw[0]})
        else:
            named = [{"name": f"a{n}", **each} for n, each in enumerate(raw)]
            requests.append({"name": f"r{number}", "firstAvailable": named})
    return {"devices": {"requests": requests, "constraints": [{"matchAttribute": RACK}] if claim["same"] else []}}


def held_by_others(node: str, devices: list[str]) -> Json:
    """A claim with these devices, of somebody who is no pod."""
    results = [{"driver": DRIVER, "pool": node, "device": each} for each in devices]
    return {
        "metadata": {"name": f"held-{node}", "namespace": "default"},
        "spec": raw_claim({"requests": [], "same": False}),
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "jobs", "apiGroup": "batch", "name": "somebody", "uid": "somebody"}],
        },
    }


def pod_of(name: str, uses: list[tuple[str, str]]) -> Pod:
    found = tuple(
        DeviceClaimUse(name=f"u{n}", claim=each if kind == "claim" else "", template="" if kind == "claim" else each)
        for n, (kind, each) in enumerate(uses)
    )
    return a_waiting_pod(name, cpu="100m", shape=a_shape(uses_resource_claims=True, device_claims=found))


def placed(world: World) -> Placement:
    """The planner's answer."""
    pods = [pod_of(name, uses) for name, uses in world["pods"].items()]
    templates = [
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": raw_claim(each)}}
        for name, each in world["templates"].items()
    ]
    shared = [
        {"metadata": {"name": name, "namespace": "default"}, "spec": raw_claim(each)}
        for name, each in world["claims"].items()
    ]
    held = [held_by_others(node, names) for node, names in world["taken"].items() if names]
    slices = [a_slice(name, *map(raw_device, each)) for name, each in world["nodes"].items()]
    for number, each in enumerate(slices):
        each["metadata"]["name"] = f"slice-{number}"
    of_types = {name: [raw_device(each) for each in listed] for name, listed in world["types"].items()}
    snapshot = with_devices(
        a_snapshot(pods, [a_joined_pair("n1"), a_joined_pair("n2")]),
        *templates,
        slices=slices,
        claims=[*shared, *held],
        **of_types,
    )
    return place(Index(snapshot, SETTINGS))


def judge(world: World) -> None:
    placement = placed(world)
    existing = {node: [pod.name for pod in pods] for node, pods in placement.existing.items() if pods}
    new = [{"pods": [p.name for p in each.pods], "types": [t.name for t in each.types]} for each in placement.new]

    assert faults(world, existing, new) == [], (world, existing, new)


@QUIET
@given(worlds())
def test_pods_have_their_devices_where_they_are_placed_and_none_is_refused_for_nothing(world: World) -> None:
    judge(world)


@pytest.mark.soak
@settings(QUIET, max_examples=10_000)
@given(worlds())
def test_the_same_holds_for_ten_thousand_clusters(world: World) -> None:
    judge(world)


@pytest.mark.parametrize(
    ("existing", "new", "says"),
    [
        ({"n1": ["p0", "p1"]}, [], "not all of ['p0', 'p1'] can have their devices"),
        ({}, [{"pods": ["p0", "p1"], "types": ["huge", "small"]}], "a new small for ['p0', 'p1']"),
        ({"n1": ["p0"]}, [], "p1 has no place, and a new huge has its devices"),
        ({"n1": ["s0"]}, [{"pods": ["s1"], "types": ["huge"]}], "pods that share c0 are on 2 nodes"),
    ],
)
def test_the_judge_notices(existing: dict[str, list[str]], new: list[dict[str, Any]], says: str) -> None:
    gpu = {"name": "g0", "model": "a", "rack": "x", "memory": 80}
    claim = {"requests": [[{"count": 1}]], "same": False}
    world = {
        "nodes": {"n1": [gpu], "n2": []},
        "types": {"small": [], "huge": [gpu, {**gpu, "name": "g1"}]},
        "templates": {"t0": claim},
        "claims": {"c0": claim},
        "pods": {**{f"p{n}": [("template", "t0")] for n in (0, 1)}, **{f"s{n}": [("claim", "c0")] for n in (0, 1)}},
        "taken": {},
    }

    assert any(says in each for each in faults(world, existing, new))

"""Worlds for the tests of placement: valid by default, a test says only what matters.

One pool, four types in three zones. An impossible world is an error here, not a strange result later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.places.placements import Placement
from dovetail.model.pods import (
    Expression,
    LabelSelector,
    NodeTerm,
    Owner,
    Pod,
    PodShape,
    PodTerm,
    SpreadConstraint,
)
from dovetail.model.pools import Catalogue, ClaimTemplate, DisruptionPolicy, InstanceType, NodePool, Offering
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import PlacementSettings
from worlds import disruption
from worlds.disruption import EC2_CLASS, OF_TEMPLATE

CLASS = EC2_CLASS
READY = Condition(type="Ready", status="True")


def one_of(key: str, *values: str) -> Expression:
    """A requirement to have one of these values."""
    return Expression(key=key, operator="In", values=values)


def selecting(**labels: str) -> LabelSelector:
    """A selector by equality."""
    return LabelSelector(expressions=tuple(one_of(key, value) for key, value in sorted(labels.items())))


def near(key: str, **labels: str) -> PodTerm:
    """An affinity or anti-affinity term."""
    return PodTerm(topology_key=key, selector=selecting(**labels))


def spread(key: str, when: Any = "DoNotSchedule", skew: int = 1, **labels: str) -> SpreadConstraint:
    """A spread constraint."""
    return SpreadConstraint(topology_key=key, max_skew=skew, when_unsatisfiable=when, selector=selecting(**labels))


def term(*expressions: Expression, weight: int = 0) -> NodeTerm:
    """A node selector term."""
    return NodeTerm(expressions=expressions, weight=weight)


def a_shape(labels: Mapping[str, str] | None = None, **fields: Any) -> PodShape:
    """What decides where a pod may go."""
    return PodShape(namespace="default", labels=dict(labels or {}), **fields)


def a_waiting_pod(name: str, cpu: str = "1", shape: PodShape | None = None, **fields: Any) -> Pod:
    """A pending pod of nobody's."""
    given: dict[str, Any] = {"uid": f"uid-{name}", "shape": shape or a_shape(), "created": 0.0, "owners": ()}
    return disruption.a_pod(cpu=cpu, name=name, **{**given, **fields})


def a_bound_pod(name: str, node: str, **fields: Any) -> Pod:
    """A running pod of a ReplicaSet."""
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="r", uid="r", controller=True)
    pod = a_waiting_pod(name, **fields)
    return replace(pod, node_name=node, phase="Running", unschedulable=False, owners=(owner,))


def a_type(name: str, cpu: str, price: float, zones: Iterable[str] = ("z1", "z2", "z3")) -> InstanceType:
    """An instance type, on-demand and spot in each zone."""
    zones = tuple(zones)
    offerings = tuple(
        Offering(
            requirements=(one_of(names.ZONE, zone), one_of(names.CAPACITY_TYPE, kind)),
            price=price * (1.0 if kind == "on-demand" else 0.4),
        )
        for zone in zones
        for kind in ("on-demand", "spot")
    )
    return InstanceType(
        name=name,
        requirements=(
            one_of(names.INSTANCE_TYPE, name),
            one_of(names.ARCH, "amd64"),
            one_of(names.OS, "linux"),
            one_of(names.ZONE, *zones),
            one_of(names.CAPACITY_TYPE, "on-demand", "spot"),
        ),
        capacity=parse_resources({"cpu": cpu, "memory": f"{4 * int(cpu)}Gi", "pods": "110"}),
        overhead={},
        offerings=offerings,
    )


TYPES = (a_type("small", "2", 0.1), a_type("medium", "4", 0.2), a_type("large", "8", 0.4), a_type("huge", "16", 0.8))


def a_general_pool(name: str = "default", **fields: Any) -> NodePool:
    """A ready NodePool of nodes of any kind; fields of its template may be given by name, `annotations` among them."""
    of_template = {key: fields.pop(key) for key in tuple(fields) if key in {*OF_TEMPLATE, "annotations"}}
    given: dict[str, Any] = {
        "uid": f"uid-{name}",
        "template": ClaimTemplate(node_class=CLASS, **of_template),
        "disruption": DisruptionPolicy(),
        "conditions": (READY,),
    }
    return disruption.a_pool(name, **{**given, **fields})


def a_joined_pair(name: str, zone: str = "z1", cpu: str = "4", **fields: Any) -> tuple[Node, NodeClaim]:
    """An initialised node of the pool, with its claim."""
    labels = {
        names.NODE_POOL: "default",
        names.ZONE: zone,
        names.CAPACITY_TYPE: "on-demand",
        names.HOSTNAME: name,
        names.REGISTERED: "true",
        names.INITIALIZED: "true",
        **fields.pop("labels", {}),
    }
    room = parse_resources({"cpu": cpu, "memory": "32Gi", "pods": "110"})
    both: dict[str, Any] = {
        "uid": "",
        "resource_version": "",
        "provider_id": f"p://{name}",
        "labels": labels,
        "capacity": room,
        "allocatable": room,
    }
    node = disruption.a_node(name, **{**both, "taints": (), "conditions": (), **fields})
    bare: dict[str, Any] = {"generation": 0, "created": 0.0, "finalizers": (), "requests": {}}
    return node, disruption.a_claim(f"claim-{name}", **both, **bare)


def a_snapshot(
    pods: Iterable[Pod] = (),
    nodes: Iterable[tuple[Node, NodeClaim]] = (),
    pools: Iterable[NodePool] | None = None,
    types: tuple[InstanceType, ...] = TYPES,
    **fields: Any,
) -> Snapshot:
    """A cluster with one pool unless other ones are given."""
    pairs, pool_list = list(nodes), [a_general_pool()] if pools is None else list(pools)
    all_pods = list(pods)
    assert all(not p.node_name or any(n.name == p.node_name for n, _ in pairs) for p in all_pods), "bound to no node"
    return disruption.a_cluster(
        *all_pods,
        *(each for pair in pairs for each in pair),
        *pool_list,
        catalogues={pool.name: Catalogue(types=types) for pool in pool_list},
        **fields,
    )


def placed(snapshot: Snapshot, settings: PlacementSettings | None = None) -> Placement:
    """Where all waiting pods go."""
    return place(Index(snapshot, settings or PlacementSettings()))


def groups(placement: Placement) -> list[list[str]]:
    """The names of the pods of each new node, sorted."""
    return sorted(sorted(pod.name for pod in node.pods) for node in placement.new)


def an_index(snapshot: Snapshot, settings: PlacementSettings | None = None) -> Index:
    """The compiled snapshot."""
    return Index(snapshot, settings or PlacementSettings())

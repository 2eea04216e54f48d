"""The objects that tests are made of, and small clusters of them: valid by default, so that a test names only what
matters to it.

`a_claim`, `a_node`, `a_pool`, `a_pod` and `a_cluster` are made here and nowhere else. What is usual in a folder is made
of these by keywords, under a name that says what it is. Objects as the API writes them are in worlds/manifests.py.

Nodes come as a pair of Node and NodeClaim that are launched, registered, initialised and ready. An impossible request
is an error here, not a surprise later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any, Final

from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.objects.workloads import PodDisruptionBudget
from dovetail.model.pods import Expression, LabelSelector, Owner, Pod, PodShape
from dovetail.model.pools import (
    Budget,
    Catalogue,
    ClaimTemplate,
    DisruptionPolicy,
    InstanceType,
    NodePool,
    Offering,
)
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources

NOW: Final = 1_700_000_000.0
HOUR: Final = 3600.0
CLASS: Final = NodeClassRef(group="karpenter.test.sh", kind="TestNodeClass", name="default")
EC2_CLASS: Final = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
UNREGISTERED: Final = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")
ALL: Final = (Budget(nodes="100%"),)
OF_DISRUPTION: Final = frozenset(field.name for field in fields(DisruptionPolicy))
OF_TEMPLATE: Final = frozenset(field.name for field in fields(ClaimTemplate)) - {"labels", "annotations"}

_uids = count(1)  # as long as another: the order of pods is the same whatever was made before


def condition(kind: str, changed: float = NOW - HOUR, status: str = "True", reason: str = "") -> Condition:
    """A status condition."""
    return Condition(type=kind, status=status, reason=reason or kind, changed=changed)


def an_offering(zone: str, capacity_type: str, price: float, available: bool = True) -> Offering:
    """An offering of a type."""
    return Offering(
        requirements=(
            Expression(key=names.CAPACITY_TYPE, operator="In", values=(capacity_type,)),
            Expression(key=names.ZONE, operator="In", values=(zone,)),
        ),
        price=price,
        available=available,
    )


def a_type(name: str, cpu: int, price: float, zones: Iterable[str] = ("z1", "z2")) -> InstanceType:
    """An instance type with on-demand offerings at one price, and spot ones at half of it."""
    offerings = [
        an_offering(zone, kind, price * share)
        for zone in zones
        for kind, share in ((names.CAPACITY_ON_DEMAND, 1.0), (names.CAPACITY_SPOT, 0.5))
    ]
    wanted = {
        names.INSTANCE_TYPE: (name,),
        names.ARCH: ("amd64",),
        names.OS: ("linux",),
        names.ZONE: tuple(zones),
        names.CAPACITY_TYPE: (names.CAPACITY_ON_DEMAND, names.CAPACITY_SPOT),
    }
    return InstanceType(
        name=name,
        requirements=tuple(Expression(key=k, operator="In", values=v) for k, v in wanted.items()),
        capacity=parse_resources({"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}),
        overhead={},
        offerings=tuple(offerings),
    )


def sold_out(item: InstanceType, *zones: str, closed: str = "") -> InstanceType:
    """The type while the cloud has none of it, in these zones or everywhere; `closed`: why else it is not to be had."""
    short = {"closed": closed} if closed else {"short_since": NOW - 60, "short_until": NOW + 120}

    def changed(offering: Offering) -> Offering:
        there = any(each.key == names.ZONE and set(zones) & set(each.values) for each in offering.requirements)
        return replace(offering, available=False, **short) if there or not zones else offering

    return replace(item, offerings=tuple(map(changed, item.offerings)))


TYPES: Final = (a_type("m2", 2, 0.1), a_type("m4", 4, 0.2), a_type("m8", 8, 0.4), a_type("m16", 16, 0.8))
ON_DEMAND_ONLY: Final = (Expression(key=names.CAPACITY_TYPE, operator="In", values=(names.CAPACITY_ON_DEMAND,)),)


def a_claim(name: str = "pool-1", **changes: Any) -> NodeClaim:
    """A claim of the pool `pool`, created at 1000, with the finalizer and nothing done yet."""
    given: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "generation": 1,
        "created": 1000.0,
        "labels": {names.NODE_POOL: "pool", "karpenter.k8s.aws/ec2nodeclass": "default"},
        "finalizers": (names.TERMINATION_FINALIZER,),
        "node_class": EC2_CLASS,
        "requests": {"cpu": 10**9, "pods": 3},
        "capacity": {},
        "allocatable": {},
    }
    return NodeClaim(name=name, **{**given, **changes})


def a_node(name: str = "node-1", **changes: Any) -> Node:
    """A node that has just joined: Ready, with the taint that its user data set."""
    given: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "provider_id": "aws:///zone/i-1",
        "labels": {"kubernetes.io/hostname": name},
        "taints": (UNREGISTERED,),
        "capacity": {"cpu": 4 * 10**9, "memory": 16 * 2**30, "pods": 58},
        "allocatable": {"cpu": 4 * 10**9, "memory": 15 * 2**30, "pods": 58},
        "conditions": (Condition(type=names.READY, status="True"),),
    }
    return Node(name=name, **{**given, **changes})


def a_pool(name: str = "a", **changes: Any) -> NodePool:
    """A ready pool of on-demand nodes whose budgets allow everything and whose nodes are quiet at once. Fields of its
    template and of its disruption are given by name, where none is given as a whole; `labels` and `annotations` are the
    pool's own."""
    policy = {"budgets": ALL, **{key: changes.pop(key) for key in OF_DISRUPTION & set(changes)}}
    given = {"node_class": CLASS, "requirements": ON_DEMAND_ONLY, "expire_after": None}
    template = {**given, **{key: changes.pop(key) for key in OF_TEMPLATE & set(changes)}}
    fixed: dict[str, Any] = {
        "uid": f"pool-{name}",
        "template": changes.get("template") or ClaimTemplate(**template),
        "disruption": DisruptionPolicy(**policy),
        "conditions": tuple(condition(c) for c in ("Ready", "ValidationSucceeded", "NodeClassReady")),
    }
    return NodePool(name=name, **{**fixed, **changes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A node and its claim."""

    node: Node
    claim: NodeClaim


def a_pair(name: str, type_name: str = "m8", pool: str = "a", **changes: Any) -> Pair:
    """A node that is up, with its claim. `node` and `claim` hold changes to either."""
    kinds = {t.name: t for t in TYPES}
    labels = {
        names.NODE_POOL: pool,
        names.INSTANCE_TYPE: type_name,
        names.ZONE: changes.pop("zone", "z1"),
        names.CAPACITY_TYPE: changes.pop("capacity_type", names.CAPACITY_ON_DEMAND),
        names.HOSTNAME: name,
        names.ARCH: "amd64",
        names.OS: "linux",
    }
    amounts = kinds[type_name].capacity
    conditions = [names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, *changes.pop("also", ())]
    claim = a_claim(
        f"claim-{name}",
        uid=f"claim-uid-{name}",
        resource_version="",
        generation=0,
        finalizers=(),
        created=NOW - 24 * HOUR,
        labels=labels,
        node_class=CLASS,
        requests={},
        node_name=name,
        provider_id=f"test://{name}",
        capacity=amounts,
        allocatable=amounts,
        conditions=tuple(c if isinstance(c, Condition) else condition(c) for c in conditions),
    )
    node = a_node(
        name,
        uid=f"node-uid-{name}",
        resource_version="",
        taints=(),
        provider_id=f"test://{name}",
        created=NOW - 24 * HOUR,
        labels={**labels, names.REGISTERED: "true", names.INITIALIZED: "true"},
        capacity=amounts,
        allocatable=amounts,
        conditions=(condition("Ready"),),
    )
    node_changes, claim_changes = changes.pop("node", {}), changes.pop("claim", {})
    if changes:
        raise TypeError(f"a pair knows nothing of {sorted(changes)}")
    return Pair(node=replace(node, **node_changes), claim=replace(claim, **claim_changes))


OWNERS: Final = {
    "ReplicaSet": Owner(api_version="apps/v1", kind="ReplicaSet", name="o", uid="o", controller=True),
    "StatefulSet": Owner(api_version="apps/v1", kind="StatefulSet", name="o", uid="o", controller=True),
    "DaemonSet": Owner(api_version="apps/v1", kind="DaemonSet", name="o", uid="o", controller=True),
    "Node": Owner(api_version="v1", kind="Node", name="o", uid="o"),
}


def a_pod(node: str = "", cpu: str = "1", name: str = "", **changes: Any) -> Pod:
    """A running pod of a ReplicaSet on that node; without a node, one that the scheduler gave up on. `shape` is a whole
    one, or what differs from the usual one."""
    number = next(_uids)
    owner = changes.pop("owner", "ReplicaSet")
    shape = changes.pop("shape", {})
    if not isinstance(shape, PodShape):
        own = PodShape(namespace=changes.pop("namespace", "default"), labels=changes.pop("labels", {"app": "x"}))
        shape = replace(own, **shape)
    pod = Pod(
        name=name or f"p{number:08}",
        uid=f"pod-{number:08}",
        shape=shape,
        requests={**parse_resources({"cpu": cpu, "memory": "1Gi"}), "pods": 1},
        created=NOW - HOUR,
        node_name=node,
        phase="Running" if node else "Pending",
        started=NOW - HOUR if node else None,
        ready=True if node else None,
        unschedulable=not node,
        owners=(OWNERS[owner],) if owner else (),
    )
    return replace(pod, **changes)


def a_pdb(name: str = "b", allowed: int = 0, labels: Mapping[str, str] | None = None, **changes: Any) -> Any:
    """A budget over pods with these labels."""
    wanted = labels or {"app": "x"}
    selector = LabelSelector(
        expressions=tuple(Expression(key=k, operator="In", values=(v,)) for k, v in wanted.items())
    )
    pdb = PodDisruptionBudget(
        name=name, namespace="default", selector=selector, disruptions_allowed=allowed, max_unavailable="1"
    )
    return replace(pdb, **changes)


def a_cluster(*objects: NodePool | NodeClaim | Node | Pod, now: float = NOW, **fields: Any) -> Snapshot:
    """The cluster that has these objects, and what the fields of a Snapshot say."""
    given: dict[str, Any] = {
        "pools": {one.name: one for one in objects if isinstance(one, NodePool)},
        "claims": {one.name: one for one in objects if isinstance(one, NodeClaim)},
        "nodes": {one.name: one for one in objects if isinstance(one, Node)},
        "pods": {one.uid: one for one in objects if isinstance(one, Pod)},
    }
    return Snapshot(now=now, **{**given, **fields})


def a_world(
    pairs: Iterable[Pair] = (),
    pods: Iterable[Pod] = (),
    pools: Iterable[NodePool] = (),
    pdbs: Iterable[PodDisruptionBudget] = (),
    **changes: Any,
) -> Snapshot:
    """The cluster with these objects."""
    pairs, pools = list(pairs), list(pools) or [a_pool()]
    types = changes.pop("types", TYPES)
    world = a_cluster(
        *(each for pair in pairs for each in (pair.node, pair.claim)),
        *pods,
        *pools,
        pdbs={f"{b.namespace}/{b.name}": b for b in pdbs},
        catalogues={p.name: Catalogue(types=tuple(types)) for p in pools},
    )
    return replace(world, **changes)

"""Small clusters for the tests of disruption: valid by default, so that a test names only what matters to it.

Nodes come as a pair of Node and NodeClaim that are launched, registered, initialised and ready. An impossible request
is an error here, not a surprise later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources

NOW: Final = 1_700_000_000.0
HOUR: Final = 3600.0
CLASS: Final = NodeClassRef(group="karpenter.test.sh", kind="TestNodeClass", name="default")
ALL: Final = (Budget(nodes="100%"),)

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


TYPES: Final = (a_type("m2", 2, 0.1), a_type("m4", 4, 0.2), a_type("m8", 8, 0.4), a_type("m16", 16, 0.8))
ON_DEMAND_ONLY: Final = (Expression(key=names.CAPACITY_TYPE, operator="In", values=(names.CAPACITY_ON_DEMAND,)),)


def a_pool(name: str = "a", **changes: Any) -> NodePool:
    """A ready pool of on-demand nodes whose budgets allow everything and whose nodes are quiet at once."""
    policy = DisruptionPolicy(
        policy=changes.pop("policy", "WhenEmptyOrUnderutilized"),
        consolidate_after=changes.pop("consolidate_after", 0.0),
        budgets=changes.pop("budgets", ALL),
    )
    template = ClaimTemplate(
        node_class=CLASS, requirements=changes.pop("requirements", ON_DEMAND_ONLY), expire_after=None
    )
    pool = NodePool(
        name=name,
        uid=f"pool-{name}",
        template=template,
        disruption=policy,
        conditions=tuple(condition(c) for c in ("Ready", "ValidationSucceeded", "NodeClassReady")),
    )
    return replace(pool, **changes)


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
    claim = NodeClaim(
        name=f"claim-{name}",
        uid=f"claim-uid-{name}",
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
    node = Node(
        name=name,
        uid=f"node-uid-{name}",
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
    """A running pod of a ReplicaSet on that node; without a node, one that the scheduler gave up on."""
    number = next(_uids)
    owner = changes.pop("owner", "ReplicaSet")
    shape = PodShape(namespace=changes.pop("namespace", "default"), labels=changes.pop("labels", {"app": "x"}))
    shape = replace(shape, **changes.pop("shape", {}))
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
    world = Snapshot(
        now=NOW,
        nodes={p.node.name: p.node for p in pairs},
        claims={p.claim.name: p.claim for p in pairs},
        pods={p.uid: p for p in pods},
        pools={p.name: p for p in pools},
        pdbs={f"{b.namespace}/{b.name}": b for b in pdbs},
        catalogues={p.name: Catalogue(types=tuple(types)) for p in pools},
    )
    return replace(world, **changes)

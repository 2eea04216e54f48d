"""What is usual in a node's life: a new pool, the claim and node that have joined, a pod on them."""

from dataclasses import replace
from typing import Any

from dovetail.messages.plans import Target
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.pods import Owner, Pod, PodShape, Toleration
from dovetail.model.pools import ClaimTemplate, DisruptionPolicy, NodePool
from dovetail.model.snapshot import Snapshot
from worlds import disruption
from worlds.disruption import EC2_CLASS

DAEMON = Owner(api_version="apps/v1", kind="DaemonSet", name="agent", uid="daemon", controller=True)
REPLICAS = Owner(api_version="apps/v1", kind="ReplicaSet", name="web", uid="replicas", controller=True)
STATIC = Owner(api_version="v1", kind="Node", name="node", uid="node", controller=True)
EVERYTHING = Toleration(operator="Exists")


def a_new_pool(name: str = "pool", **fields: Any) -> NodePool:
    """A pool as it has just been applied, of class `default`: nothing is known of it yet. `template` changes its
    template."""
    given: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "generation": 1,
        "template": replace(ClaimTemplate(node_class=EC2_CLASS), **fields.pop("template", {})),
        "disruption": DisruptionPolicy(),
        "conditions": (),
    }
    return disruption.a_pool(name, **{**given, **fields})


def a_quiet_pool(seconds: float = 30.0) -> NodePool:
    """A pool whose nodes must have been quiet for that long."""
    return a_new_pool(disruption=DisruptionPolicy(consolidate_after=seconds))


def a_web_pod(name: str = "web-1", **fields: Any) -> Pod:
    """A running pod of the ReplicaSet web in the namespace apps, on node-1, with 30 seconds of grace."""
    shape = PodShape(
        namespace=fields.pop("namespace", "apps"),
        labels={},
        tolerations=fields.pop("tolerations", ()),
        volumes=fields.pop("volumes", ()),
    )
    given: dict[str, Any] = {
        "uid": f"uid-{name}",
        "shape": shape,
        "requests": {"cpu": 10**8, "pods": 1},
        "created": 0.0,
        "started": 900.0,
        "ready": None,
        "grace_seconds": 30,
        "owners": (REPLICAS,),
    }
    return disruption.a_pod("node-1", name=name, **{**given, **fields})


def a_snapshot(*objects: NodePool | NodeClaim | Node | Pod, now: float = 2000.0) -> Snapshot:
    """A cluster whose NodeClasses of EC2 are ours."""
    return disruption.a_cluster(
        *objects, now=now, supported_node_classes=frozenset({(EC2_CLASS.group, EC2_CLASS.kind)})
    )


def is_now(kind: str, status: str = "True", **fields: Any) -> Condition:
    """A condition of generation 1 that has stood since 1000."""
    given: dict[str, Any] = {"reason": kind if status == "True" else "", "changed": 1000.0, "generation": 1}
    return Condition(type=kind, status=status, **{**given, **fields})


def a_joined_claim(name: str = "pool-1", **fields: Any) -> NodeClaim:
    """A claim that is launched, registered and initialised on node-1."""
    done = (names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, names.READY)
    given: dict[str, Any] = {
        "provider_id": "aws:///zone/i-1",
        "node_name": "node-1",
        "conditions": tuple(is_now(kind) for kind in done),
    }
    return disruption.a_claim(name, **{**given, **fields})


def a_joined_node(name: str = "node-1", **fields: Any) -> Node:
    """The node of a joined claim."""
    given: dict[str, Any] = {
        "taints": (),
        "finalizers": (names.TERMINATION_FINALIZER,),
        "labels": {names.NODE_POOL: "pool", names.REGISTERED: "true", names.INITIALIZED: "true"},
    }
    return disruption.a_node(name, **{**given, **fields})


def target_of(claim: NodeClaim, node: Node) -> Target:
    """The claim and its node as what a disruption is to take away."""
    return Target(
        claim=claim.name,
        claim_uid=claim.uid,
        node=node.name,
        node_uid=node.uid,
        provider_id=claim.provider_id,
        pool="pool",
    )

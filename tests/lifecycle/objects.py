"""A claim, a pool, a node, a pod: valid by default, a test says only what matters to it."""

from dataclasses import replace
from typing import Any

from dovetail.messages.plans import Target
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.pods import Owner, Pod, PodShape, Toleration
from dovetail.model.pools import ClaimTemplate, DisruptionPolicy, NodePool
from dovetail.model.scheduling.taints import Taint

NODE_CLASS = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
UNREGISTERED = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")
DAEMON = Owner(api_version="apps/v1", kind="DaemonSet", name="agent", uid="daemon", controller=True)
REPLICAS = Owner(api_version="apps/v1", kind="ReplicaSet", name="web", uid="replicas", controller=True)
STATIC = Owner(api_version="v1", kind="Node", name="node", uid="node", controller=True)
EVERYTHING = Toleration(operator="Exists")


def a_claim(name: str = "pool-1", **fields: Any) -> NodeClaim:
    """A claim of the pool `pool`, created at 1000, with the finalizer and nothing done yet."""
    given: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "generation": 1,
        "created": 1000.0,
        "labels": {names.NODE_POOL: "pool", "karpenter.k8s.aws/ec2nodeclass": "default"},
        "finalizers": (names.TERMINATION_FINALIZER,),
        "node_class": NODE_CLASS,
        "requests": {"cpu": 10**9, "pods": 3},
        "capacity": {},
        "allocatable": {},
    }
    return NodeClaim(name=name, **{**given, **fields})


def a_pool(name: str = "pool", **fields: Any) -> NodePool:
    """A pool of class `default`; `template` holds changes to its template."""
    template = replace(ClaimTemplate(node_class=NODE_CLASS), **fields.pop("template", {}))
    return NodePool(name=name, uid=f"uid-{name}", resource_version="1", generation=1, template=template, **fields)


def a_quiet_pool(seconds: float = 30.0) -> NodePool:
    """A pool whose nodes must have been quiet for that long."""
    return a_pool(disruption=DisruptionPolicy(consolidate_after=seconds))


def a_node(name: str = "node-1", **fields: Any) -> Node:
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
    return Node(name=name, **{**given, **fields})


def a_pod(name: str = "web-1", **fields: Any) -> Pod:
    """A running pod of a ReplicaSet on node-1, with 30 seconds of grace."""
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
        "node_name": "node-1",
        "phase": "Running",
        "started": 900.0,
        "grace_seconds": 30,
        "owners": (REPLICAS,),
    }
    return Pod(name=name, **{**given, **fields})


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
    return a_claim(name, **{**given, **fields})


def a_joined_node(name: str = "node-1", **fields: Any) -> Node:
    """The node of a joined claim."""
    given: dict[str, Any] = {
        "taints": (),
        "finalizers": (names.TERMINATION_FINALIZER,),
        "labels": {names.NODE_POOL: "pool", names.REGISTERED: "true", names.INITIALIZED: "true"},
    }
    return a_node(name, **{**given, **fields})


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

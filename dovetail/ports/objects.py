"""Kubernetes objects, read live and written.

Every write is a patch with a resourceVersion precondition, never a PUT (PLM-8); "already gone" is success for every
delete. A read here is a request to the API server, for the moments when a cache is not good enough: before anything
irreversible.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.objects.workloads import Deployment, Namespace
from dovetail.model.pods import Expression, Owner, Pod
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.resources import Resources
from dovetail.notices.notice import Notice

if TYPE_CHECKING:  # what decides about moves, policies and roll-outs is not loaded for an order
    from dovetail.model.objects.buffers import BufferStatus, CapacityBuffer
    from dovetail.model.objects.overlays import NodeOverlay
    from dovetail.model.own.policies import Freeze, Policy, PolicyStatus, TimeRules
    from dovetail.model.own.rollout_approvals import Approval
    from dovetail.model.own.rollouts import Intent, NewRollout, Rollout, RolloutStatus
    from dovetail.model.places.move_changes import MoveChange


class Versioned(Protocol):
    """What every object of dovetail.model that can be changed has."""

    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClaim:
    """A NodeClaim to create, finalizer included in the same request."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    owner: Owner | None
    node_class: NodeClassRef
    requirements: tuple[Expression, ...]
    requests: Resources
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: float | None = None
    termination_grace: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimStatus:
    """Status fields to set; None leaves a field as it is."""

    provider_id: str | None = None
    image_id: str | None = None
    node_name: str | None = None
    capacity: Resources | None = None
    allocatable: Resources | None = None
    last_pod_event: float | None = None
    conditions: tuple[Condition, ...] | None = None  # the whole list


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChange:
    """Labels and annotations to set (None removes one); finalizers as a whole; owners to add."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    finalizers: tuple[str, ...] | None = None
    add_owner: Owner | None = None


class NodeClaims(Protocol):
    async def create(self, claim: NewClaim) -> NodeClaim:
        """Create it. A claim of that name with the same dovetail.sh/plan is ours and is returned; else Taken."""

    async def may_create(self, claim: NewClaim) -> None:
        """Have the API server judge the claim as if it were created: the failure of `create`; nothing is made."""

    async def read(self, name: str) -> NodeClaim | None:
        """The claim as the API server has it now."""

    def answered(self, name: str) -> NodeClaim | None:
        """The claim as the API server last answered a request of this process, without asking it; None where it did
        not lately."""

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        """Change metadata at the version of `claim`; None where it is gone, Conflict where it has changed."""

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        """Change status at the version of `claim`; None where it is gone, Conflict where it has changed."""

    async def annotated_by(self, name: str, annotation: str) -> str:
        """The program that wrote the annotation last, as the API server recorded it; empty where it did not."""

    async def delete(self, name: str, uid: str) -> int:
        """Delete the claim of that UID; the version at which it is now deleting, 0 where it is gone."""


class Nodes(Protocol):
    async def read(self, name: str) -> Node | None:
        """The node as the API server has it now."""

    async def list_by_provider_id(self, provider_id: str) -> tuple[Node, ...]:
        """The nodes of an instance as the API server has them now."""

    async def patch(self, node: Node, change: MetadataChange, taints: tuple[Taint, ...] | None = None) -> Node | None:
        """Change metadata and, where given, all taints; None where it is gone, Conflict where what is to change is no
        longer as `node` has it, or it has begun to leave. What else has changed may be no conflict."""

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        """Set these, whatever version the node is at, and leave all others as they are: a kubelet writes its own every
        few seconds. Nothing where it is gone."""

    async def delete(self, name: str, uid: str) -> int:
        """Delete the node of that UID; the version at which it is now deleting, 0 where it is gone."""


class NodeOverlays(Protocol):
    """NodeOverlay objects; their spec is a person's, their conditions are ours."""

    async def patch_conditions(self, overlay: "NodeOverlay", conditions: tuple[Condition, ...]) -> "NodeOverlay | None":
        """Change the conditions at the version of `overlay`; None where it is gone, Conflict where it has changed."""


class TimeObjects(Protocol):
    """DisruptionPolicies, Freezes and NodeRollouts; their spec is a person's, their status is ours."""

    async def read(self, _: str) -> "TimeRules":
        """All of them as the API server has them now; none of a kind that it says is not installed. Unreachable where
        that cannot be known: a Freeze that is not read must not be one that is not there."""

    async def patch_policy(self, policy: "Policy", status: "PolicyStatus") -> "Policy | None":
        """Set the whole status at the version of `policy`; None where it is gone, Conflict where it has changed."""

    async def patch_freeze(self, freeze: "Freeze", conditions: tuple[Condition, ...]) -> "Freeze | None":
        """Change the conditions at the version of `freeze`; None where it is gone, Conflict where it has changed."""

    async def patch_rollout(self, rollout: "Rollout", status: "RolloutStatus") -> "Rollout | None":
        """Set the whole status at the version of `rollout`; None where it is gone, Conflict where it has changed."""

    async def create_rollout(self, new: "NewRollout") -> None:
        """Make it; one of that name that is there already is left as it is."""

    async def delete_rollout(self, rollout: "Rollout") -> None:
        """Delete that very one; nothing where it is gone."""

    async def patch_intent(self, rollout: "Rollout", intent: "Intent") -> "Rollout | None":
        """What a person wants of it, likewise."""

    async def patch_approval(self, rollout: "Rollout", approval: "Approval") -> "Rollout | None":
        """What a person approves, likewise."""


class CapacityBuffers(Protocol):
    """CapacityBuffer objects; their spec is a person's, their status is ours."""

    async def read(self, buffer: "CapacityBuffer") -> "CapacityBuffer | None":
        """The buffer of that name as the API server has it now."""

    async def patch_status(self, buffer: "CapacityBuffer", status: "BufferStatus") -> "CapacityBuffer | None":
        """Set the whole status at the version of `buffer`; None where it is gone, Conflict where it has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """How the API server answered an eviction.

    evicted: accepted. blocked: a PDB does not allow it now (429). unsupported: several PDBs match (500).
    gone: no such pod (404). replaced: another pod has that name (409 on the UID).
    """

    outcome: Literal["evicted", "blocked", "unsupported", "gone", "replaced"]
    code: int
    message: str = ""


class Pods(Protocol):
    """Pods that must leave a node, and those for which a place is kept."""

    async def list_on(self, node: str) -> tuple[Pod, ...]:
        """The pods bound to a node as the API server has them now."""

    async def evict(self, pod: Pod) -> Eviction:
        """Ask for an eviction with the pod's UID as precondition."""

    async def delete(self, pod: Pod, grace_seconds: int) -> None:
        """Delete with the pod's UID as precondition, within the grace given (at least 1: DUR-30)."""

    async def read(self, pod: Pod) -> Pod | None:
        """The same pod as the API server has it now; None where it is gone or another one has its name."""

    async def nominate(self, pod: Pod, node: str) -> None:
        """Set status.nominatedNodeName at the version of `pod`, empty: take it away; Conflict where it has changed.
        Nothing where it is gone."""

    async def annotate(self, pod: Pod, key: str, value: str | None) -> None:
        """Write an annotation at the version of `pod`, None: take it away; Conflict where it has changed. Nothing where
        it is gone."""


class Notices(Protocol):
    """Where notices go. Publishing never fails a step: what cannot be published is logged. In a worker it never holds
    one up either: dovetail/background/notice_queue.py stands in between."""

    async def publish(self, *notices: Notice) -> None:
        """Publish each notice that was not published within its window."""


class Deployments(Protocol):
    """Deployments, of which a move changes one annotation of the template, and nothing else is ever changed."""

    async def read(self, deployment: Deployment) -> Deployment | None:
        """The same Deployment as the API server has it now; None where it is gone."""

    async def annotate(self, deployment: Deployment, change: "MoveChange") -> Deployment | None:
        """Change its annotations at the version of `deployment`; None where it is gone, Conflict where it has
        changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """Status fields of a NodePool to set; None leaves a field as it is."""

    usage: Resources | None = None
    node_count: int | None = None
    class_generation: int | None = None
    conditions: tuple[Condition, ...] | None = None


class Namespaces(Protocol):
    """Namespace objects. A person's; we only read a pause from one, and a person's command writes it there."""

    async def read(self, name: str) -> Namespace | None:
        """The namespace as the API server has it now."""

    async def patch(self, namespace: Namespace, change: MetadataChange) -> Namespace | None:
        """Change metadata at the version of `namespace`; None where it is gone, Conflict where it has changed."""


class NodePools(Protocol):
    async def read(self, name: str) -> NodePool | None:
        """The pool as the API server has it now."""

    async def patch(self, pool: NodePool, change: MetadataChange) -> NodePool | None:
        """Change metadata at the version of `pool`; None where it is gone, Conflict where it has changed."""

    async def patch_status(self, pool: NodePool, status: PoolStatus) -> NodePool | None:
        """Change status at the version of `pool`; None where it is gone, Conflict where it has changed."""

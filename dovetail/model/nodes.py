"""Nodes and NodeClaims as they are in the cluster. pairing.py decides which of them belong together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.model.names import PLAN, PRE_BOOT_ID, REBOOT_GRACE, REBOOTING
from dovetail.model.pods import Expression, Owner
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.resources import Resources

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"
AWAITING_RECONCILIATION: Final = "AwaitingReconciliation"  # the reason of one that nothing has been said of yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    type: str
    status: str
    reason: str = ""
    message: str = ""
    changed: float = 0.0  # lastTransitionTime
    generation: int = 0  # observedGeneration


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPolicy:
    """A node condition that makes a node unhealthy once it has had that status for that long (CLD-7)."""

    condition: str
    status: str
    toleration: float  # seconds
    reason: str = ".*"  # an expression found in the condition's; empty: for the reasons that no other policy names
    grace: float | None = None  # seconds that the drain may last; None: as its claim says
    priority: int = 0  # the higher is repaired first
    reboots: bool = False  # the instance is rebooted instead of replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClassRef:
    """The NodeClass that a pool or claim uses."""

    group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    uid: str = ""
    resource_version: str = ""
    provider_id: str = ""
    created: float = 0.0
    deleting_since: float | None = None
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    finalizers: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    unschedulable: bool = False
    capacity: Resources
    allocatable: Resources
    conditions: tuple[Condition, ...] = ()
    boot_id: str = ""

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if the node has it."""
        for condition in self.conditions:  # asked so often that a generator would show
            if condition.type == kind:
                return condition
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClaim:
    """A NodeClaim object (karpenter.sh/v1)."""

    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created: float = 0.0
    deleting_since: float | None = None
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    # spec
    node_class: NodeClassRef
    requirements: tuple[Expression, ...] = ()
    requests: Resources
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: float | None = None  # seconds; None is Never
    termination_grace: float | None = None
    # status
    node_name: str = ""
    provider_id: str = ""
    image_id: str = ""
    capacity: Resources
    allocatable: Resources
    conditions: tuple[Condition, ...] = ()
    last_pod_event: float | None = None

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if the claim has it."""
        for condition in self.conditions:  # asked so often that a generator would show
            if condition.type == kind:
                return condition
        return None

    @property
    def is_rebooting(self) -> bool:
        """Whether its instance is being rebooted: meanwhile the node's own conditions do not count. Karpenter writes no
        time for its pods where nothing bounds that."""
        return REBOOT_GRACE in self.annotations or self.is_true(REBOOTING)

    @property
    def is_reboot_ordered(self) -> bool:
        """Whether the cloud may have been asked for that reboot: nothing calls it off any more."""
        return self.is_rebooting and PRE_BOOT_ID in self.annotations

    def is_true(self, kind: str) -> bool:
        """Whether that condition's status is True; absent and Unknown are not."""
        found = self.condition(kind)
        return found is not None and found.status == "True"

    @property
    def plan(self) -> str:
        """The id of the plan that made it, without its place in that plan; empty if none of ours did."""
        return self.annotations.get(PLAN, "").partition("/")[0]

    @property
    def expires_at(self) -> float | None:
        """The moment from which it counts as expired; None for Never (DIS-181)."""
        return None if self.expire_after is None else self.created + self.expire_after

    def is_expired(self, now: float) -> bool:
        """Whether it has expired, the exact moment included, and is not leaving yet (DIS-181, LIF-60)."""
        moment = self.expires_at
        return self.deleting_since is None and moment is not None and now >= moment

    @property
    def termination_mode(self) -> str:
        """How much time its pods are given to leave, as metrics name it (DIS-191, MET-2)."""
        return termination_mode(self.termination_grace)


def termination_mode(grace: float | None) -> str:
    """The name of that much time for pods to leave."""
    if grace is None:
        return "graceful"
    return "forceful" if grace <= 0 else "eventual"

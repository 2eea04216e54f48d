"""NodePools, and what a cloud offers for them.

Instance types are per pool, because NodeOverlays and the NodeClass change them per pool. An offering is a zone, a
capacity type and a price; its availability holds for the moment only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim, NodeClassRef
from dovetail.model.pods import Expression
from dovetail.model.scheduling.devices import DevicePool
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM, versioned
from dovetail.model.values.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One entry of spec.disruption.budgets, as written; an unreadable one allows nothing."""

    nodes: str
    reasons: tuple[str, ...] | None = None  # None: every reason; empty: none (DIS-52)
    schedule: str | None = None
    duration: float | None = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionPolicy:
    """spec.disruption of a NodePool. consolidate_after None is Never."""

    policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"
    consolidate_after: float | None = 0.0
    budgets: tuple[Budget, ...] = (Budget(nodes="10%"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplate:
    """spec.template of a NodePool: what every claim of the pool has in common."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_class: NodeClassRef
    requirements: tuple[Expression, ...] = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: float | None = 720 * 3600.0
    termination_grace: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A NodePool object (karpenter.sh/v1). `hash` is upstream's hash of spec.template (NPL-1), computed at the edge."""

    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deleting_since: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    template: ClaimTemplate
    disruption: DisruptionPolicy = DisruptionPolicy()
    limits: Resources | None = None  # may name `nodes`
    weight: int = 0
    replicas: int | None = None  # set: a static pool
    conditions: tuple[Condition, ...] = ()
    usage: Resources | None = None  # status.resources
    hash: str = ""

    @property
    def target(self) -> str:
        """Its hash as roll-outs remember it."""
        return versioned(self.hash, NODE_POOL_HASH_ALGORITHM, "v3")

    @property
    def node_labels(self) -> dict[str, str]:
        """The template's labels, the pool's name and the node class (PLC-59)."""
        reference = self.template.node_class
        kind = f"{reference.group}/{reference.kind.lower()}"
        return {**self.template.labels, names.NODE_POOL: self.name, kind: reference.name}

    def replaces_first(self, claim: NodeClaim) -> bool:
        """Whether this node is replaced before it expires, instead of deleted when it does: the pool asks for it, or
        the claim alone."""
        return "true" in (self.annotations.get(names.REPLACE_FIRST), claim.annotations.get(names.REPLACE_FIRST))

    def is_true(self, kind: str) -> bool:
        """Whether that condition's status is True; absent and Unknown are not."""
        return any(c.type == kind and c.status == "True" for c in self.conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """An instance type in one zone under one capacity type; the requirements name both, and the id of a reservation."""

    requirements: tuple[Expression, ...]
    price: float
    available: bool = True
    reservation_capacity: int = 0
    launched_with: str = ""  # one launch takes only reserved offerings that have the same here
    full: bool = False  # all instances of its reservation are in use, and nothing else keeps one from being launched
    capacity_override: Resources | None = None
    overhead_override: Resources | None = None
    price_overlay: bool = False
    short_until: float = 0.0  # if it is not available because the cloud had none: when it is asked for again
    short_since: float = 0.0  # and when the cloud first said so
    may_be_asked: bool = False  # it was short a while ago, and one claim may ask for it again
    closed: str = ""  # or why else nothing is launched there now, in words
    unpriced: bool = False  # only the lack of a price keeps it from being available

    @property
    def is_to_come(self) -> bool:
        """Whether it is not to be had now, and may be again without anybody changing a thing."""
        return not self.available and not self.unpriced and bool(self.closed or self.short_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One instance type as a pool sees it (PLC-115). Overhead is kube-reserved + system-reserved + eviction
    threshold."""

    name: str
    requirements: tuple[Expression, ...]
    capacity: Resources
    overhead: Resources
    unsuited: str = ""  # why none can be launched, wherever that is
    offerings: tuple[Offering, ...]
    capacity_overlay: bool = False
    devices: tuple[DevicePool, ...] = ()  # those that its nodes will publish, as far as the cloud knows

    def asked_again(self) -> "InstanceType":
        """The instance type with the offerings that may be asked for again made available; itself if it has none."""
        if not any(offering.may_be_asked for offering in self.offerings):
            return self
        return replace(
            self, offerings=tuple(replace(o, available=True) if o.may_be_asked else o for o in self.offerings)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The instance types of one pool, or why they cannot be listed (then the pool's nodes are no candidates,
    DIS-26)."""

    types: tuple[InstanceType, ...] = ()
    error: str = ""

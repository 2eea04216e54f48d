"""Dynamic resource allocation (`resource.k8s.io/v1`): which devices there are, and who asks for which.

Drivers publish the devices of nodes in ResourceSlices. A pod asks for devices in ResourceClaims, each either its own
from a ResourceClaimTemplate or a shared one; a DeviceClass says which devices a request is about.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dovetail.model.pods import NodeTerm

NODE_NAME = "metadata.name"  # the field by which a term of a node selector names a node


class Version(NamedTuple):
    """An attribute that is a semantic version, as written: expressions do not compare it as a text."""

    text: str


Attribute = bool | int | str | Version


class DeviceId(NamedTuple):
    """What a claim's allocation names."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device. Names of attributes and capacities are full: a name without a domain is in the driver's.

    `aside`: why no pod gets it, for devices in forms that are not understood (shared, partitioned or tainted ones)."""

    id: DeviceId
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)  # in thousand-millionths: exact, like any quantity
    aside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """The nodes that can use devices: those with these names, and those that match a term. Neither: every node."""

    names: frozenset[str] = frozenset()
    terms: tuple[NodeTerm, ...] = ()

    @property
    def everywhere(self) -> bool:
        """Whether it excludes no node, not even one that does not exist yet."""
        return not self.names and not self.terms


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSlice:
    """Some devices of one pool. A pool is whole if there are `count` slices of its newest generation."""

    name: str
    driver: str
    pool: str
    generation: int
    count: int
    nodes: NodeChoice
    devices: tuple[Device, ...] = ()

    @property
    def node_name(self) -> str:
        """The one node that has the devices; empty where others can use them too."""
        return next(iter(self.nodes.names)) if len(self.nodes.names) == 1 and not self.nodes.terms else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePool:
    """The devices of one driver that a new node of an instance type will have."""

    driver: str
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """One request, or one of the alternatives of a request. `count` None: all devices that match.

    `aside`: the field that asks for what is not understood."""

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    aside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchConstraint:
    """The devices of these requests (of all, if none is named) must have the same value of an attribute."""

    attribute: str
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSpec:
    """What a claim asks for: of each request one alternative, the first that is available."""

    requests: tuple[tuple[DeviceRequest, ...], ...] = ()
    constraints: tuple[MatchConstraint, ...] = ()
    aside: str = ""  # the field that asks for what is not understood


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """The devices that a claim has, and where they can be used."""

    devices: tuple[DeviceId, ...]
    nodes: NodeChoice = NodeChoice()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaim:
    """A ResourceClaim. `owner` and `pod_claim`: the pod that it was made for, and the pod's name for it."""

    name: str
    namespace: str
    spec: ClaimSpec
    uid: str = ""
    owner: str = ""  # a pod's UID
    pod_claim: str = ""
    allocation: Allocation | None = None
    reserved_for: frozenset[str] = frozenset()  # UIDs of pods

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaimTemplate:
    """A ResourceClaimTemplate: each pod that names it gets a claim of its own."""

    name: str
    namespace: str
    spec: ClaimSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A DeviceClass: what every device of a request for it must be."""

    name: str
    selectors: tuple[str, ...] = ()


def expected_drivers(written: str) -> tuple[str, ...]:
    """The drivers that a claim's annotation names."""
    return tuple(part.strip() for part in written.split(",") if part.strip())


def newest_slices(slices: Iterable[ResourceSlice]) -> dict[tuple[str, str], list[ResourceSlice]]:
    """The slices of the newest generation of each pool, by driver and name."""
    newest: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        held = newest.setdefault((each.driver, each.pool), [])
        if held and held[0].generation < each.generation:
            held.clear()
        if not held or held[0].generation == each.generation:
            held.append(each)
    return newest


def is_whole(newest: Sequence[ResourceSlice]) -> bool:
    """Whether these are all slices of their pool's newest generation."""
    return len(newest) >= newest[0].count

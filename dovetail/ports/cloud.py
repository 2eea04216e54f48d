"""The cloud in which instances run.

What a workflow must branch on is returned, never raised: no capacity, a NodeClass that is not ready, an instance that
is gone. Throttling and silence are raised, because only trying again helps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.values.json import Json
from dovetail.model.values.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A launch worked out but not made: short text (hashes and ids, no user data) that `launch` understands.
    `without`: why it takes the images of the NodeClass, where the claim names older ones. `shared`: whether claims with
    the very same request may be launched by one call."""

    kind: Literal["prepared"] = "prepared"
    request: str
    without: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchWarning:
    """What a person should know of a launch, whatever came of it; an Event on its claim."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCapacity:
    """Nothing that the claim allows can be launched now. The offerings refused are remembered as shortages, which
    planners see; without any the same would be planned again at once, so what nothing on offer suits is refused."""

    kind: Literal["no_capacity"] = "no_capacity"
    message: str
    warnings: tuple[LaunchWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassNotReady:
    """The claim's NodeClass is missing or not ready."""

    kind: Literal["class_not_ready"] = "class_not_ready"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRefused:
    """The cloud finds the request wrong; the claim's condition gives the reason (CreateError, CLD-9)."""

    kind: Literal["refused"] = "refused"
    reason: str
    message: str
    warnings: tuple[LaunchWarning, ...] = ()


FILTERED: Final = "InstanceTypeFilteringFailed"  # upstream's reason
NOTHING_SUITS: Final = LaunchRefused(
    reason=FILTERED, message="no instance type on offer has what the NodeClaim requires"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance as the cloud reports it, with what its NodeClaim will show of it."""

    kind: Literal["instance"] = "instance"
    provider_id: str
    claim_uid: str = ""  # the tag dovetail.sh/claim-uid
    claim_name: str = ""
    group: str = ""  # the tag dovetail.sh/launch-group: launched for one of these claims
    state: Literal["pending", "running", "stopping", "stopped", "terminating"] = "running"
    launched: float = 0.0
    image_id: str = ""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    capacity: Resources
    allocatable: Resources
    warnings: tuple[LaunchWarning, ...] = ()  # of the launch that this answers


class Cloud(Protocol):
    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        """Work out what would be launched for a claim, with the images that it names (model/own/stable_images.py).
        Launches nothing."""

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        """Launch one instance, tagged with the claim's UID in the call itself. One token never launches a second. With
        a share: those of the whole group, tagged with the group, and answer the one with the share's number."""

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        """The live instance of that claim or that id; None where it is gone or terminated."""

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        """Terminate it. `gone` only once it is fully gone; repeating is safe (CLD-2).

        Refused for an instance that is not of this cluster, or that says it is of another claim than the one named.
        """

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        """Have it restart; answered once the cloud has taken that. Repeating is safe, if it has not begun to. Refused
        as `terminate` refuses, and where a cloud cannot."""

    async def list_instances(self) -> tuple[Instance, ...]:
        """Every instance that carries this cluster's tag and is not yet gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClassState:
    """What a NodePool needs to know of its NodeClass (NPL-15)."""

    found: bool
    deleting: bool = False
    ready: Literal["True", "False", "Unknown"] = "Unknown"
    reason: str = ""
    message: str = ""
    generation: int = 0
    version: str = ""  # changes with the object and with what it resolved to: drift is then judged again
    makes: str = ""  # changes with what a launch is made of, and with nothing else; empty where that is not known


class Catalogues(Protocol):
    """What could be launched for each pool, and whether an instance is still what would be launched today."""

    async def catalogue(self, pool: NodePool) -> Catalogue:
        """The pool's instance types, those without available offering included (CLD-5), shortages applied."""

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        """The state of a NodeClass."""

    async def drift(self, claim: NodeClaim) -> str:
        """Why the claim's instance is no longer what its NodeClass asks for; empty where it is (CLD-6)."""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        """(group, kind) of the NodeClasses that this cloud understands."""

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The node conditions that make a node unhealthy, and after how long; possibly none (CLD-7)."""


class SupposedClasses(Protocol):
    """What a cloud would answer if NodeClasses were other than they are. Nothing is written, in cluster or cloud."""

    async def with_classes(self, changed: Sequence[Json]) -> Catalogues:
        """Its answers with these objects, as an API server would keep them, in place of those of the same names.

        What they resolve to (images, subnets, …) is looked up as upkeep would, and a class that does not resolve is not
        ready. Only what a trial launch would find out stays unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """One call that a launch or a termination needs, asked for without being made."""

    call: str
    allowed: bool | None  # None: the cloud does not say
    said: str = ""


class Rehearsal(Protocol):
    """Whether a cloud would allow what the steps ask of it. Nothing is made."""

    async def __call__(self) -> tuple[Rehearsed, ...]:
        """Every call that it can be asked about."""


class NodeClassUpkeep(Protocol):
    """A cloud's upkeep of its NodeClasses: what they resolve to, whether they are ready, what is cleaned up."""

    async def keep(self) -> float:
        """Look at every class that has changed or is due, and write what differs; the moment to look again."""

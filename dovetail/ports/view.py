"""The cluster as a watch-fed cache sees it.

Everything here is memory; nothing is a request. The view and the look-ups raise NotSeenYet while the cache has lost the
watch of a kind that is asked for, so that nothing is decided on what was true before the connection broke. What else is
broken stops nobody: there is no one gate for all kinds.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.messages.writes import Write
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.objects.workloads import Deployment, PodDisruptionBudget, Volume, VolumeAttachment, VolumeClaim
from dovetail.model.own.drain_rules import DrainRules
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.places.moves import Moves
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.devices import ResourceSlice
from dovetail.model.snapshot import Snapshot


class ClusterView(Protocol):
    """Whole snapshots, and the news that there is something new."""

    def snapshot(self, reads: Kinds | None = None) -> Snapshot:
        """Everything as of now. Catalogues and nominations are empty: the planning step adds them.

        NotSeenYet while the watch of a kind in `reads` is broken; without it, of any kind. What a step does not declare
        it must not read: it may be old."""

    def stale(self) -> Mapping[str, str]:
        """The kinds whose watch is broken now, and why. An optional kind that is not installed is not among them."""

    def silent_for(self, kind: str) -> float:
        """Seconds since the watch of that kind last delivered anything; 0 where it never has."""

    def revision(self) -> int:
        """A number that rises with every change; not where an object has a new version and says what it said."""

    def revision_of(self, kinds: Kinds) -> int:
        """The revision at the last change of one of these kinds, or at the last after which everybody must look."""

    async def changed(self, after: int) -> int:
        """Wait until the revision is above `after`; the new revision."""

    async def catch_up(self, writes: Sequence[Write]) -> None:
        """Wait until each write, or a newer version, or the object's end has been seen; NotSeenYet after 10 s."""

    def unreadable(self) -> tuple[Unreadable, ...]:
        """The objects that cannot be parsed now."""


class ClusterLookups(Protocol):
    """Single look-ups in the same cache."""

    def claim(self, name: str) -> NodeClaim | None:
        """The claim of that name."""

    def node(self, name: str) -> Node | None:
        """The node of that name."""

    def has_pool(self, name: str) -> bool:
        """Whether a NodePool of that name stands and is not being deleted, as last seen."""

    def pool(self, name: str) -> NodePool | None:
        """The NodePool of that name, as last seen."""

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        """The nodes with that providerID; an empty one matches nothing (PLM-3)."""

    def slices_on(self, node: str) -> tuple[ResourceSlice, ...] | None:
        """The ResourceSlices of a node alone; None where devices are ignored."""

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """The pods bound to a node; NotReadable while one that still holds it cannot be read: it might be one that must
        not be evicted."""

    def pod(self, uid: str) -> Pod | None:
        """The pod of that UID, where it can be read."""

    def all_pods(self) -> Collection[Pod]:
        """Every pod that can be read, in no order."""

    def budgets_in(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        """The PDBs of a namespace as last seen; the same tuple for as long as none of them changes."""

    def attachments_on(self, node: str) -> tuple[VolumeAttachment, ...]:
        """The volumes attached to a node; NotReadable while one of them cannot be read."""


class PauseLookups(Protocol):
    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        """What holds that for the pool now, as last seen; None where it may go on. NotSeenYet where a kind that may
        hold it has not been seen since the start."""


class DrainLookups(Protocol):
    """What people say of drains that something holds."""

    def drain_rules(self, pool: str) -> tuple[DrainRules, ...]:
        """The rules of the pool's policies; NotSeenYet while one may have changed unseen."""


class MoveLookups(Protocol):
    """What bears on moving pods by a roll-out of their Deployment, as last seen."""

    def moves(self) -> Moves:
        """What to do about each pod now."""

    def moves_from(self, node: str) -> tuple[Deployment, ...]:
        """The Deployments that say that their pod is being moved from the node of that UID."""


class VolumeLookups(ClusterLookups, Protocol):
    """Look-ups that include volume claims, and what they are bound to."""

    def volume_claim(self, key: str) -> VolumeClaim | None:
        """The volume claim of that namespace/name."""

    def volume(self, name: str) -> Volume | None:
        """The PersistentVolume of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectConditions:
    """The conditions of one object, with what identifies it."""

    name: str
    labels: Mapping[str, str]
    conditions: Sequence[Condition]
    deleting_since: float | None


ConditionsListener = Callable[[ObjectConditions | None, ObjectConditions | None], None]  # before and after a change


class ConditionsView(Protocol):
    """The conditions of all watched objects, NodeClasses included."""

    def kinds(self) -> frozenset[str]:
        """The kinds that are watched."""

    def of_kind(self, kind: str) -> tuple[ObjectConditions, ...]:
        """All objects of a kind, sorted by key."""

    def listen(self, kind: str, listener: ConditionsListener) -> None:
        """Call `listener` at every change of an object of that kind, beginning with the objects that exist now."""

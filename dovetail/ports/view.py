"""The cluster as a watch-fed cache sees it.

Everything here is memory; nothing is a request. The trap avoided: deciding on a view that has lost its watch: both
protocols raise NotSeenYet while the view is not usable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.messages.writes import Write
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.workloads import VolumeAttachment, VolumeClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An object that could not be parsed: set aside, reported, and left out of every decision."""

    kind: str
    name: str
    field: str
    message: str
    node: str = ""  # the node that a pod or an attachment stands on, where that much could be read


class ClusterView(Protocol):
    """Whole snapshots, and the news that there is something new."""

    def snapshot(self) -> Snapshot:
        """Everything as of now. Catalogues and nominations are empty: the planner adds them."""

    def revision(self) -> int:
        """A number that rises with every change."""

    async def changed(self, after: int) -> int:
        """Wait until the revision is above `after`; the new revision."""

    async def catch_up(self, writes: Sequence[Write]) -> None:
        """Wait until each write, or a newer version, or the object's end has been seen; NotSeenYet after 10 s."""

    def unreadable(self) -> tuple[Unreadable, ...]:
        """The objects that are set aside now."""


class ClusterLookups(Protocol):
    """Single look-ups in the same cache."""

    def claim(self, name: str) -> NodeClaim | None:
        """The claim of that name."""

    def node(self, name: str) -> Node | None:
        """The node of that name."""

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        """The nodes with that providerID; an empty one matches nothing (P-3)."""

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """The pods bound to a node; NotReadable while one of them cannot be read: it may be one that must not go."""

    def attachments_on(self, node: str) -> tuple[VolumeAttachment, ...]:
        """The volumes attached to a node; NotReadable while one of them cannot be read."""


class VolumeLookups(ClusterLookups, Protocol):
    """The same, with what volumes need."""

    def volume_claim(self, key: str) -> VolumeClaim | None:
        """The volume claim of that namespace/name."""

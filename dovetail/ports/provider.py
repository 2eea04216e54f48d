"""What a provider is: everything that the rest of the product must know of one cloud, in one record.

A provider is a folder of its own, dovetail/adapters/NAME, whose module `provider` holds the record as `PROVIDER`, and
one line in the worker's table. It reaches the cluster through ports alone, and nothing but its folder knows its name:
kinds to watch, labels, settings and the way to open it are read from here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from dovetail.ports.cloud import Catalogues, Cloud, NodeClassUpkeep, Rehearsal, SupposedClasses
from dovetail.ports.interruptions import Interruptions
from dovetail.ports.kept_objects import KeptObjects
from dovetail.ports.objects import NodeClaims, Nodes, Notices
from dovetail.ports.raw_objects import MadeObjects
from dovetail.ports.view import ClusterView

S = TypeVar("S")
Right = tuple[str, str, tuple[str, ...]]  # group, resource[/subresource], verbs


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClassKind:
    """A kind of NodeClass and where the API server serves it. It is cluster-wide; its definition may be absent."""

    kind: str
    group: str
    version: str
    plural: str

    @property
    def path(self) -> str:
        """Below the server's address."""
        return f"/apis/{self.group}/{self.version}/{self.plural}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings:
    """Settings that every cloud may need and that belong to none of them."""

    cluster: str  # the cluster's name, for tags
    namespace: str  # where objects of our own are kept
    endpoint: str  # where new nodes find the API server; empty: not given
    agent: str  # how our calls are known
    gates: Mapping[str, bool]
    best_effort_min_values: bool
    cluster_uid: str = ""  # of its namespace kube-system; empty: not known
    legacy_repair: bool = False  # unhealthy nodes are repaired as until 1.14
    read_only: bool = False  # this process only looks: no call of the cloud that changes anything


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCluster:
    """The cluster that a cloud serves, as its provider sees it."""

    settings: SharedSettings
    view: ClusterView
    claims: NodeClaims
    nodes: Nodes
    notices: Notices
    node_classes: Callable[[NodeClassKind], Mapping[str, Any]]  # as watched, by name; NotSeenYet while that is broken
    objects: Callable[[str, str, str], MadeObjects]  # of a kind, by its path, in a namespace; empty: cluster-wide
    version: Callable[[], Awaitable[str]]  # major.minor, asked of the API server now
    authority: Callable[[], str]  # the certificates by which new nodes know it now, in base64; empty: the system's own


async def known_at_once() -> None:
    """Of a cloud whose prices are known as it is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCloud:
    cloud: Cloud
    catalogues: Catalogues
    classes: NodeClassUpkeep | None  # None: this cloud's classes need no upkeep
    interruptions: Interruptions | None  # None: nothing is announced
    close: Callable[[], Awaitable[None]]
    supposed: SupposedClasses | None = None  # None: this cloud cannot say what a changed class would mean
    rehearsal: Rehearsal | None = None  # None: this cloud can only be asked by doing
    priced: Callable[[], Awaitable[None]] = known_at_once  # until the cloud's own prices are known, or will not be


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(Generic[S]):
    """One cloud.

    `labels` are those that it puts on instance types and offerings: a pool that does not name one lets any value
    through. The label that names a reservation ends with `reservation-id`. `settings` is a frozen pydantic model with a
    default for every field; the alias of a field is its environment variable. `open` raises a Failure where something
    is missing, and has then closed what it had opened.
    """

    name: str  # the value of DOVETAIL_CLOUD, and of the label `provider` in metrics
    node_classes: tuple[NodeClassKind, ...]
    labels: frozenset[str]
    settings: type[S]
    open: Callable[[ProviderCluster, S], Awaitable[OpenCloud]]
    rights: tuple[Right, ...] = ()  # in the whole cluster, beside those to look at its classes that every cloud needs
    retired: tuple[NodeClassKind, ...] = ()  # of releases before v1: people are warned where there are some
    reservation_labels: frozenset[str] = frozenset()  # those that name one reservation (DIS-174)
    console: str = ""  # the command that prints what an instance said as it started, with {instance}
    buckets: Mapping[str, Callable[[str, str], KeptObjects]] = field(default_factory=dict)  # scheme -> bucket, prefix

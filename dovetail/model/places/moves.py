"""May the pod of a Deployment of one replica be moved, and how far is its move?

A move rolls the Deployment out anew, so that the new pod is available before the old one leaves. A person asks for it
with `dovetail.sh/move` on the Deployment or its Namespace; the nearer one wins. A move that is under way is written on
the Deployment itself (`move_changes`). So every look can work out how far it is, even if another worker began it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from dovetail.model import names
from dovetail.model.objects.workloads import (
    AdmissionGuard,
    Begun,
    Deployment,
    Namespace,
    RollOut,
    SelectorSource,
    Volume,
    VolumeClaim,
)
from dovetail.model.places.move_changes import GUARD, GUARD_KINDS
from dovetail.model.pods import Owner, Pod, controller_of
from dovetail.model.values.time import format_time

WORKLOAD_KINDS: Final = frozenset({"Deployment", "ReplicaSet", *GUARD_KINDS})  # that every move depends on
VOLUME_KINDS: Final = frozenset({"PersistentVolumeClaim", "PersistentVolume"})

RESTART: Final = "restart"
EVICT: Final = "evict"
HOLD: Final = "hold"

WITHOUT_SUCCESSOR: Final = frozenset({"DaemonSet", "Job", "Node"})  # a Namespace's wish does not apply to their pods

RETRY_SECONDS: Final = 900.0  # until the next try after a failed move, unless the Deployment has changed since
OVERDUE_SECONDS: Final = 60.0  # a roll-out this long past its deadline is taken back, even if nobody reports a failure
USUAL_SECONDS: Final = 120.0  # a pod's start takes at most; a move that the node's deadline could cut off is not begun


class WhyNotMoved(StrEnum):
    """Why a pod cannot be moved by a roll-out. `waits`: it soon can, so it is not evicted meanwhile."""

    words: str
    waits: bool

    def __new__(cls, value: str, words: str, waits: bool = False) -> "WhyNotMoved":
        why = str.__new__(cls, value)
        why._value_, why.words, why.waits = value, words, waits
        return why

    NOT_GUARDED = "NotGuarded", f"the ValidatingAdmissionPolicy {GUARD} or its binding is missing"
    NO_DEPLOYMENT = "NoDeployment", "it is no pod of a Deployment, so nothing can run a second one beside it"
    SEVERAL_REPLICAS = "SeveralReplicas", "its Deployment has more than one replica: evictions keep the others"
    STRATEGY = "Strategy", "its Deployment's strategy makes no pod available before it takes one away"
    PAUSED = "Paused", "its Deployment is paused"
    NO_DEADLINE = "NoDeadline", "its Deployment has no progressDeadlineSeconds, so nobody would say that a move fails"
    UNSEEN = "Unseen", "what people and its owner say of a move cannot be seen now", True
    ROLLING_OUT = "RollingOut", "a roll-out of its Deployment is under way", True
    STUCK = "Stuck", "a roll-out of its Deployment has exceeded its deadline"
    VOLUME = "Volume", "it uses a volume that only one node may mount"
    HOST_PORT = "HostPort", "it has a port of its node"
    ONE_NODE = "OneNode", "it asks for one node by name"
    NODE_DEADLINE = "NodeDeadline", "its node must be gone before a new pod can be sure to have started"


class MoveStep(StrEnum):
    EVICT = "evict"  # as Kubernetes does it
    HOLD = "hold"  # nothing, as under a PDB that never allows
    BEGIN = "begin"  # change the template
    WATCH = "watch"  # a move is under way
    TAKE_BACK = "take back"  # it has failed


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveVerdict:
    """What to do about one pod. `why`: why a wish to restart cannot be fulfilled; `says`: what holds the pod, for
    people."""

    step: MoveStep = MoveStep.EVICT
    deployment: Deployment | None = None
    why: WhyNotMoved | None = None
    says: str = ""
    failed: bool = False  # it is held because its last move was taken back

    @property
    def is_wished(self) -> bool:
        """Whether its owner asks for it to be held: that holds it in any case, as a PDB does."""
        return self.step is MoveStep.HOLD and self.why is None and not self.failed

    @property
    def moves(self) -> bool:
        """Whether it leaves without an eviction, so that no PDB is asked."""
        return self.step in (MoveStep.BEGIN, MoveStep.WATCH)


class Workloads(Protocol):
    """Looks up the objects that a pod depends on, as last seen. `unseen`: whether one of these kinds is not watched
    now, so that an object may be missing only here."""

    def unseen(self, *kinds: str) -> bool: ...
    def replica_set(self, key: str) -> SelectorSource | None: ...
    def deployment(self, key: str) -> Deployment | None: ...
    def namespace(self, name: str) -> Namespace | None: ...
    def volume_claim(self, key: str) -> VolumeClaim | None: ...
    def volume(self, name: str) -> Volume | None: ...
    def guard(self, key: str) -> AdmissionGuard | None: ...


class Moves:
    """Decides about pods, by the objects of one moment."""

    def __init__(self, workloads: Workloads, now: float) -> None:
        self._workloads, self._now = workloads, now

    def verdict(self, pod: Pod, node: str, deadline: float | None = None) -> MoveVerdict:
        """What to do about a pod on the node of that UID, which must be gone by the deadline."""
        owner = controller_of(pod.owners)
        deployment = self.deployment_of(pod)
        roll_out = deployment.roll_out if deployment is not None else None
        if roll_out is not None and roll_out.begun is not None and roll_out.begun.node == node:
            return self._under_way(roll_out, roll_out.begun, deployment)
        wish = roll_out.wish if roll_out is not None else None
        if wish is None and self._may_be_wished(pod, owner, deployment):
            return MoveVerdict(step=MoveStep.HOLD, why=WhyNotMoved.UNSEEN, says=WhyNotMoved.UNSEEN.words)
        if wish is None and owner is not None and owner.kind not in WITHOUT_SUCCESSOR:
            wish = self._wish_of_namespace(pod.namespace)
        if wish in (None, EVICT) or (roll_out is None and wish != RESTART):
            return MoveVerdict(deployment=deployment)
        if deployment is None or roll_out is None:
            return MoveVerdict(why=WhyNotMoved.NO_DEPLOYMENT)
        if wish != RESTART:
            unknown = "" if wish == HOLD else ", a word that is not known"
            return MoveVerdict(
                step=MoveStep.HOLD, deployment=deployment, says=f"{names.MOVE} says {wish[:40]!r}{unknown}"
            )
        return self._to_restart(pod, roll_out, deployment, deadline)

    def would_be_moved(self, pod: Pod, node: str) -> Deployment | None:
        """Its Deployment, if nobody asks for a move and one would be possible."""
        deployment = self.deployment_of(pod)
        roll_out = deployment.roll_out if deployment is not None else None
        if roll_out is None or roll_out.wish is not None or self.verdict(pod, node).step is not MoveStep.EVICT:
            return None
        return deployment if self._why_not(pod, roll_out, None) is None else None

    def deployment_of(self, pod: Pod) -> Deployment | None:
        """The Deployment whose ReplicaSet controls the pod, if its roll-outs are read."""
        owner = _controller(pod.owners, "ReplicaSet")
        source = self._workloads.replica_set(f"{pod.namespace}/{owner.name}") if owner is not None else None
        above = _controller(source.owners, "Deployment") if source is not None else None
        found = self._workloads.deployment(f"{pod.namespace}/{above.name}") if above is not None else None
        return found if found is not None and found.roll_out is not None else None

    def _may_be_wished(self, pod: Pod, owner: Owner | None, deployment: Deployment | None) -> bool:
        """Whether an object that could ask for a move is missing here while its kind is not watched, as after a start.
        An object that has been seen counts as it was then: a lost watch holds no pod about which everything is
        known."""
        if owner is None or owner.kind in WITHOUT_SUCCESSOR:
            return False
        if self._workloads.namespace(pod.namespace) is None and self._workloads.unseen("Namespace"):
            return True
        if owner.kind != "ReplicaSet" or deployment is not None:
            return False
        source = self._workloads.replica_set(f"{pod.namespace}/{owner.name}")
        above = _controller(source.owners, "Deployment") if source is not None else None
        missing = "ReplicaSet" if source is None else "Deployment" if above is not None else ""
        return bool(missing) and self._workloads.unseen(missing)

    def _wish_of_namespace(self, name: str) -> str | None:
        found = self._workloads.namespace(name)
        return found.annotations.get(names.MOVE) if found is not None else None

    def _under_way(self, roll_out: RollOut, begun: Begun, deployment: Deployment | None) -> MoveVerdict:
        if is_to_be_taken_back(roll_out, begun, self._now):
            return MoveVerdict(
                step=MoveStep.TAKE_BACK, deployment=deployment, says="its new pod does not become available"
            )
        return MoveVerdict(step=MoveStep.WATCH, deployment=deployment, says="it is being moved")

    def _to_restart(self, pod: Pod, roll_out: RollOut, deployment: Deployment, deadline: float | None) -> MoveVerdict:
        failed = roll_out.failed
        if failed is not None and failed.generation == roll_out.generation and self._now - failed.at < RETRY_SECONDS:
            says = f"moving it failed at {format_time(failed.at)} and is tried again {RETRY_SECONDS / 60:.0f} min later"
            return MoveVerdict(step=MoveStep.HOLD, deployment=deployment, says=says, failed=True)
        why = self._why_not(pod, roll_out, deadline)
        if why is None:
            return MoveVerdict(step=MoveStep.BEGIN, deployment=deployment)
        step = MoveStep.HOLD if why.waits else MoveStep.EVICT
        return MoveVerdict(step=step, deployment=deployment, why=why, says=why.words if why.waits else "")

    def _why_not(self, pod: Pod, roll_out: RollOut, deadline: float | None) -> WhyNotMoved | None:
        """Why it cannot be moved, in the order in which a person would correct it."""
        depends_on = WORKLOAD_KINDS | (VOLUME_KINDS if _claims_of(pod) else frozenset())
        checks = (
            (self._workloads.unseen(*depends_on), WhyNotMoved.UNSEEN),
            (not self.is_guarded, WhyNotMoved.NOT_GUARDED),
            (roll_out.replicas != 1, WhyNotMoved.SEVERAL_REPLICAS),
            (not roll_out.surges, WhyNotMoved.STRATEGY),
            (roll_out.paused, WhyNotMoved.PAUSED),
            (roll_out.progress_seconds is None, WhyNotMoved.NO_DEADLINE),
            (bool(pod.shape.host_ports), WhyNotMoved.HOST_PORT),
            (roll_out.names_node or _asks_for_one_node(pod), WhyNotMoved.ONE_NODE),
            (any(map(self._is_of_one_node, _claims_of(pod))), WhyNotMoved.VOLUME),
            (deadline is not None and deadline - pod.own_grace - self._now < USUAL_SECONDS, WhyNotMoved.NODE_DEADLINE),
            (roll_out.timed_out, WhyNotMoved.STUCK),
            (not roll_out.settled, WhyNotMoved.ROLLING_OUT),
        )
        return next((why for found, why in checks if found), None)

    @property
    def is_guarded(self) -> bool:
        """Whether the API server refuses us every other change of a Deployment."""
        found = [self._workloads.guard(f"{kind}/{GUARD}") for kind in GUARD_KINDS]
        return all(guard is not None and guard.refuses for guard in found)

    def _is_of_one_node(self, claim: str) -> bool:
        """Whether pods of two nodes cannot both use the volume. An unknown claim counts as such."""
        found = self._workloads.volume_claim(claim)
        if found is None or not found.many_nodes:
            return True
        volume = self._workloads.volume(found.volume_name) if found.volume_name else None
        return volume is not None and volume.local


def _controller(owners: Iterable[Owner], kind: str) -> Owner | None:
    return next((owner for owner in owners if owner.controller and owner.kind == kind), None)


def _claims_of(pod: Pod) -> list[str]:
    """The volume claims that its successor would use as well: not those that are made anew for each pod."""
    return [f"{pod.namespace}/{use.claim_name}" for use in pod.shape.volumes if not use.ephemeral]


def _asks_for_one_node(pod: Pod) -> bool:
    return any(key == names.HOSTNAME for key, _ in pod.shape.node_selector)


def is_to_be_taken_back(roll_out: RollOut, begun: Begun, now: float) -> bool:
    """Whether a move has failed. Not if somebody has changed the Deployment since: then the roll-out is theirs."""
    if roll_out.settled or roll_out.generation != begun.generation:
        return False
    longest = (roll_out.progress_seconds or 0) + OVERDUE_SECONDS
    return roll_out.timed_out or now - begun.since > longest

"""Moving the pod of a Deployment of one replica by a roll-out of its own, so that the new pod is available before the
old one goes.

A person asks for it by `dovetail.sh/move` on the Deployment or its Namespace; the nearer one wins. A move changes one
annotation of the Deployment's template, so that its controller makes a new pod; the fact that it is under way stands on
the Deployment itself, in the same write. So every look finds out by itself how far a move is, even one that another
worker began.

The template's annotation goes from `a` to `b` and back: the controller finds the ReplicaSet of the other value again,
so that any number of moves adds at most two. A new value each time would push the owner's own versions out of
revisionHistoryLimit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.workloads import (
    AdmissionGuard,
    Begun,
    Deployment,
    Failed,
    Namespace,
    RollOut,
    SelectorSource,
    Volume,
    VolumeClaim,
)
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pods import Owner, Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time, time_or_none

GUARD: Final = "dovetail-moves"  # the admission policy, and its binding
GUARD_KINDS: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
WORKLOAD_KINDS: Final = frozenset({"Deployment", "ReplicaSet", *GUARD_KINDS})  # that every move depends on
VOLUME_KINDS: Final = frozenset({"PersistentVolumeClaim", "PersistentVolume"})

RESTART: Final = "restart"
EVICT: Final = "evict"
HOLD: Final = "hold"

WITHOUT_SUCCESSOR: Final = frozenset({"DaemonSet", "Job", "Node"})  # of their pods a Namespace's word does not speak

RETRY_SECONDS: Final = 900.0  # after a move that was taken back, unless the Deployment has changed since
OVERDUE_SECONDS: Final = 60.0  # past its own deadline a roll-out of which nobody says anything is taken back too
USUAL_SECONDS: Final = 120.0  # what a pod's start takes at most: a move that the node's deadline may cut is not begun


class WhyNotMoved(StrEnum):
    """Why a pod that is to be moved by a roll-out is not; `waits`: it is soon, so that it is not evicted meanwhile."""

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
    """What to do about one pod."""

    EVICT = "evict"  # as Kubernetes does it
    HOLD = "hold"  # nothing, as under a PDB that never allows
    BEGIN = "begin"  # change the template
    WATCH = "watch"  # a move is under way
    TAKE_BACK = "take back"  # it has failed


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveVerdict:
    """What holds of one pod. `why`: where a wish to restart cannot be fulfilled; `says`: what holds it, for people."""

    step: MoveStep = MoveStep.EVICT
    deployment: Deployment | None = None
    why: WhyNotMoved | None = None
    says: str = ""
    failed: bool = False  # it is held because its last move was taken back

    @property
    def is_wished(self) -> bool:
        """Whether it is held because its owner says so: this holds it in any case, as a PDB does."""
        return self.step is MoveStep.HOLD and self.why is None and not self.failed

    @property
    def moves(self) -> bool:
        """Whether no eviction is needed for it to leave: no PDB is asked."""
        return self.step in (MoveStep.BEGIN, MoveStep.WATCH)


class Workloads(Protocol):
    """Where the objects that a pod depends on are looked up, as last seen. `unseen`: whether one of these kinds is not
    watched now, so that an object of it may be missing here alone."""

    def unseen(self, *kinds: str) -> bool: ...
    def replica_set(self, key: str) -> SelectorSource | None: ...
    def deployment(self, key: str) -> Deployment | None: ...
    def namespace(self, name: str) -> Namespace | None: ...
    def volume_claim(self, key: str) -> VolumeClaim | None: ...
    def volume(self, name: str) -> Volume | None: ...
    def guard(self, key: str) -> AdmissionGuard | None: ...


class OfSnapshot:
    def __init__(self, snapshot: Snapshot) -> None:
        self._of = snapshot

    def unseen(self, *kinds: str) -> bool:
        return False

    def replica_set(self, key: str) -> SelectorSource | None:
        return self._of.selector_sources.get(f"ReplicaSet/{key}")

    def deployment(self, key: str) -> Deployment | None:
        return self._of.deployments.get(key)

    def namespace(self, name: str) -> Namespace | None:
        return self._of.namespaces.get(name)

    def volume_claim(self, key: str) -> VolumeClaim | None:
        return self._of.volume_claims.get(key)

    def volume(self, name: str) -> Volume | None:
        return self._of.volumes.get(name)

    def guard(self, key: str) -> AdmissionGuard | None:
        return self._of.guards.get(key)


class Moves:
    """What to do about pods, by the objects of one moment."""

    def __init__(self, workloads: Workloads, now: float) -> None:
        self._workloads, self._now = workloads, now

    def verdict(self, pod: Pod, node: str, deadline: float | None = None) -> MoveVerdict:
        """Of a pod on the node of that UID, which must be gone by the deadline."""
        owner = next((o for o in pod.owners if o.controller), None)
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
        """Its Deployment, where nobody asks for a move and one would be possible."""
        deployment = self.deployment_of(pod)
        roll_out = deployment.roll_out if deployment is not None else None
        if roll_out is None or roll_out.wish is not None or self.verdict(pod, node).step is not MoveStep.EVICT:
            return None
        return deployment if self._why_not(pod, roll_out, None) is None else None

    def deployment_of(self, pod: Pod) -> Deployment | None:
        """The Deployment whose roll-outs are read and whose ReplicaSet controls the pod."""
        owner = _controller(pod.owners, "ReplicaSet")
        source = self._workloads.replica_set(f"{pod.namespace}/{owner.name}") if owner is not None else None
        above = _controller(source.owners, "Deployment") if source is not None else None
        found = self._workloads.deployment(f"{pod.namespace}/{above.name}") if above is not None else None
        return found if found is not None and found.roll_out is not None else None

    def _may_be_wished(self, pod: Pod, owner: Owner | None, deployment: Deployment | None) -> bool:
        """Whether an object that could ask for a move is not here, and its kind is not watched now, as after a start.
        What has been seen counts as it was: a lost watch holds no pod of which everything is known."""
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
        """Why it cannot be moved, in the order in which a person would put it right."""
        grace = pod.grace_seconds or 0
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
            (deadline is not None and deadline - grace - self._now < USUAL_SECONDS, WhyNotMoved.NODE_DEADLINE),
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
        """Whether pods of two nodes cannot both use it. One that is not known may be."""
        found = self._workloads.volume_claim(claim)
        if found is None or not found.many_nodes:
            return True
        volume = self._workloads.volume(found.volume_name) if found.volume_name else None
        return volume is not None and volume.local


class MovablePods:
    """The pods of a snapshot that leave by a roll-out, and those that are held; each is asked about once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._moves = snapshot, Moves(OfSnapshot(snapshot), snapshot.now)
        self._known: dict[str, MoveVerdict] = {}

    def verdict(self, pod: Pod) -> MoveVerdict:
        """As a drain that begins now would find it."""
        known = self._known.get(pod.uid)
        if known is None:
            known = self._known[pod.uid] = self._verdict(pod)
        return known

    def _verdict(self, pod: Pod) -> MoveVerdict:
        node = self._snapshot.nodes.get(pod.node_name)
        if node is None:
            return MoveVerdict()
        claim = self._snapshot.pairing.claim_of(node)
        grace = claim.termination_grace if claim is not None else None
        return self._moves.verdict(pod, node.uid, None if grace is None else self._snapshot.now + grace)

    def would_be_moved(self, pod: Pod) -> Deployment | None:
        """Its Deployment, where nobody asks for a move and one would be possible."""
        return self._moves.would_be_moved(pod, "")

    def moves(self, pod: Pod) -> bool:
        """Whether it leaves without an eviction."""
        return self.verdict(pod).moves

    def why_held(self, pod: Pod) -> str:
        """Why it stays although no PDB holds it: its owner says so, or its last move failed; empty where it may go."""
        found = self.verdict(pod)
        return found.says if found.is_wished or found.failed or found.step is MoveStep.TAKE_BACK else ""


def movable_pods(snapshot: Snapshot) -> MovablePods | None:
    """None where no Deployment's roll-out is read, so that nobody asks."""
    reads = any(deployment.roll_out is not None for deployment in snapshot.deployments.values())
    return MovablePods(snapshot) if reads else None


def _controller(owners: Iterable[Owner], kind: str) -> Owner | None:
    return next((owner for owner in owners if owner.controller and owner.kind == kind), None)


def _claims_of(pod: Pod) -> list[str]:
    """The claims that its successor would use as well: not those that are made for each pod anew."""
    return [f"{pod.namespace}/{use.claim_name}" for use in pod.shape.volumes if not use.ephemeral]


def _asks_for_one_node(pod: Pod) -> bool:
    return any(key == names.HOSTNAME for key, _ in pod.shape.node_selector)


def is_to_be_taken_back(roll_out: RollOut, begun: Begun, now: float) -> bool:
    """Whether a move has failed. Not where somebody has changed the Deployment since: the roll-out is theirs then."""
    if roll_out.settled or roll_out.generation != begun.generation:
        return False
    longest = (roll_out.progress_seconds or 0) + OVERDUE_SECONDS
    return roll_out.timed_out or now - begun.since > longest


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveChange:
    """Annotations of a Deployment to set (None removes one), and of its template. `template` None: left alone."""

    annotations: Mapping[str, str | None]
    template: Mapping[str, str | None] | None = None

    @property
    def begins(self) -> bool:
        return self.annotations.get(names.MOVE_FOR) is not None


def beginning(roll_out: RollOut, node: str, now: float) -> MoveChange:
    """What begins a move. The version that it is written at makes the generation certain."""
    begun = Begun(node=node, former=roll_out.moved, generation=roll_out.generation + 1, since=now)
    value = "b" if roll_out.moved == "a" else "a"
    return MoveChange(
        annotations={names.MOVE_FOR: begun_text(begun), names.MOVE_FAILED: None}, template={names.MOVED: value}
    )


def ending() -> MoveChange:
    """What ends one that has succeeded, or that is somebody else's roll-out by now."""
    return MoveChange(annotations={names.MOVE_FOR: None})


def taking_back(roll_out: RollOut, begun: Begun, now: float, *, failed: bool) -> MoveChange:
    """The template as it was, to the letter: its pods have their former hash, so the controller goes back to the old
    ReplicaSet, whose pod never left."""
    mark = f"{roll_out.generation + 1}/{format_time(now)}" if failed else None
    return MoveChange(
        annotations={names.MOVE_FOR: None, names.MOVE_FAILED: mark}, template={names.MOVED: begun.former or None}
    )


def begun_text(begun: Begun) -> str:
    """dovetail.sh/move-for."""
    return f"{begun.node}/{begun.former}/{begun.generation}/{format_time(begun.since)}"


def read_begun(text: str) -> Begun | None:
    """What it says; None where it is not ours."""
    parts = text.split("/")
    since = time_or_none(parts[-1])
    if len(parts) != 4 or not parts[0] or parts[1] not in ("", "a", "b") or not parts[2].isdecimal() or since is None:
        return None
    return Begun(node=parts[0], former=parts[1], generation=int(parts[2]), since=since)


def read_failed(text: str) -> Failed | None:
    """What dovetail.sh/move-failed says; None where it is not ours."""
    generation, _, moment = text.partition("/")
    at = time_or_none(moment)
    return Failed(generation=int(generation), at=at) if generation.isdecimal() and at is not None else None


def passed_on(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which each pod that is being moved has left its room to its successor: the old one needs no room
    any more, and what a claim promised it is promised to the new one. Else a second node would be launched."""
    successors = _successors(snapshot)
    if not successors:
        return snapshot
    claims = {name: _with_successors(claim, successors) for name, claim in snapshot.claims.items()}
    pods = {uid: pod for uid, pod in snapshot.pods.items() if uid not in successors}
    index = snapshot.pod_index.without(successors, pods) if snapshot.pod_index is not None else None
    return replace(snapshot, claims=claims, pods=pods, pod_index=index, changed={})


def _successors(snapshot: Snapshot) -> dict[str, str]:
    """UIDs of old pods, each with that of the pod that takes its place."""
    begun = {d.key: d.roll_out.begun.node for d in snapshot.deployments.values() if d.roll_out and d.roll_out.begun}
    if not begun:
        return {}
    moves, uids = Moves(OfSnapshot(snapshot), snapshot.now), {n.uid: n.name for n in snapshot.nodes.values()}
    old, new = dict[str, str](), dict[str, str]()
    for pod in snapshot.pods.values():
        found = moves.deployment_of(pod) if pod.deleting_since is None else None
        if found is None or found.key not in begun or begun[found.key] not in uids:
            continue
        (old if pod.node_name == uids[begun[found.key]] else new)[found.key] = pod.uid
    return {uid: new[key] for key, uid in old.items() if key in new}


def _with_successors(claim: NodeClaim, successors: Mapping[str, str]) -> NodeClaim:
    planned = planned_pods(claim)
    if not any(uid in successors for uid in planned):
        return claim
    text = ",".join(successors.get(uid, uid) for uid in planned)
    return replace(claim, annotations={**claim.annotations, names.PLANNED_PODS: text})

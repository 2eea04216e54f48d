"""Which pods of a snapshot are moved or held instead of evicted, and whose room already counts as their successors'?"""

from collections.abc import Mapping
from dataclasses import replace

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_active
from dovetail.model.objects.workloads import AdmissionGuard, Deployment, Namespace, SelectorSource, Volume, VolumeClaim
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.places.moves import Moves, MoveStep, MoveVerdict
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot


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


class MovablePods:
    """The pods of a snapshot that leave by a roll-out, and those that are held; each is judged once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._moves = snapshot, Moves(OfSnapshot(snapshot), snapshot.now)
        self._known: dict[str, MoveVerdict] = {}

    def verdict(self, pod: Pod) -> MoveVerdict:
        """What a drain that begins now would do about it."""
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
        """Its Deployment, if nobody asks for a move and one would be possible."""
        return self._moves.would_be_moved(pod, "")

    def moves(self, pod: Pod) -> bool:
        """Whether it leaves without an eviction."""
        return self.verdict(pod).moves

    def why_held(self, pod: Pod) -> str:
        """Why it stays although no PDB holds it: its owner asks for that, or its last move failed; empty if it may
        leave."""
        found = self.verdict(pod)
        return found.says if found.is_wished or found.failed or found.step is MoveStep.TAKE_BACK else ""


def movable_pods(snapshot: Snapshot) -> MovablePods | None:
    """None if no Deployment's roll-outs are read, so that no move can be asked for."""
    reads = any(deployment.roll_out is not None for deployment in snapshot.deployments.values())
    return MovablePods(snapshot) if reads else None


def passed_on(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which the room of each pod that is being moved is its successor's: the old pod needs no room any
    more, and what a claim promised it is promised to the new one. Otherwise a second node would be launched."""
    successors = _successors(snapshot)
    if not successors:
        return snapshot
    claims = {name: _with_successors(claim, successors) for name, claim in snapshot.claims.items()}
    pods = {uid: pod for uid, pod in snapshot.pods.items() if uid not in successors}
    index = snapshot.pod_index.without(successors, pods) if snapshot.pod_index is not None else None
    return replace(snapshot, claims=claims, pods=pods, pod_index=index, changed={})


def _successors(snapshot: Snapshot) -> dict[str, str]:
    """UIDs of old pods, each with the UID of the pod that replaces it. An owner may write the note itself: it counts
    only on a node that leaves, where no other pod looks for room."""
    begun = {
        d.key: d.roll_out.begun.node
        for d in snapshot.deployments.values()
        if d.roll_out and d.roll_out.begun and d.roll_out.replicas == 1 and not d.roll_out.settled
    }
    if not begun:
        return {}
    leaving = (n for n in snapshot.nodes.values() if snapshot.is_leaving(n, snapshot.pairing.claim_of(n)))
    moves, uids = Moves(OfSnapshot(snapshot), snapshot.now), {n.uid: n.name for n in leaving}
    old, new = dict[str, str](), dict[str, str]()
    for pod in snapshot.pods.values():
        found = moves.deployment_of(pod) if is_active(pod) else None
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

"""What is unfinished: claims and nodes that need a workflow, marks to look at, claims that must go, orphans.

Level-triggered: each function answers from the objects as they are, so a lost signal and a lost Temporal database are
found alike. Whether a workflow already runs is not known here; the caller describes it. Instances are terminated only
within bounds; see `too_many`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.lifecycle.launch_requests import group_of
from dovetail.lifecycle.liveness import initialization_overdue
from dovetail.messages.orders import DeleteClaim, StartOwner, StartRelease, TakeOffMark, TerminateOrphan
from dovetail.messages.subjects import ClaimRef
from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.pod_rules import is_active, is_daemon, is_mirror, is_terminal
from dovetail.model.places.kept_places import planned_pods
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.expiry.expiries import deleted_at
from dovetail.rules.pause.pauses import next_end
from dovetail.rules.said import Cause

ORPHAN_AGE = 30.0  # a launch writes its claim within this, or its retry finds the instance by its tag
ORPHANS_AT_LEAST = 3  # more than this, and more than the share below, are no leak but a lost API server
ORPHANS_SHARE = 0.1
MASS_SHARE = 0.5  # so many at once are rather a wrong answer than a leak: they must be seen for a while
MASS_SECONDS = 60.0
LOST_NODE_SECONDS = 300.0  # a kubelet that restarts, or whose instance reboots, makes its Node anew before that


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedInstance:
    provider_id: str
    claim_uid: str = ""
    group: str = ""
    launched: float = 0.0


def reference(claim: NodeClaim) -> ClaimRef:
    """The claim as orders name it."""
    return ClaimRef(name=claim.name, uid=claim.uid, pool=claim.labels.get(names.NODE_POOL, ""))


def is_ours(snapshot: Snapshot, claim: NodeClaim) -> bool:
    """PLM-1: its NodeClass is of a kind that our cloud understands."""
    supported = snapshot.supported_node_classes
    return not supported or (claim.node_class.group, claim.node_class.kind) in supported


def owners(snapshot: Snapshot) -> tuple[StartOwner, ...]:
    """The claims that need a workflow, and which."""
    found = []
    for claim in snapshot.claims.values():
        if not is_ours(snapshot, claim):
            continue
        if claim.deleting_since is not None:
            if names.TERMINATION_FINALIZER in claim.finalizers:
                found.append(StartOwner(claim=reference(claim), workflow_type=TERMINATE_NODE, node=claim.node_name))
        elif not claim.is_true(names.INITIALIZED_CONDITION):
            found.append(StartOwner(claim=reference(claim), workflow_type=LAUNCH_NODE, node=claim.node_name))
    return tuple(found)


def deserted(snapshot: Snapshot) -> tuple[DeleteClaim, ...]:
    """TRM-4: a node is deleting and its claim is not; deleting either deletes both. With two claims it has none
    (TRM-3)."""
    found = []
    for node in snapshot.nodes.values():
        mine = snapshot.pairing.claims_of(node)
        if node.deleting_since is None or names.TERMINATION_FINALIZER not in node.finalizers or len(mine) != 1:
            continue
        if mine[0].deleting_since is None and is_ours(snapshot, mine[0]):
            message = f"its Node {node.name} was deleted"
            found.append(DeleteClaim(claim=reference(mine[0]), reason="node_deleted", message=message))
    return tuple(found)


def without_node(snapshot: Snapshot) -> tuple[DeleteClaim, ...]:
    """TRM-4: the claims whose Node is gone. A kubelet that restarts may make it anew, so they must stay so for a
    while."""
    return tuple(
        DeleteClaim(claim=reference(claim), reason="node_deleted", message=f"its Node {claim.node_name} is gone")
        for claim in snapshot.pairing.claims_awaiting_node()
        if claim.deleting_since is None and is_ours(snapshot, claim) and snapshot.has_lost_its_node(claim)
    )


def leaving_unowned(snapshot: Snapshot) -> dict[str, tuple[int, str]]:
    """What a person has deleted and waits for, as far as objects tell, by UID: its version, and for a claim its name. A
    claim that leaves has a workflow, unless nobody has looked; a claim whose Node was deleted is deleted soon."""
    found: dict[str, tuple[int, str]] = {}
    for order in owners(snapshot):
        if order.workflow_type == TERMINATE_NODE:
            found[order.claim.uid] = int(snapshot.claims[order.claim.name].resource_version or 0), order.claim.name
    for deserted_claim in deserted(snapshot):
        node = snapshot.nodes.get(snapshot.claims[deserted_claim.claim.name].node_name)
        if node is not None:
            found[node.uid] = int(node.resource_version or 0), ""
    return found


def releases(snapshot: Snapshot) -> tuple[StartRelease, ...]:
    """TRM-10: deleting managed nodes without a claim, or with two (TRM-3)."""
    return tuple(
        StartRelease(node=node.name, uid=node.uid)
        for node in snapshot.nodes.values()
        if node.deleting_since is not None
        and names.TERMINATION_FINALIZER in node.finalizers
        and _is_managed(snapshot, node)
        and len(snapshot.pairing.claims_of(node)) != 1
    )


def _is_managed(snapshot: Snapshot, node: Node) -> bool:
    """PLM-2: it carries the label of a NodeClass kind that our cloud understands."""
    supported = snapshot.supported_node_classes
    return any(f"{group}/{kind.lower()}" in node.labels for group, kind in supported)


def marks(snapshot: Snapshot) -> tuple[TakeOffMark, ...]:
    """All marks: ours with the owner that they name; those of a predecessor, which name none (DIS-12). Of its marks is
    also a deadline that it wrote before a delete that never came: it would force the pods of whatever comes next."""
    found = []
    for claim in snapshot.claims.values():
        if claim.deleting_since is not None or not is_ours(snapshot, claim):
            continue
        owner = claim.annotations.get(names.OWNER, "")
        tainted = any(t.key == names.DISRUPTED_TAINT for n in snapshot.pairing.nodes_of(claim) for t in n.taints)
        reasoned = claim.condition(names.DISRUPTION_REASON) is not None and not claim.is_rebooting
        if owner or tainted or reasoned or names.TERMINATION_DEADLINE in claim.annotations:
            found.append(TakeOffMark(claim=reference(claim), owner=owner))
    return tuple(found)


def never_initialized(snapshot: Snapshot, launching: Iterable[str]) -> tuple[DeleteClaim, ...]:
    """LIF-83: of these claims, those made for pods or buffers whose node runs none and has not been initialised for too
    long."""
    found = []
    for claim in filter(None, map(snapshot.claims.get, launching)):
        uids = planned_pods(claim)
        waiting = any(
            (pod := snapshot.pods.get(uid)) is not None and is_active(pod) and not pod.node_name for uid in uids
        )
        planned = uids or names.PLANNED_BUFFERS in claim.annotations
        if not planned or not initialization_overdue(claim, snapshot.now, awaited=waiting):
            continue
        nodes = snapshot.pairing.nodes_of(claim)
        said_of_it = [claim.annotations, *[node.annotations for node in nodes]]
        kept = any(said.get(names.DO_NOT_DISRUPT) == "true" for said in said_of_it)
        used = any(runs_for_users(pod) for node in nodes for pod in snapshot.pods_by_node.get(node.name, ()))
        hold = hold_of(said_in(snapshot, claim.labels.get(names.NODE_POOL, "")), Cause.SCALED_DOWN)
        if nodes and not kept and not used and hold is None:
            condition = claim.condition(names.INITIALIZED_CONDITION)
            message = condition.message or condition.reason if condition is not None else "not initialised"
            found.append(DeleteClaim(claim=reference(claim), reason="never_initialized", message=message))
    return tuple(found)


def runs_for_users(pod: Pod) -> bool:
    """Whether the pod is somebody's who would miss it: no DaemonSet's, nor the node's own, and it has not ended."""
    return not (is_terminal(pod) or is_daemon(pod) or is_mirror(pod))


def expired(snapshot: Snapshot) -> tuple[DeleteClaim, ...]:
    """LIF-60: the claim's own expireAfter, counted from its creation."""
    return tuple(
        DeleteClaim(claim=reference(claim), reason="expired", message=_expired_words(snapshot, claim))
        for claim in snapshot.claims.values()
        if _is_over(snapshot, claim)
        and is_ours(snapshot, claim)
        and hold_of(said_in(snapshot, claim.labels.get(names.NODE_POOL, "")), Cause.EXPIRED_HARD) is None
    )


def _is_over(snapshot: Snapshot, claim: NodeClaim) -> bool:
    moment = _deleted_at(snapshot, claim)
    return claim.deleting_since is None and moment is not None and moment <= snapshot.now


def _deleted_at(snapshot: Snapshot, claim: NodeClaim) -> float | None:
    return deleted_at(snapshot.policies, snapshot.pools.get(claim.labels.get(names.NODE_POOL, "")), claim)


def _expired_words(snapshot: Snapshot, claim: NodeClaim) -> str:
    left = _deleted_at(snapshot, claim) != claim.expires_at
    return "expireAfter has passed" + (", and no replacement has come first in time" if left else "")


def first_expiry(snapshot: Snapshot) -> float | None:
    """The first moment at which a claim that stays expires, or has expired. The time alone does not change it."""
    moments = (_deleted_at(snapshot, claim) for claim in snapshot.claims.values() if claim.deleting_since is None)
    return min((moment for moment in moments if moment is not None), default=None)


def next_expiry(snapshot: Snapshot) -> float | None:
    """The next moment at which a claim expires, or may expire because a pause ends."""
    staying = (claim for claim in snapshot.claims.values() if claim.deleting_since is None)
    moments = [m for claim in staying if (m := _deleted_at(snapshot, claim)) is not None and m > snapshot.now]
    if (end := next_end(snapshot)) is not None:
        moments.append(end)
    return min(moments, default=None)


def vanished(snapshot: Snapshot, instances: Iterable[LaunchedInstance]) -> tuple[DeleteClaim, ...]:
    """GCR-1 to GCR-3: registered claims whose instance the cloud does not list, unless their node is Ready."""
    listed = {instance.provider_id for instance in instances}
    ready = {n.provider_id for n in snapshot.nodes.values() if _is_ready(n)}
    return tuple(
        DeleteClaim(claim=reference(claim), reason="garbage_collected", message="its instance is gone")
        for claim in snapshot.claims.values()
        if claim.is_true(names.REGISTERED_CONDITION)
        and claim.deleting_since is None
        and claim.provider_id not in listed
        and claim.provider_id not in ready
        and is_ours(snapshot, claim)
    )


def _is_ready(node: Node) -> bool:
    condition = node.condition(names.READY)
    return condition is not None and condition.status == "True"


def unclaimed(snapshot: Snapshot, instances: Iterable[LaunchedInstance]) -> tuple[LaunchedInstance, ...]:
    """Instances with this cluster's tag that no claim stands for, those that were launched just now included.

    A claim stands for the instance that it names, or, while it names none, for the one that carries its UID and for
    those of the group in which it has a share.
    """
    named = {c.provider_id for c in snapshot.claims.values() if c.provider_id}
    nameless = [c for c in snapshot.claims.values() if not c.provider_id]
    awaited = {c.uid for c in nameless} | {group for c in nameless if (group := group_of(c))}
    return tuple(
        instance
        for instance in instances
        if instance.provider_id not in named and awaited.isdisjoint((instance.claim_uid, instance.group))
    )


def orphans(snapshot: Snapshot, instances: Iterable[LaunchedInstance]) -> tuple[LaunchedInstance, ...]:
    """GCR-6: those of the unclaimed that are old enough."""
    return tuple(i for i in unclaimed(snapshot, instances) if snapshot.now - i.launched > ORPHAN_AGE)


def too_many(found: int, instances: int) -> bool:
    """An API server restored from a backup makes every instance an orphan: then nothing is collected."""
    return found > max(ORPHANS_AT_LEAST, ORPHANS_SHARE * instances)


def is_mass(found: int, of: int) -> bool:
    """Whether these are half of all or more: in a cluster of three nodes `too_many` never is."""
    return found > 0 and found >= MASS_SHARE * of


def lost_everything(snapshot: Snapshot) -> bool:
    """Neither a NodePool nor a NodeClaim: another cluster, an empty API server. Nobody asked for any instance here, so
    nobody knows which are left over."""
    return not snapshot.pools and not snapshot.claims


def seen_for(since: Mapping[str, float], now: float, seconds: float) -> frozenset[str]:
    """The objects that every list has shown for so long."""
    return frozenset(each for each, first in since.items() if now - first >= seconds)


def collect(found: Iterable[LaunchedInstance], seen_before: frozenset[str]) -> tuple[TerminateOrphan, ...]:
    """Orders to terminate the instances that were unclaimed at the last list as well, whatever their age was then."""
    return tuple(
        TerminateOrphan(provider_id=o.provider_id, claim_uid=o.claim_uid) for o in found if o.provider_id in seen_before
    )

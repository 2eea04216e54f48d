"""`dovetail explain pod NAMESPACE/NAME`: where this pod goes, or why it finds no node.

Calls the planning function for all waiting pods and picks out this one. What would have helped is found by calling it
again with one thing changed. The answer is made here and written in explain_pod_text.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from dovetail.answers.explain.pod_words import pool_words, requested
from dovetail.answers.explain.pool_words import pools_left_out
from dovetail.answers.explain.what_if import Help, helps, place_text
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.limits import AnswerLimit
from dovetail.answers.look.sources import Look
from dovetail.answers.wording import plural
from dovetail.lifecycle.unplanned_claims import with_unplanned_as_nodes
from dovetail.model.names import INITIALIZED_CONDITION
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_daemon, is_mirror, is_terminal
from dovetail.model.places.kept_places import kept_by, needs_a_node, planned_pods
from dovetail.model.places.placements import NewNode, Placement, PoolRefusal, RefusedPod
from dovetail.model.pods import Pod
from dovetail.model.reasons.refusals import refusal_of
from dovetail.model.snapshot import Snapshot
from dovetail.placement.buffers.verdicts import for_real_pods
from dovetail.placement.earlier_claims import may_become_its_node
from dovetail.placement.place_pods import Index, WaitingPods, pending_pods, place
from dovetail.settings.deciding import placement_settings

TYPES = 5

State = Literal[
    "runs",
    "ended",
    "leaving",
    "daemon",
    "with_scheduler",
    "ignored",
    "spoken_for",
    "place_kept",
    "existing_node",
    "new_node",
    "waits_for_reservation",
    "refused",
    "not_reached",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAnswer:
    """Everything that can be said about one pod now."""

    pod: str
    source: str
    state: State
    says: str  # the answer in one line
    asks_for: tuple[str, ...] = ()
    node: str = ""
    claim: str = ""
    pool: str = ""
    types: tuple[str, ...] = ()  # of the new node, cheapest first, a few
    types_in_all: int = 0
    together_with: int = 0  # other pods planned onto the same node
    pools: tuple[PoolRefusal, ...] = ()
    pools_alone: tuple[PoolRefusal, ...] = ()  # the pools' answers if no other pod were waiting, if they differ
    pools_left_out: tuple[tuple[str, str], ...] = ()  # name and why
    existing: Mapping[str, int] = field(default_factory=dict)
    helps: tuple[Help, ...] = ()
    notes: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()


def explain_pod(look: Look, name: str) -> PodAnswer:
    pod, round_ = find_pod(look, name), _Round(look)
    found = _settled(look, pod, round_) or _placed(look, pod, round_)
    if found is not None:
        return found
    return replace(_refused(look, pod, round_), pools_left_out=pools_left_out(round_.index))


def explain_each(look: Look, pods: Iterable[Pod]) -> Iterator[PodAnswer]:
    """The answers for many pods, from one placement. They do not say what would have helped: that takes a placement
    each."""
    round_ = _Round(look)
    for pod in pods:
        yield _settled(look, pod, round_) or _placed(look, pod, round_) or _plainly_refused(look, pod, round_)


@dataclass
class _Round:
    """The answers for all waiting pods together, worked out on first use."""

    look: Look

    @cached_property
    def waiting(self) -> WaitingPods:
        return pending_pods(self.look.snapshot, placement_settings(self.look.settings))

    @cached_property
    def ignored(self) -> Mapping[str, str]:
        return {each.pod.uid: each.why for each in self.waiting.ignored}

    @cached_property
    def promised(self) -> frozenset[str]:
        return frozenset(pod.uid for pod in self.waiting.promised)

    @cached_property
    def index(self) -> Index:
        return Index(with_unplanned_as_nodes(self.look.snapshot), placement_settings(self.look.settings))

    @cached_property
    def limit(self) -> AnswerLimit:
        return self.look.placing()

    @cached_property
    def placement(self) -> Placement:
        return place(self.index, should_stop=self.limit)

    @cached_property
    def places(self) -> Mapping[str, NewNode | str]:
        """A new node or the name of an existing one, by the UID of each pod that has a place."""
        found: dict[str, NewNode | str] = {
            pod.uid: name for name, pods in self.placement.existing.items() for pod in pods
        }
        return found | {pod.uid: node for node in self.placement.new for pod in node.pods}

    @cached_property
    def refused(self) -> Mapping[str, RefusedPod]:
        return {each.pod.uid: each for each in self.placement.refused}


def find_pod(look: Look, name: str) -> Pod:
    """The pod, or one line that says what is wrong with the name."""
    found = [p for p in look.snapshot.pods.values() if name in (p.key, p.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandFailed(f"{name}: several pods have that name: {', '.join(sorted(p.key for p in found)[:5])}")
    for unreadable in look.unreadable:
        if unreadable.kind == "Pod" and unreadable.name == name:
            raise CommandFailed(f"{name}: the pod cannot be read: {unreadable.field}: {unreadable.message}")
    raise CommandFailed(f"{name}: there is no such pod (name it NAMESPACE/NAME)")


def _settled(look: Look, pod: Pod, round_: _Round) -> PodAnswer | None:
    """The answer, if it needs no placement."""
    if is_terminal(pod):
        return _answer(look, pod, "ended", f"it has ended ({pod.phase}); it needs no node")
    if pod.node_name:
        return _bound(look, pod)
    if pod.deleting_since is not None:
        return _answer(look, pod, "leaving", "it is being deleted before it ever ran; no node is launched for it")
    if is_daemon(pod) or is_mirror(pod):
        says = "it belongs to a node (DaemonSet or static pod): it goes with its node, and no node is launched for it"
        return _answer(look, pod, "daemon", says)
    if not needs_a_node(pod, look.snapshot):
        return _answer(look, pod, "with_scheduler", _with_scheduler(pod), node=pod.nominated_node)
    claim = kept_by(pod, look.snapshot)
    kept = claim is not None and may_become_its_node(claim, pod, look.snapshot.now)
    if claim is not None and kept and not isinstance(round_.places.get(pod.uid), NewNode):  # others may have its room
        says = f"node {pod.nominated_node} is kept for it: NodeClaim {claim.name} was made for it; {_when_kept(claim)}"
        return _answer(look, pod, "place_kept", says, node=pod.nominated_node, claim=claim.name)
    if pod.uid in round_.ignored:
        return _answer(look, pod, "ignored", f"it takes no part in provisioning: {round_.ignored[pod.uid]}")
    if pod.uid in round_.promised:
        coming = _planned_onto(look.snapshot, pod)
        return _answer(look, pod, "spoken_for", _coming(coming), claim=coming.name if coming else "")
    return None


def _coming(claim: NodeClaim | None) -> str:
    refusal = refusal_of(claim) if claim is not None else ""
    if claim is not None and refusal:
        return f"a node for it is asked for, and its launch is refused: NodeClaim {claim.name}: {refusal}"
    return f"a node for it is on its way: NodeClaim {claim.name if claim else '?'} is not launched yet"


def _when_kept(claim: NodeClaim) -> str:
    if claim.is_true(INITIALIZED_CONDITION):
        return "the kube-scheduler is about to bind it"
    return "the kube-scheduler binds it once that node is ready"


def _with_scheduler(pod: Pod) -> str:
    if pod.nominated_node:
        return f"the kube-scheduler makes room for it on {pod.nominated_node}; no node is launched for it"
    return (
        "the kube-scheduler has not given it up: it looks at it now, or a scheduling gate holds it. "
        "Nodes are launched only for pods whose condition PodScheduled says Unschedulable"
    )


def _bound(look: Look, pod: Pod) -> PodAnswer:
    node = look.snapshot.nodes.get(pod.node_name)
    claim = look.snapshot.pairing.claim_of(node) if node is not None else None
    if pod.deleting_since is not None:
        return _answer(look, pod, "leaving", f"it is being deleted on {pod.node_name}", node=pod.node_name)
    leaving = "; that node is leaving" if claim is not None and claim.deleting_since is not None else ""
    says = f"it is bound to {pod.node_name} ({pod.phase}) and waits for no node{leaving}"
    return _answer(look, pod, "runs", says, node=pod.node_name, claim=claim.name if claim else "")


def _planned_onto(snapshot: Snapshot, pod: Pod) -> NodeClaim | None:
    planned = (c for c in snapshot.claims.values() if pod.uid in planned_pods(c))
    return next(planned, None)


def _placed(look: Look, pod: Pod, round_: _Round) -> PodAnswer | None:
    place = round_.places.get(pod.uid)
    if isinstance(place, str):
        says = f"it fits on {place}, which is there or on its way; the kube-scheduler is expected to bind it"
        return _answer(look, pod, "existing_node", says, node=place)
    return _new_node(look, pod, place) if place is not None else None


def _new_node(look: Look, pod: Pod, node: NewNode) -> PodAnswer:
    return _answer(
        look,
        pod,
        "new_node",
        f"a new node of NodePool {node.pool} will be made for it in the next round",
        pool=node.pool,
        types=tuple(t.name for t in node.types[:TYPES]),
        types_in_all=len(node.types),
        together_with=len(node.pods) - 1,
    )


def _plainly_refused(look: Look, pod: Pod, round_: _Round) -> PodAnswer:
    refused = round_.refused.get(pod.uid)
    if refused is None:
        ignored = round_.placement.ignored
        why = next((i.why for i in ignored if i.pod.uid == pod.uid), "it is not among the waiting pods")
        return _answer(look, pod, "ignored", f"nothing is planned for it: {why}")
    if refused.is_not_reached:
        count = sum(each.is_not_reached for each in for_real_pods(round_.placement).refused)
        says = round_.limit.note("it was not reached, and nothing is known of where it could go")
        answer = _answer(look, pod, "not_reached", says)
        return replace(answer, notes=(*look.notes, *round_.limit.pods_note(count)))
    if refused.waits_for_reservation:
        says = "it waits for reserved capacity that would suit it; a later round tries again"
        answer = _answer(look, pod, "waits_for_reservation", says)
    else:
        answer = _answer(look, pod, "refused", _refusal(refused))
    return replace(answer, pools=refused.pools, existing=dict(refused.existing))


def _refused(look: Look, pod: Pod, round_: _Round) -> PodAnswer:
    answer, index = _plainly_refused(look, pod, round_), round_.index
    if answer.state not in ("refused", "not_reached"):
        return answer
    refused, alone = round_.refused[pod.uid], place(index, [pod], should_stop=look.placing())
    if answer.state == "not_reached":
        return _of_not_reached(answer, pod, alone)
    if where := place_text(alone, pod):
        others = Help(change="if no other pod were waiting: those before it take what is left", then=where)
        return replace(answer, helps=(others, *helps(look.snapshot, refused, index.settings, look.placing())))
    said = next((r for r in alone.refused if r.pod.uid == pod.uid and not r.is_not_reached), refused)
    found = helps(look.snapshot, said, index.settings, look.placing())
    return replace(answer, pools_alone=said.pools if said.pools != refused.pools else (), helps=found)


def _of_not_reached(answer: PodAnswer, pod: Pod, alone: Placement) -> PodAnswer:
    """The answer with what would become of it if no other pod were waiting."""
    where = place_text(alone, pod)
    said = next((each.pools for each in alone.refused if each.pod.uid == pod.uid and not each.is_not_reached), ())
    return replace(
        answer,
        helps=(Help(change="if no other pod were waiting", then=where),) if where else (),
        pools_alone=said,
    )


def _refusal(refused: RefusedPod) -> str:
    asked = [refusal for refusal in refused.pools if refusal.pool]
    pools = (
        f"{plural(len(asked), 'NodePool')} asked, none can make one" if asked else pool_words(refused.pools[0].reason)
    )
    nodes = sum(refused.existing.values())
    existing = f"none of {plural(nodes, 'node')} takes it" if nodes else "there is no node to put it on"
    return f"it finds no node: {pools}; {existing}"


def _answer(look: Look, pod: Pod, state: State, says: str, **more: object) -> PodAnswer:
    return PodAnswer(
        pod=pod.key,
        source=look.source,
        state=state,
        says=says,
        asks_for=requested(pod),
        notes=look.notes,
        pauses=look.pauses,
        **more,  # type: ignore[arg-type]
    )

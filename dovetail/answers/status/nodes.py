"""What `dovetail nodes` answers: every node with its price, its use, and what happens to it, including those not
ours."""

from dataclasses import dataclass, replace
from typing import Final

from dovetail.answers.explain.explain_pod import PodAnswer, explain_each
from dovetail.answers.look.sources import Look
from dovetail.answers.status.answer import NOT_OURS, Move, NodeRow, NodesAnswer
from dovetail.answers.status.fleet_facts import FleetFacts, Room, is_busy
from dovetail.answers.status.moves import moves
from dovetail.answers.status.not_ours import market_of, nodes_without_claim, price_of_node
from dovetail.answers.status.stays import stays_of
from dovetail.disruption.nodes.resting import read_rest
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot

MOST_EXPLAINED: Final = 500  # nobody reads more, and each adds a sentence to the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    name: str
    since: float
    state: str = ""  # as explained
    says: str = ""  # what happens to it; empty: it is beyond those explained at once
    pool: str = ""  # of the node that will be made for it
    node: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsAnswer:
    """The waiting pods, oldest first."""

    source: str
    now: float
    pods: tuple[PodRow, ...] = ()


def nodes_of(look: Look) -> NodesAnswer:
    """Every claim with its node, and the nodes without a claim, most expensive first."""
    snapshot = look.snapshot
    busy = frozenset(c.node_name for c in snapshot.claims.values() if c.node_name and is_busy(c))
    facts = FleetFacts.of(snapshot, closer=busy)
    under_way = {move.claim: move for move in moves(facts, look.held)}
    stays = stays_of(look)
    rows = [_row_of_claim(facts, claim, under_way.get(n), stays.get(n, "")) for n, claim in snapshot.claims.items()]
    rows += [_row_not_ours(facts, node) for node in nodes_without_claim(snapshot)]
    rows.sort(key=lambda row: (-(row.price or 0.0), row.name))
    ours = sorted(pool.name for pool in snapshot.pools.values() if snapshot.is_ours(pool.template.node_class))
    return NodesAnswer(source=look.source, now=snapshot.now, nodes=tuple(rows), pools=tuple(ours))


def pods_of(look: Look) -> PodsAnswer:
    """The waiting pods, with what happens to each."""
    waiting = [p for p in look.snapshot.pods.values() if p.unschedulable and not p.node_name]
    waiting.sort(key=lambda p: (p.created, p.key))
    rows = [
        _explained(pod, found)
        for pod, found in zip(waiting, explain_each(look, waiting[:MOST_EXPLAINED]), strict=False)
    ]
    rows += [PodRow(name=pod.key, since=pod.created) for pod in waiting[MOST_EXPLAINED:]]
    return PodsAnswer(source=look.source, now=look.snapshot.now, pods=tuple(rows))


def _explained(pod: Pod, found: PodAnswer) -> PodRow:
    return PodRow(
        name=pod.key,
        since=pod.created,
        state=found.state,
        says=found.says,
        pool=found.pool,
        node=found.node,
        claim=found.claim,
    )


def _row_of_claim(facts: FleetFacts, claim: NodeClaim, move: Move | None, stays: str) -> NodeRow:
    return replace(
        _row(facts, claim, facts.node_of(claim), facts.prices.get(claim.name)),
        name=claim.node_name or claim.name,
        claim=claim.name,
        state=state_of(claim) if facts.snapshot.is_ours(claim.node_class) else NOT_OURS,
        what=_what(facts.snapshot, claim, move),
        stays="" if move is not None else stays,
    )


def _row_not_ours(facts: FleetFacts, node: Node) -> NodeRow:
    return replace(_row(facts, node, node, price_of_node(node, facts.types)), capacity_type=market_of(node))


def _row(facts: FleetFacts, origin: NodeClaim | Node, node: Node | None, price: float | None) -> NodeRow:
    """The fields that claims and nodes without one share. `node`: the claim's, if it exists already."""
    room = facts.rooms[node.name] if node is not None else Room()
    labels = origin.labels
    return NodeRow(
        name=origin.name,
        claim="",
        pool=labels.get(names.NODE_POOL, ""),
        type=labels.get(names.INSTANCE_TYPE, ""),
        zone=labels.get(names.ZONE, ""),
        capacity_type=labels.get(names.CAPACITY_TYPE, ""),
        since=origin.created,
        price=price,
        cpu_share=room.cpu_share,
        memory_share=room.memory_share,
        pods=room.pods,
        state=NOT_OURS,
        labels=dict(sorted((node or origin).labels.items())),
    )


def _what(snapshot: Snapshot, claim: NodeClaim, move: Move | None) -> str:
    if move is not None:
        return f"{move.why}: {move.step}" + (f", {move.progress}" if move.progress else "")
    rest = read_rest(claim)
    if rest.until > snapshot.now:
        return "rests after a disruption that was undone"
    if names.REPLACE in claim.annotations:
        return "to be replaced: a person asks for it"
    return "drifted" if claim.is_true(names.DRIFTED) else ""


def state_of(claim: NodeClaim) -> str:
    """The claim's phase in a word."""
    if claim.deleting_since is not None:
        return "terminating"
    reason = claim.condition(names.DISRUPTION_REASON)
    if reason is not None and reason.status == "True":
        return f"disrupting ({reason.reason})"
    for condition, word in (
        (names.INITIALIZED_CONDITION, "ready"),
        (names.REGISTERED_CONDITION, "registered"),
        (names.LAUNCHED, "launched"),
    ):
        if claim.is_true(condition):
            return word
    return "pending"

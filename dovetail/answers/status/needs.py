"""What is stuck until a person acts, with the command that shows more; nothing that resolves itself within minutes."""

from collections.abc import Iterator
from typing import Final

from dovetail.answers.look.holds import held_text
from dovetail.answers.look.readiness import not_ready_words, where_to_mend
from dovetail.answers.status.answer import Move, Need
from dovetail.answers.status.fleet_facts import FleetFacts, selected_pool
from dovetail.answers.status.rollouts import rollout_needs
from dovetail.answers.wording import duration_text, shown
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.held_drains import HeldSince
from dovetail.model.own.policies import policies_of
from dovetail.model.reasons.refusals import REFUSED_SECONDS, refusal_of
from dovetail.model.snapshot import Snapshot
from dovetail.notices.holds import answers_of
from dovetail.rules.brake.breakers import open_breakers
from dovetail.rules.brake.unused_launches import stop_of
from dovetail.rules.said import breaker_rule_of
from dovetail.termination.deadline import written_deadline
from dovetail.termination.forced import forced_of
from dovetail.termination.hold_clocks import clock_of
from dovetail.termination.ladder import began_at

DRAIN_SECONDS: Final = 600.0  # a drain that something has held for longer
PENDING_SECONDS: Final = 300.0  # a pod that has waited for longer
JOIN_SECONDS: Final = 600.0  # a launched instance that has not joined
SICK_SECONDS: Final = 300.0
MOST: Final = 50


def needs_of(facts: FleetFacts, under_way: tuple[Move, ...]) -> tuple[Need, ...]:
    """What needs a person, at most fifty of each kind, since people begin with the first."""
    kinds = (
        _pools(facts.snapshot),
        rollout_needs(facts.snapshot),
        _asking(facts),
        _drains(facts, under_way),
        _launches(facts, under_way),
        _pods(facts),
        _nodes(facts.snapshot),
    )
    return tuple(need for kind in kinds for need in list(kind)[:MOST])


def _pools(snapshot: Snapshot) -> Iterator[Need]:
    for name, pool in sorted(snapshot.pools.items()):
        if not snapshot.is_ours(pool.template.node_class):
            continue
        stop = stop_of(pool)
        if stop is not None:
            words = f"launches are stopped since {stop.since or 'an unknown time'}: {stop.why}"
            yield Need(about=f"NodePool {name}", what=words, command=f"dovetail resume --pool {name}", pool=name)
        for each in open_breakers(pool):
            words = each.says(name, breaker_rule_of(policies_of(snapshot.policies, pool)), snapshot.now)
            command = f"dovetail resume --pool {name}"
            yield Need(about=f"NodePool {name}", what=words, command=command, pool=name)
        ready = next((c for c in pool.conditions if c.type == names.READY), None)
        if ready is not None and ready.status == "False":
            words = f"not ready: {not_ready_words(pool) or ready.message or ready.reason}"
            command = where_to_mend(pool)
            yield Need(about=f"NodePool {name}", what=words, since=ready.changed, command=command, pool=name)
        elif name in snapshot.catalogues and (error := snapshot.catalogues[name].error):
            yield Need(about=f"NodePool {name}", what=f"no prices: {error}", command="dovetail doctor", pool=name)


def _asking(facts: FleetFacts) -> Iterator[Need]:
    for name, claim in sorted(facts.snapshot.claims.items()):
        clock = _question(claim, facts.snapshot.now)
        if clock is not None:
            about, pool = claim.node_name or name, claim.labels.get(names.NODE_POOL, "")
            words = f"drain {held_text(facts.snapshot, claim, facts.pods_of.get(claim.node_name, ()))}"
            words, command = f"{words}; say {answers_of(claim)}", f"dovetail decide {about} wait 6h"
            yield Need(about=about, what=words, since=clock.since, command=command, pool=pool)


def _question(claim: NodeClaim, now: float) -> HeldSince | None:
    """The clock of a drain that waits for a person's answer. Once the instance ends, nothing waits for one."""
    if claim.is_true(names.INSTANCE_TERMINATING):
        return None
    clock = clock_of(claim, began_at(claim))
    return clock if clock is not None and clock.asks and memory_of(claim.annotations).held.waits_until <= now else None


def _drains(facts: FleetFacts, under_way: tuple[Move, ...]) -> Iterator[Need]:
    for move in under_way:
        age = facts.snapshot.now - move.since
        claim = facts.snapshot.claims.get(move.claim)
        ends = claim is not None and _ends_by_itself(claim, facts.snapshot.now)
        ends = ends or (claim is not None and _question(claim, facts.snapshot.now) is not None)  # reported above
        if move.kind == "termination" and move.blockers and age > DRAIN_SECONDS and not ends:
            words = f"drain held for {duration_text(age)} by {shown(move.blockers, 2)}"
            command = f"dovetail explain node {move.name}"
            yield Need(about=move.name, what=words, since=move.since, command=command, pool=move.pool)


def _ends_by_itself(claim: NodeClaim, now: float) -> bool:
    """Whether its node has a deadline, or its pods have one that is still to come."""
    forced = forced_of(claim)
    return written_deadline(claim) is not None or (forced is not None and forced.deadline > now)


def _launches(facts: FleetFacts, under_way: tuple[Move, ...]) -> Iterator[Need]:
    for move in under_way:
        age = facts.snapshot.now - move.since
        claim = facts.snapshot.claims.get(move.claim)
        refusal = refusal_of(claim) if claim is not None and move.kind == "launch" else ""
        if refusal and age > REFUSED_SECONDS:
            words = f"its launch is refused, for {duration_text(round(age))}: {refusal}"
            command = f"dovetail history {move.claim}"
            yield Need(about=move.name, what=words, since=move.since, command=command, pool=move.pool)
        elif move.kind == "launch" and age > JOIN_SECONDS:
            words = f"made {duration_text(age)} ago and not ready yet: {move.step}"
            command = f"dovetail history {move.claim}"
            yield Need(about=move.name, what=words, since=move.since, command=command, pool=move.pool)


def _pods(facts: FleetFacts) -> Iterator[Need]:
    now = facts.snapshot.now
    for pod in sorted(facts.pending, key=lambda p: (p.created, p.key)):
        refused = facts.snapshot.refused_pods.get(pod.uid, "")
        if refused or now - pod.created > PENDING_SECONDS:
            words = f"pending for {duration_text(now - pod.created)}" + (f": {refused}" if refused else "")
            command = f"dovetail explain pod {pod.key}"
            yield Need(about=pod.key, what=words, since=pod.created, command=command, pool=selected_pool(pod))


def _nodes(snapshot: Snapshot) -> Iterator[Need]:
    leaving = {claim.node_name for claim in snapshot.claims.values() if claim.deleting_since is not None}
    for name, node in sorted(snapshot.nodes.items()):
        since = None if name in leaving else _sick_since(node, snapshot.now)
        if since is not None:
            words = f"not ready for {duration_text(snapshot.now - since)}"
            pool = node.labels.get(names.NODE_POOL, "")
            yield Need(about=name, what=words, since=since, command=f"dovetail explain node {name}", pool=pool)


def _sick_since(node: Node, now: float) -> float | None:
    ready = node.condition(names.READY)
    if ready is None or ready.status == "True" or now - ready.changed <= SICK_SECONDS:
        return None
    return ready.changed

"""`dovetail explain node NAME`: why this node stays, or why it would leave.

Facts come from dovetail.disruption.explain, the same functions that decide; here they are joined with what the objects
say about the node itself (its owner, its deletion, its pods' budgets) and explained, for text and scripts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.answers.explain.node_words import budget_text, step_words, verdict_of
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.holds import held_text, hooks_text
from dovetail.answers.look.sources import Look
from dovetail.answers.rollouts.standing import awaited_step
from dovetail.answers.wording import moment_text
from dovetail.disruption.budgets.budgets import judge_budgets
from dovetail.disruption.explain import NodeExplanation, explain_node
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.pod_rules import is_active, is_protected, is_reschedulable, protection
from dovetail.model.places.moved_pods import MovablePods
from dovetail.model.places.moves import RESTART, MoveStep
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import CPU, MEMORY, NANO
from dovetail.placement.pdbs import pdbs_of
from dovetail.rules.expiry.expiries import deleted_at, replaced_from
from dovetail.settings.deciding import disruption_settings
from dovetail.termination.leaving import held_words
from dovetail.termination.owner_share import count_pods, key_of, owner_with_turns, turns

BEING_TERMINATED: Final = "being terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question and its answer. If `why` is empty, this check does not keep the node."""

    asked: str
    why: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAnswer:
    """What the pool's budgets permit for one reason."""

    reason: str
    left: int
    allowed: int
    nodes: int
    consuming: int
    binding: str = ""
    errors: tuple[str, ...] = ()
    until: float | None = None  # when the window of the binding budget closes


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPod:
    """A pod that keeps the node, what holds it, and what a person can do."""

    pod: str
    by: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodThere:
    """A pod on the node. Cpu in cores, memory in bytes. `moves`: whether it would need another place."""

    pod: str
    since: float
    cpu: float
    memory: float
    moves: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What consolidation would do with this node alone."""

    says: str
    moved: tuple[tuple[str, int], ...] = ()  # existing node -> how many pods move there
    unplaced: tuple[tuple[str, str], ...] = ()  # pod -> why
    replacements: tuple[str, ...] = ()  # of each: pool and types
    price_now: float | None = None
    price_then: float | None = None
    scores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    node: str
    source: str
    says: str
    now: float
    claim: str = ""
    pool: str = ""
    instance: str = ""  # type, zone, capacity type
    state: str = ""
    workflow: str = ""
    pods: int = 0
    movable_pods: int = 0
    pods_there: tuple[PodThere, ...] = ()  # the largest first
    quiet_since: float | None = None
    consolidate_after: float | None = None
    expires_at: float | None = None
    replaced_from: float | None = None  # for its age, if that comes before its expiry or delays it
    deleted_at: float | None = None  # for its age, whatever its pods are; None for never
    checks: tuple[Check, ...] = ()
    methods: tuple[Check, ...] = ()
    goes_for: tuple[str, ...] = ()
    held: tuple[HeldPod, ...] = ()
    choosy: tuple[HeldPod, ...] = ()  # pods whose preferences can prevent consolidation (PLC-28)
    budgets: tuple[BudgetAnswer, ...] = ()
    move: Move | None = None
    step: str = ""  # what is planned for it and others together
    rollout: str = ""  # the step of a roll-out in which it is replaced, and what that step waits for
    notes: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    cut: bool = False  # there was no time to ask every method


def explain_node_now(look: Look, name: str) -> NodeAnswer:
    """The answer for the node with that name, or for that NodeClaim's node."""
    snapshot = look.snapshot
    limit = look.searching()
    found = explain_node(snapshot, disruption_settings(look.settings), name, limit)
    cut = limit()
    if not found.exists:
        raise _unknown(look, name)
    node, claim = snapshot.nodes.get(found.node), snapshot.claims.get(found.claim)
    pods = [p for p in snapshot.pods.values() if node is not None and p.node_name == node.name and is_active(p)]
    pool = snapshot.pools.get(found.pool)
    windows = _windows(found, pool, snapshot.now)
    drain = held_text(snapshot, claim, pods) if claim is not None else ""
    says = verdict_of(found, claim, held_words([node] if node is not None else []), windows, drain)
    return NodeAnswer(
        node=found.node,
        source=look.source,
        says=limit.note("whether it would go is not known") if cut and _is_open(found, claim) else says,
        now=snapshot.now,
        claim=found.claim,
        pool=found.pool,
        instance=_instance(node, claim),
        state=_state(node, claim),
        workflow=_workflow(look, claim),
        pods=len(pods),
        movable_pods=sum(1 for p in pods if is_reschedulable(p)),
        pods_there=tuple(sorted(map(_there, pods), key=lambda each: (-each.cpu, -each.memory, each.pod))),
        quiet_since=found.quiet_since,
        consolidate_after=pool.disruption.consolidate_after if pool else None,
        expires_at=found.expires_at,
        replaced_from=_replaced_from(snapshot, pool, claim),
        deleted_at=deleted_at(snapshot.policies, pool, claim) if claim else None,
        checks=tuple(Check(asked="", why=c.why or "", message=c.message) for c in found.checks if not c.passes),
        methods=tuple(Check(asked=m.method, why=m.why or "", message=m.message) for m in found.methods),
        goes_for=found.goes_for,
        held=(*_hooks(snapshot, claim), *held_pods(snapshot, pods), *pods_that_wait(look, claim, pods)),
        choosy=choosy_pods(pods) if look.settings.preferences == "Respect" else (),
        budgets=_budgets(found, windows),
        move=_move(found),
        step="" if found.step is None else step_words(found.step, found.node),
        rollout=awaited_step(snapshot, claim) if claim is not None else "",
        notes=(*look.notes, *([limit.note("what each method would do with the node is not all known")] * cut)),
        pauses=look.pauses,
        cut=cut,
    )


def _is_open(found: NodeExplanation, claim: NodeClaim | None) -> bool:
    """Whether only the methods could say what becomes of it."""
    leaves = claim is not None and claim.deleting_since is not None
    return not leaves and not found.goes_for and all(check.passes for check in found.checks)


def _replaced_from(snapshot: Snapshot, pool: NodePool | None, claim: NodeClaim | None) -> float | None:
    if pool is None or claim is None or claim.expires_at is None:
        return None
    claims = [each for each in snapshot.claims.values() if each.labels.get(names.NODE_POOL) == pool.name]
    return replaced_from(snapshot.policies, pool, claims).get(claim.name)


def _there(pod: Pod) -> PodThere:
    cpu, memory = pod.requests.get(CPU, 0) / NANO, float(pod.requests.get(MEMORY, 0))
    return PodThere(pod=pod.key, since=pod.created, cpu=cpu, memory=memory, moves=is_reschedulable(pod))


def _unknown(look: Look, name: str) -> CommandFailed:
    for unreadable in look.unreadable:
        if unreadable.kind in ("Node", "NodeClaim") and unreadable.name == name:
            return CommandFailed(
                f"{name}: the {unreadable.kind} cannot be read: {unreadable.field}: {unreadable.message}"
            )
    return CommandFailed(f"{name}: there is no such Node or NodeClaim")


def _instance(node: Node | None, claim: NodeClaim | None) -> str:
    labels = node.labels if node else claim.labels if claim else {}
    keys = (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)
    return ", ".join(labels[key] for key in keys if key in labels)


def _state(node: Node | None, claim: NodeClaim | None) -> str:
    if claim is None:
        return "no NodeClaim"
    if claim.deleting_since is not None:
        return BEING_TERMINATED
    reason = claim.condition(names.DISRUPTION_REASON)
    if reason is not None and reason.status == "True":
        return f"marked for disruption ({reason.reason})"
    if not claim.is_true(names.LAUNCHED):
        return "being launched"
    if node is None or not claim.is_true(names.REGISTERED_CONDITION):
        return "launched, not registered yet"
    ready = node.condition(names.READY)
    if ready is None or ready.status != "True":
        return "not ready"
    return "ready" if claim.is_true(names.INITIALIZED_CONDITION) else "registered, not initialised yet"


def _workflow(look: Look, claim: NodeClaim | None) -> str:
    """The workflow that works on the node, as far as the objects show."""
    if claim is None:
        return ""
    owner = claim.annotations.get(names.OWNER, "")
    if owner and claim.deleting_since is None:
        return owner
    busy = claim.deleting_since is not None or not claim.is_true(names.INITIALIZED_CONDITION)
    return claim_owner_id(look.settings.cluster, claim.name) if busy and look.settings.cluster else ""


def _windows(found: NodeExplanation, pool: NodePool | None, now: float) -> dict[str, float]:
    """When the window of the binding budget closes, by reason."""
    states = judge_budgets(pool.disruption.budgets, now) if pool is not None else ()
    ends = [(state.budget, state.until) for state in states if state.active and state.until is not None]
    return {a.reason: end for a in found.allowances for budget, end in ends if budget is a.binding}


def _budgets(found: NodeExplanation, until: Mapping[str, float]) -> tuple[BudgetAnswer, ...]:
    return tuple(
        BudgetAnswer(
            reason=str(a.reason),
            left=a.left,
            allowed=a.allowed,
            nodes=a.nodes,
            consuming=a.consuming,
            binding=a.held or (budget_text(a.binding) if a.binding else ""),
            until=until.get(a.reason),
            errors=a.errors,
        )
        for a in found.allowances
    )


def _hooks(snapshot: Snapshot, claim: NodeClaim | None) -> tuple[HeldPod, ...]:
    found = hooks_text(snapshot, claim) if claim is not None else ()
    return tuple(HeldPod(pod="all pods", by=by, detail=detail) for by, detail in found)


def held_pods(snapshot: Snapshot, pods: list[Pod]) -> tuple[HeldPod, ...]:
    """The pods that must not be evicted now."""
    index = pdbs_of(snapshot)
    found: list[HeldPod] = []
    for pod in sorted(pods, key=lambda p: p.key):
        if is_protected(pod, snapshot.now):
            held = protection(pod, snapshot.now)
            end = moment_text(held.until) if held.until else "the annotation is taken off"
            detail = f"{held.why}, until {end}" if held.why else f"until {end}"
            found.append(HeldPod(pod=pod.key, by=held.by, detail=detail))
        for pdb in index.blocking(pod):
            counted = ", ".join(pdb.disrupted_pods)
            # Kubernetes keeps an evicted pod in that list until it has seen it leave, for at most two minutes.
            detail = f"still counts evictions of {counted} (up to 2 minutes)" if counted else "allows 0 disruptions now"
            found.append(HeldPod(pod=pod.key, by=f"PodDisruptionBudget {pdb.namespace}/{pdb.name}", detail=detail))
        if index.moves is not None and not is_protected(pod, snapshot.now):
            found += _of_moves(index.moves, pod, blocked=bool(index.blocking(pod)))
    return tuple(found)


def _of_moves(movable: MovablePods, pod: Pod, *, blocked: bool) -> Iterator[HeldPod]:
    """The words for a pod that a roll-out of its Deployment moves, does not move, or could move."""
    found = movable.verdict(pod)
    if found.step is not MoveStep.EVICT:
        detail = found.says or "it is rolled out anew when its node leaves, and no PDB is asked"
        yield HeldPod(pod=pod.key, by="a move" if found.moves else names.MOVE, detail=detail)
    elif found.why is not None:
        yield HeldPod(pod=pod.key, by=names.MOVE, detail=f"it cannot be moved ({found.why}): {found.why.words}")
    elif blocked and (deployment := movable.would_be_moved(pod)) is not None:
        where = f"-n {deployment.namespace} deployment {deployment.name}"
        detail = f"one replica: `kubectl annotate {where} {names.MOVE}={RESTART}` would let it go without downtime"
        yield HeldPod(pod=pod.key, by=names.MOVE, detail=detail)


def choosy_pods(pods: list[Pod]) -> tuple[HeldPod, ...]:
    """The pods with preferences that a new place must, if possible, meet as well as this one does: their nodes seldom
    find a cheaper replacement."""
    found = []
    for pod in sorted((p for p in pods if is_reschedulable(p)), key=lambda p: p.key):
        kinds = [f"preferred anti-affinity on {t.topology_key}" for t in pod.shape.preferred_anti_affinity]
        soft = (s for s in pod.shape.spread if s.when_unsatisfiable == "ScheduleAnyway")
        kinds += [f"preferred spread over {s.topology_key}" for s in soft]
        if kinds:
            found.append(HeldPod(pod=pod.key, by=", ".join(dict.fromkeys(kinds))))
    return tuple(found)


def pods_that_wait(look: Look, claim: NodeClaim | None, pods: list[Pod]) -> tuple[HeldPod, ...]:
    """The pods of a leaving node whose owner already has as many pods on their way as it may, by the pods alone."""
    share, now = look.settings.owner_share, look.snapshot.now
    if claim is None or claim.deleting_since is None or not claim.is_true(names.DISRUPTION_REASON) or not share:
        return ()
    owners = [(pod.key, owner, key_of(pod, owner)) for pod in pods if (owner := owner_with_turns(pod)) is not None]
    counts = count_pods(look.snapshot.pods.values(), {of for _, _, of in owners}, now)
    known = {of: turns(found, {}, share, now) for of, found in counts.items()}
    return tuple(
        HeldPod(pod=key, by="waits for its turn", detail=known[of].words(owner))
        for key, owner, of in sorted(owners, key=lambda item: item[0])
        if not known[of].is_free
    )


def _move(found: NodeExplanation) -> Move | None:
    simulation, prices = found.simulation, found.prices
    if simulation is None or prices is None:
        return None
    block = found.outcome.block if found.outcome else None
    then = None if block or simulation.failed else 0.0  # no place is known for its pods
    says = simulation.failed or (block.message if block else _where(found))
    return Move(
        says=says,
        moved=tuple(sorted((name, len(pods)) for name, pods in simulation.moved.items())),
        unplaced=tuple(sorted(simulation.unplaced.items())),
        replacements=tuple(f"{r.pool}: {', '.join(t.name for t in r.types[:3])}" for r in simulation.replacements),
        price_now=prices.now,
        price_then=prices.replacement if prices.replacement is not None else then,
        scores=tuple(s.text for s in found.scores),
    )


def _where(found: NodeExplanation) -> str:
    command = found.outcome.command if found.outcome else None
    if command is None:
        return found.outcome.error if found.outcome else ""
    if command.replacements:
        return "its pods fit on one cheaper node"
    if command.moved:
        return "its pods fit on the other nodes"
    return "no pod would need another place (those that can never be evicted are not counted)"

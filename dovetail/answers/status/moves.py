"""What is under way, read from the objects: no workflow is asked, so 5,000 nodes do not cost 5,000 questions.

Plans that wait for their second look come first: they are about to happen, and can still be stopped without a trace.
"""

from collections.abc import Iterator

from dovetail.answers.look.holds import held_text, hook_words, reboot_hold
from dovetail.answers.status.answer import Move
from dovetail.answers.status.fleet_facts import FleetFacts, is_busy, is_marked
from dovetail.answers.wording import plural, shown
from dovetail.disruption.nodes.resting import reboot_called_off
from dovetail.messages.plans import DisruptionCommand, Target
from dovetail.messages.states import Held
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_daemon, is_drainable, is_mirror, is_protected, is_terminal, protection
from dovetail.model.pods import Pod
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.reasons.endings import ended_of
from dovetail.model.reasons.refusals import refusal_of
from dovetail.placement.pdbs import PdbIndex, pdbs_of
from dovetail.termination.leaving import held_words

_ORDER = {"held": 0, "disruption": 1, "termination": 2, "launch": 3}


def moves(facts: FleetFacts, held: tuple[Held, ...]) -> tuple[Move, ...]:
    """Everything under way: held plans first, then each kind, oldest first."""
    waiting = list(_held(facts, held))
    taken = {move.claim for move in waiting}
    pdbs = pdbs_of(facts.snapshot)
    others = [
        _move(facts, claim, pdbs)
        for name, claim in facts.snapshot.claims.items()
        if name not in taken and is_busy(claim) and facts.snapshot.is_ours(claim.node_class)
    ]
    return (*waiting, *sorted(others, key=lambda m: (_ORDER[m.kind], m.since, m.name)))


def _held(facts: FleetFacts, held: tuple[Held, ...]) -> Iterator[Move]:
    for each in sorted(held, key=lambda h: h.due):
        for command in each.plan.commands:
            for target in command.targets:
                yield _held_move(facts, each, command, target)


def _held_move(facts: FleetFacts, held: Held, command: DisruptionCommand, target: Target) -> Move:
    claim = facts.snapshot.claims.get(target.claim)
    name = target.node or target.claim
    made = f"after {plural(len(command.replacements), 'replacement')}" if command.replacements else ""
    return Move(
        kind="held",
        name=name,
        claim=target.claim,
        pool=claim.labels.get(names.NODE_POOL, "") if claim is not None else "",
        why=str(command.reason),
        step="second look",
        since=held.due - held.plan.validate_after,
        progress=made,
        due=held.due,
        savings=command.savings / len(command.targets) or None,
        stop=f"dovetail cancel {target.claim} --reason TEXT",
    )


def _move(facts: FleetFacts, claim: NodeClaim, pdbs: PdbIndex) -> Move:
    if claim.deleting_since is not None:
        return _termination(facts, claim, pdbs)
    if not is_marked(claim):
        return _launch(facts, claim)
    return _reboot(facts, claim) if claim.is_rebooting else _disruption(facts, claim)


def _reboot(facts: FleetFacts, claim: NodeClaim) -> Move:
    """Its instance is rebooted for a repair: it can be stopped until the cloud is asked."""
    began = claim.condition(names.REBOOTING)
    leaving = [p for p in facts.pods_of.get(claim.node_name, ()) if _must_leave(p, facts.snapshot.now)]
    step, progress, stop, held = "being called off", "", "", ""
    if claim.is_reboot_ordered:
        node = facts.node_of(claim)
        back = node is not None and node.boot_id != claim.annotations[names.PRE_BOOT_ID]
        step, progress = ("comes back", "its node is not ready for pods yet") if back else ("reboots", "")
    elif reboot_called_off(claim) is None:
        held = reboot_hold(facts.snapshot, claim)
        step, progress = "pods leave", held or f"{plural(len(leaving), 'pod')} left"
        stop = f"dovetail cancel {claim.name} --reason TEXT"
    return Move(
        kind="disruption",
        name=claim.node_name or claim.name,
        claim=claim.name,
        pool=claim.labels.get(names.NODE_POOL, ""),
        why=DisruptionReason.UNHEALTHY.value,
        step=step,
        since=began.changed if began is not None else claim.created,
        progress=progress,
        blockers=(held,) if held else (),
        stop=stop,
    )


def _disruption(facts: FleetFacts, claim: NodeClaim) -> Move:
    reason = claim.condition(names.DISRUPTION_REASON)
    assert reason is not None
    called_off = names.CANCEL in claim.annotations
    pods = facts.pods_of.get(claim.node_name, ())
    progress = held_text(facts.snapshot, claim, pods) or "its replacements start, or its drain runs first"
    name = claim.node_name or claim.name
    return Move(
        kind="disruption",
        name=name,
        claim=claim.name,
        pool=claim.labels.get(names.NODE_POOL, ""),
        why=reason.reason,
        step="being called off" if called_off else "before its delete",
        since=reason.changed,
        progress="" if called_off else progress,
        stop="" if called_off else f"dovetail cancel {claim.name} --reason TEXT",
    )


def _termination(facts: FleetFacts, claim: NodeClaim, pdbs: PdbIndex) -> Move:
    since = claim.deleting_since or facts.snapshot.now
    leaving = [p for p in facts.pods_of.get(claim.node_name, ()) if _must_leave(p, facts.snapshot.now)]
    blockers = tuple(blockers_of(leaving, pdbs, facts.snapshot.now))
    held = held_words(facts.snapshot.pairing.nodes_of(claim))
    step = "Node held" if held else _step(claim, bool(leaving))
    blockers = (*hook_words(claim, step), *blockers)
    return Move(
        kind="termination",
        name=claim.node_name or claim.name,
        claim=claim.name,
        pool=claim.labels.get(names.NODE_POOL, ""),
        why=ended_of(claim, facts.snapshot.pools.__contains__).because,
        step=step,
        since=since,
        progress=_drain_words(leaving, blockers) if step == "drain" else held or shown(blockers, 1),
        pods_left=len(leaving),
        blockers=blockers,
    )


def _step(claim: NodeClaim, pods: bool) -> str:
    if claim.is_true(names.INSTANCE_TERMINATING):
        return "instance ends"
    if claim.is_true(names.VOLUMES_DETACHED):
        return "terminate"
    if claim.is_true(names.DRAINED):
        return "volumes"
    return "drain" if pods or claim.node_name else "terminate"


def _must_leave(pod: Pod, now: float) -> bool:
    """Whether the drain waits for it: it has not been evicted yet, must not be, or has not ended yet."""
    if is_daemon(pod) or is_mirror(pod) or is_terminal(pod):
        return False
    return is_drainable(pod, now)


def blockers_of(pods: list[Pod], pdbs: PdbIndex, now: float) -> Iterator[str]:
    """What keeps pods from leaving now, each once, most frequent first."""
    counts: dict[str, int] = {}
    for pod in pods:
        found = [f"PDB {pdb.namespace}/{pdb.name}" for pdb in pdbs.blocking(pod)]
        if is_protected(pod, now):
            found.append(f"{protection(pod, now).by.partition('/')[2]} of {pod.key}")
        found += [words] if (words := pdbs.says_of_move(pod)) else []
        for each in found:
            counts[each] = counts.get(each, 0) + 1
    yield from sorted(counts, key=lambda name: (-counts[name], name))


def _drain_words(leaving: list[Pod], blockers: tuple[str, ...]) -> str:
    words = f"{plural(len(leaving), 'pod')} left"
    return f"{words} · {shown(blockers, 1)}" if blockers else words


def _launch(facts: FleetFacts, claim: NodeClaim) -> Move:
    refusal = refusal_of(claim)
    kind = ", ".join(
        claim.labels[key] for key in (names.INSTANCE_TYPE, names.CAPACITY_TYPE, names.ZONE) if key in claim.labels
    )
    return Move(
        kind="launch",
        name=claim.node_name or claim.name,
        claim=claim.name,
        pool=claim.labels.get(names.NODE_POOL, ""),
        why="new node",
        step=_launch_step(claim),
        since=claim.created,
        progress=f"refused: {refusal}" if refusal else kind,
    )


def _launch_step(claim: NodeClaim) -> str:
    if not claim.is_true(names.LAUNCHED):
        return "launch"
    if not claim.is_true(names.REGISTERED_CONDITION):
        return "waits to join"
    condition = claim.condition(names.INITIALIZED_CONDITION)
    return condition.message if condition is not None and condition.message else "start-up taints"

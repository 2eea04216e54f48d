"""Replaces many nodes in one plan, one command each, without counting any room twice.

Every node is simulated by itself, in a cluster without the nodes before it and with the room that their pods need
taken. If all were simulated at once, their pods would share new nodes, and no command could be cancelled without the
others.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from dovetail.disruption.commands import Command, Found
from dovetail.disruption.methods.consolidation import NO_TIME, closed_text, unplaced_text
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.plan import TOO_LARGE, PlanSize, is_too_large
from dovetail.disruption.rounds import RemainingAllowances, Round, out_of_budget
from dovetail.disruption.simulation.simulation import Simulation
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot


def replace_in_waves(round_: Round, ordered: Sequence[Candidate], reason: DisruptionReason) -> Found:
    """As many commands as allowances and settings permit; one if the profile replaces node by node."""
    if not round_.settings.profile.replaces_in_waves:
        return _one_by_one(round_, ordered, reason)
    left = RemainingAllowances.of(round_.allowances(reason))
    blocks = [out_of_budget(round_, c, reason) for c in ordered if not left.has(c.pool.name)]
    remaining = [c for c in ordered if left.has(c.pool.name)]
    while remaining and not round_.should_stop():
        wave, remaining = _next_wave(remaining, left.copy(), round_.settings.wave_size)
        if not wave:
            break
        commands, failed = _take(round_, wave, reason, blocks)
        if commands or failed:
            return Found(commands=tuple(commands), blocks=tuple(blocks), error="" if commands else failed)
    return Found(blocks=tuple(blocks))


def _next_wave(
    ordered: Sequence[Candidate], allowances: RemainingAllowances, most: int
) -> tuple[list[Candidate], list[Candidate]]:
    """The first that the allowances permit, and the rest."""
    wave: list[Candidate] = []
    rest: list[Candidate] = []
    for candidate in ordered:
        if len(wave) < most and allowances.take(candidate.pool.name):
            wave.append(candidate)
        else:
            rest.append(candidate)
    return wave, rest


def _take(
    round_: Round, wave: Sequence[Candidate], reason: DisruptionReason, blocks: list[tuple[Candidate, Block]]
) -> tuple[list[Command], str]:
    """The commands of a wave, and the failure that ended it early, if one did."""
    run = round_.simulator.wave(wave)
    commands: list[Command] = []
    size = PlanSize(round_)
    for candidate in wave:
        closed = round_.others_closed(candidate.pool.name, reason)
        simulation = run.take(candidate, closed)
        if simulation.failed:
            return commands, simulation.failed
        if simulation.unplaced and round_.should_stop():
            blocks.append((candidate, NO_TIME))
            break
        if simulation.unplaced:
            blocks.append((candidate, _no_place(simulation, closed)))
            continue
        command = _command(round_, candidate, simulation, reason)
        if size.takes(command):
            commands.append(command)
        elif is_too_large(round_, command):
            blocks.append((candidate, TOO_LARGE))
        else:
            break
    return commands, ""


def _one_by_one(round_: Round, ordered: Sequence[Candidate], reason: DisruptionReason) -> Found:
    """The first node that can be replaced, as Karpenter does it (DIS-71)."""
    left = RemainingAllowances.of(round_.allowances(reason))
    blocks: list[tuple[Candidate, Block]] = []
    for candidate in ordered:
        if not left.has(candidate.pool.name):
            blocks.append(out_of_budget(round_, candidate, reason))
            continue
        found = replace_one(round_, candidate, reason)
        if found.commands or found.error:
            return replace(found, blocks=tuple(blocks))
        blocks.extend(found.blocks)
    return Found(blocks=tuple(blocks))


def replace_one(round_: Round, candidate: Candidate, reason: DisruptionReason) -> Found:
    """The command that replaces this node alone, or why there is none."""
    closed = round_.others_closed(candidate.pool.name, reason)
    alone = (candidate,)
    if closed:
        simulation = round_.simulator.wave(alone).take(candidate, closed)
    else:
        simulation = round_.simulator.simulate(alone, consolidating=False)
    if simulation.candidate_leaves or simulation.failed:
        return Found(error=simulation.failed)
    if simulation.unplaced:
        return Found(blocks=((candidate, _no_place(simulation, closed)),))
    command = _command(round_, candidate, simulation, reason)
    if is_too_large(round_, command):
        return Found(blocks=((candidate, TOO_LARGE),))
    return Found(commands=(command,))


def _no_place(simulation: Simulation, closed: Collection[str]) -> Block:
    message = unplaced_text(simulation)
    if closed:
        message = f"{message.rstrip()}; {closed_text(closed)}"
    return Block(why=WhyNot.PODS_HAVE_NO_PLACE, message=message)


def _command(round_: Round, candidate: Candidate, simulation: Simulation, reason: DisruptionReason) -> Command:
    return Command(
        reason=reason,
        candidates=(candidate,),
        replacements=tuple(round_.priced(r) for r in simulation.replacements),
        moved=simulation.moved,
    )

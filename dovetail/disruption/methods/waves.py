"""Replaces many nodes in one plan, one command each, without counting any room twice.

Every node is simulated by itself, in a cluster without the nodes before it and with the room that their pods need
taken. If all were simulated at once, their pods would share new nodes, and no command could be cancelled without the
others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dovetail.disruption.commands import Command, Found
from dovetail.disruption.methods.consolidation import NO_TIME, closed_text, unplaced_text
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.nodes.reserved import full_reservation, others_first
from dovetail.disruption.plan import TOO_LARGE, PlanSize, is_too_large
from dovetail.disruption.rounds import RemainingAllowances, Round, out_of_budget
from dovetail.disruption.simulation.simulation import Simulation
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot

NO_RESERVED_CAPACITY: Final = "no-reserved-capacity"  # upstream's word in metrics


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
    size, freed = PlanSize(round_), set[str]()
    for candidate in wave:
        closed = round_.others_closed(candidate.pool.name, reason)
        simulation = run.take(candidate, closed)
        if simulation.failed:
            return commands, simulation.failed
        if simulation.unplaced and round_.should_stop():
            blocks.append((candidate, NO_TIME))
            break
        command = _planned(round_, candidate, simulation, _Asked(reason, closed, freed, commands))
        if isinstance(command, Block):
            blocks.append((candidate, command))
            continue
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
    simulation = round_.simulator.without(candidate, closed)
    if simulation.candidate_leaves or simulation.failed:
        return Found(error=simulation.failed)
    command = _planned(round_, candidate, simulation, _Asked(reason, closed, set(), ()))
    if isinstance(command, Block):
        return Found(blocks=((candidate, command),))
    if is_too_large(round_, command):
        return Found(blocks=((candidate, TOO_LARGE),))
    return Found(commands=(command,))


@dataclass(frozen=True, slots=True)
class _Asked:
    """Why nodes are replaced, by no node of which NodePools, and what the plan has so far: the reservations of those
    that leave first, and its commands."""

    reason: DisruptionReason
    closed: frozenset[str]
    freed: set[str]
    before: Sequence[Command]


def _planned(round_: Round, candidate: Candidate, simulation: Simulation, asked: _Asked) -> Command | Block:
    """The command for it, or why it stays. One whose pods have no other place than its own, in a full reservation,
    leaves first if the gates say so (DIS-202)."""
    if not simulation.unplaced:
        made = tuple(round_.priced(r) for r in simulation.replacements)
        return Command(reason=asked.reason, candidates=(candidate,), replacements=made, moved=simulation.moved)
    message = unplaced_text(simulation)
    if asked.closed:
        message = f"{message.rstrip()}; {closed_text(asked.closed)}"
    reservation = full_reservation(candidate)
    if not reservation:
        return Block(why=WhyNot.PODS_HAVE_NO_PLACE, message=message)
    stays = Block(why=WhyNot.RESERVATION_FULL, message=f"{message.rstrip()}; reservation {reservation} is full")
    if asked.reason not in round_.settings.terminates_first:
        return stays
    others = others_first(round_.fleet, candidate, asked.freed)
    if others is not None:
        return others
    awaited = asked.reason is DisruptionReason.DRIFTED
    leaving = [each for command in asked.before for each in command.candidates]
    found = round_.simulator.freed([*leaving, candidate], reservation, asked.closed, awaited=awaited)
    if found.failed:
        return replace(stays, message=found.failed, event=None)
    if found.unplaced:
        return replace(stays, message=f"{stays.message}, and with its own place free: {unplaced_text(found)}")
    asked.freed.add(reservation)
    return Command(
        reason=asked.reason, candidates=(candidate,), moved=found.moved, terminates_first=NO_RESERVED_CAPACITY
    )

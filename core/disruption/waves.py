"""Replacing many nodes in one plan, one command each, without counting any room twice.

Asked by drift and by graceful expiry, with their candidates in order. Every node is simulated alone, in a cluster from
which those before it are gone and in which the room that their pods take is taken. The trap avoided: simulating all of
them at once packs their pods onto shared nodes, and then no command could be cancelled without the others.
"""

from collections.abc import Sequence

from core.disruption.candidates import Block, Candidate
from core.disruption.commands import Command, Found
from core.disruption.consolidation import unplaced_text
from core.disruption.rounds import Purse, Round
from core.disruption.simulation import Settled, Simulation
from core.model.disruption_reasons import DisruptionReason, WhyNot


def replace_in_waves(round_: Round, ordered: Sequence[Candidate], reason: DisruptionReason) -> Found:
    """As many commands as allowances and settings permit; one where waves are off."""
    purse = Purse.of(round_.allowances(reason))
    most = round_.settings.wave_size if round_.settings.waves else 1
    blocks: list[tuple[Candidate, Block]] = []
    commands: list[Command] = []
    settled = Settled()
    for candidate in ordered:
        if len(commands) >= most or round_.should_stop():
            break
        if not purse.has(candidate.pool.name):
            continue
        simulation = round_.simulator.simulate((candidate,), consolidating=False, settled=settled)
        if simulation.candidate_leaves:
            continue
        if simulation.failed:
            # What cannot be simulated now stops the search, not what was found before.
            error = "" if commands else simulation.failed
            return Found(commands=tuple(commands), blocks=tuple(blocks), error=error)
        if simulation.unplaced:
            blocks.append((candidate, Block(why=WhyNot.PODS_HAVE_NO_PLACE, message=unplaced_text(simulation))))
            continue
        commands.append(_command(round_, candidate, simulation, reason))
        purse.spend(candidate.pool.name)
        settled = _after(settled, candidate, simulation)
    return Found(commands=tuple(commands), blocks=tuple(blocks), constrained=purse.constrained)


def _command(round_: Round, candidate: Candidate, simulation: Simulation, reason: DisruptionReason) -> Command:
    return Command(
        reason=reason,
        candidates=(candidate,),
        replacements=tuple(round_.priced(r) for r in simulation.replacements),
        moved=simulation.moved,
    )


def _after(settled: Settled, candidate: Candidate, simulation: Simulation) -> Settled:
    moved = dict(settled.moved)
    for node, pods in simulation.moved.items():
        moved[node] = (*moved.get(node, ()), *pods)
    return Settled(candidates=(*settled.candidates, candidate), moved=moved)

"""The cluster as it would be once commands have been carried out.

Nodes that left are gone with their DaemonSets' pods, replacements have joined, and every pod that had to move runs
where the simulation put it. Pods of a static pool's node, which are not simulated, run on the node that replaces it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dovetail.disruption.commands import Command
from dovetail.disruption.outlook.successors import Successor, objects_of, successor_of
from dovetail.disruption.rounds import Round
from dovetail.disruption.simulation.simulation import Replacement
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """One node that leaves, and what replaces it."""

    node: str
    claim: str
    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    price: float
    reason: str
    moved: tuple[str, ...]  # the pods that must move
    successors: tuple[Successor, ...] = ()
    onto: tuple[str, ...] = ()  # existing nodes that take some of its pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """The snapshot afterwards, and what has happened in between."""

    snapshot: Snapshot
    departures: tuple[Departure, ...]


def carried_out(round_: Round, commands: Sequence[Command], number: int, at: float) -> Aftermath:
    """The snapshot after all these commands. `number`: how many successors there are already, for the names of the
    next."""
    snapshot = round_.snapshot
    claims, nodes, pods = dict(snapshot.claims), dict(snapshot.nodes), dict(snapshot.pods)
    by_key = {pod.key: pod for pod in pods.values()}
    departures: list[Departure] = []
    for command in commands:
        successors = []
        for made in command.replacements:
            number += 1
            successor = successor_of(round_, made, f"{made.pool}-next-{number}")
            successors.append(successor)
            objects = objects_of(made, successor, round_.fleet.pools[made.pool], at)
            if objects is not None:
                claims[successor.name], nodes[successor.name] = objects
            for pod in _pods_for(made, command, by_key):
                pods[pod.uid] = replace(pod, node_name=successor.name, created=at, started=at)
        for name, keys in command.moved.items():
            moved = (by_key[key] for key in keys if key in by_key)
            pods.update({pod.uid: replace(pod, node_name=name, created=at, started=at) for pod in moved})
        departures += _departures(command, tuple(successors))
    _take_away(commands, claims, nodes, pods)
    gone = replace(snapshot, now=at, claims=claims, nodes=nodes, pods=pods)
    return Aftermath(snapshot=gone, departures=tuple(departures))


def _pods_for(made: Replacement, command: Command, by_key: dict[str, Pod]) -> Iterator[Pod]:
    if made.static is not None:
        yield from (pod for candidate in command.candidates for pod in candidate.pods)
        return
    yield from (by_key[key] for key in made.pods if key in by_key)


def _departures(command: Command, successors: tuple[Successor, ...]) -> Iterator[Departure]:
    """Replacements of several nodes are listed with the first of them, so that a sum counts each once."""
    for candidate in command.candidates:
        yield Departure(
            node=candidate.name,
            claim=candidate.claim.name,
            pool=candidate.pool.name,
            instance_type=candidate.instance_type.name if candidate.instance_type else "",
            zone=candidate.zone,
            capacity_type=candidate.capacity_type,
            price=candidate.price,
            reason=str(command.reason),
            moved=tuple(sorted(pod.key for pod in candidate.pods)),
            successors=successors,
            onto=tuple(sorted(command.moved)),
        )
        successors = ()


def _take_away(
    commands: Sequence[Command], claims: dict[str, NodeClaim], nodes: dict[str, Node], pods: dict[str, Pod]
) -> None:
    left = {candidate.name for command in commands for candidate in command.candidates}
    for command in commands:
        for candidate in command.candidates:
            claims.pop(candidate.claim.name, None)
    for name in left:
        nodes.pop(name, None)
    for uid in [pod.uid for pod in pods.values() if pod.node_name in left]:
        pods.pop(uid, None)

"""Lists of instance types are long, so a plan stores each once and a node refers to its list by index.

A part of a plan is handed on with the lists of that part alone: forty unlike nodes with the lists of the whole
plan each would be forty times the lists.
"""

from collections.abc import Iterable
from dataclasses import replace

from dovetail.messages.plans import DisruptionCommand, ProposedNode

TypeLists = tuple[tuple[str, ...], ...]


def with_own_lists(proposed: Iterable[ProposedNode], lists: TypeLists) -> tuple[tuple[ProposedNode, ...], TypeLists]:
    """The nodes, and the lists that they use, in the order of the plan's."""
    nodes = tuple(proposed)
    used = sorted({node.type_list for node in nodes})
    new = {old: number for number, old in enumerate(used)}
    return (
        tuple(replace(node, type_list=new[node.type_list]) for node in nodes),
        tuple(lists[old] for old in used),
    )


def command_with_own_lists(command: DisruptionCommand, lists: TypeLists) -> tuple[DisruptionCommand, TypeLists]:
    """A command of a plan, and the lists that its replacements use."""
    replacements, own = with_own_lists(command.replacements, lists)
    return replace(command, replacements=replacements), own

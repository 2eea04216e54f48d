"""Whoever hands a part of a plan on hands on the lists of that part alone."""

from dovetail.messages.plans import DisruptionCommand, ProposedNode
from dovetail.messages.type_lists import command_with_own_lists
from dovetail.model.nodes import NodeClassRef

LISTS = (("a", "b"), ("c",), ("d", "e", "f"))


def a_proposed_node(type_list: int) -> ProposedNode:
    reference = NodeClassRef(group="g", kind="K", name="c")
    return ProposedNode(pool="p", pool_uid="u", node_class=reference, requirements=(), type_list=type_list)


def a_command(*type_lists: int) -> DisruptionCommand:
    return DisruptionCommand(
        reason="Drifted",
        method="drift",
        targets=(),
        replacements=tuple(a_proposed_node(number) for number in type_lists),
    )


def test_a_command_has_the_lists_of_its_replacements_and_each_replacement_its_own() -> None:
    command, lists = command_with_own_lists(a_command(2, 0, 2), LISTS)

    assert lists == (("a", "b"), ("d", "e", "f"))
    assert [lists[made.type_list] for made in command.replacements] == [LISTS[2], LISTS[0], LISTS[2]]


def test_a_command_that_replaces_nothing_has_none() -> None:
    command = a_command()
    assert command_with_own_lists(command, LISTS) == (command, ())

"""Nodes that hold room for CapacityBuffers (DIS-20, DIS-68, PLC-215; DIT-39, DIT-106, PLT-193)."""

from dataclasses import replace
from typing import Any

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.methods.single_node import SINGLE
from dovetail.disruption.rounds import Round, never, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionCommand
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from tests.placement.buffer_worlds import a_buffer, with_buffers
from worlds.disruption import NOW, TYPES, a_pair, a_pod, a_pool, a_world, condition

SETTINGS = DisruptionSettings()
ONE_TYPE = TYPES[2:3]  # of 8 cpus


def commands(world: Snapshot) -> tuple[DisruptionCommand, ...]:
    choice = choose(world, SETTINGS, never)
    return () if isinstance(choice, NothingToDo) else choice.commands


def targets(world: Snapshot) -> list[tuple[str, list[str]]]:
    return [(c.method, [t.node for t in c.targets]) for c in commands(world)]


def a_buffered(*args: Any, replicas: int = 2, cpu: str = "1", **fields: Any) -> Snapshot:
    return a_world(*args, **fields | with_buffers(a_buffer(replicas=replicas), cpu=cpu))


def test_an_empty_node_that_holds_a_buffers_room_stays_and_the_other_goes() -> None:
    """DIS-68, DIT-39, PLT-193."""
    world = a_buffered([a_pair("n1"), a_pair("n2")])

    choice = choose(world, SETTINGS, never)

    assert targets(world) == [("emptiness", ["n2"])]
    assert not isinstance(choice, NothingToDo)


def test_all_nodes_that_a_buffer_needs_stay_and_a_notice_says_why() -> None:
    """DIS-68, DIT-39."""
    world = a_buffered([a_pair("n1"), a_pair("n2")], replicas=12)

    choice = choose(world, SETTINGS, never)

    assert isinstance(choice, NothingToDo)
    assert (WhyNot.BUFFER_PODS, 2) in [(r.reason, r.count) for r in choice.refusals]
    assert ("Unconsolidatable", 'Node "n1" has buffer pods') in {(n.reason, n.message) for n in choice.notices}


def test_once_the_buffer_is_gone_so_are_its_nodes() -> None:
    """DIS-68, DIT-106."""
    world = replace(a_buffered([a_pair("n1")]), buffers={})

    assert targets(world) == [("emptiness", ["n1"])]


def test_a_node_with_pods_and_room_for_a_buffer_is_replaced_by_a_cheaper_one_for_both() -> None:
    """PLT-193, DIT-106: one replacement, planned for the pod and for the buffer."""
    world = a_buffered([a_pair("n1", "m16")], [a_pod("n1")], replicas=2)

    (command,) = commands(world)

    assert (command.method, [t.node for t in command.targets], len(command.replacements)) == ("single", ["n1"], 1)
    made = command.replacements[0]
    assert (len(made.pods), made.buffers, dict(made.requests)["cpu"]) == (1, (("buffer-spare", 2),), 3 * 10**9)


def test_a_node_whose_pods_fit_elsewhere_stays_where_the_buffer_would_not() -> None:
    """PLC-215: a new node for the buffer counts as the replacement, and is no cheaper."""
    pairs, pods = [a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2"), a_pod("n2")]

    assert targets(a_world(pairs, pods, types=ONE_TYPE)) == [("single", ["n1"])]
    assert targets(a_buffered(pairs, pods, types=ONE_TYPE, replicas=2, cpu="5")) == []


def test_more_than_one_new_node_is_too_many_also_where_one_of_them_is_a_buffers() -> None:
    """PLC-215: types of 16 cpus, on which both have room now, are not to be had any more."""
    unavailable = replace(TYPES[3], offerings=tuple(replace(o, available=False) for o in TYPES[3].offerings))
    types = (TYPES[2], unavailable)
    world = a_buffered([a_pair("n1", "m16")], [a_pod("n1", "8")], types=types, replicas=1, cpu="8")

    blocks = run(SINGLE, Round(world, SETTINGS)).found.blocks

    assert [block.why for _, block in blocks] == [WhyNot.TOO_MANY_REPLACEMENTS]


def test_a_buffer_that_has_no_room_anyway_holds_nothing_up() -> None:
    """PLC-220: the new node that it waits for is made by others, and not for this."""
    pairs, pods = [a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2"), a_pod("n2")]
    world = a_buffered(pairs, pods, types=ONE_TYPE, replicas=1, cpu="8")

    assert targets(world) == [("single", ["n1"])]


def test_virtual_pods_nominate_no_node() -> None:
    """DIS-20: the buffer's room moves to n2, which is no destination for it."""
    pairs = [a_pair("n1"), a_pair("n2"), a_pair("n3")]
    pods = [a_pod("n1", "2"), a_pod("n2", "4"), a_pod("n3", "6")]
    world = a_buffered(pairs, pods, types=ONE_TYPE, replicas=1, cpu="4")

    (command,) = commands(world)

    assert [t.node for t in command.targets] == ["n1"]
    assert command.destinations == ("n3",)


def test_a_drifted_node_that_holds_a_buffers_room_alone_is_replaced_first() -> None:
    """PLC-215: the room of each node of a wave moves with it."""
    pairs = [a_pair(f"n{n}", also=[condition(names.DRIFTED, changed=NOW - 60)]) for n in (1, 2)]
    world = a_buffered(pairs, pools=[a_pool(consolidate_after=None)], types=ONE_TYPE, replicas=2, cpu="6")

    found = commands(world)

    assert [[t.node for t in c.targets] for c in found] == [["n1"], ["n2"]]
    assert [[r.buffers for r in c.replacements] for c in found] == [[(("buffer-spare", 1),)]] * 2


def test_a_drifted_node_without_a_buffers_room_is_not_replaced() -> None:
    pairs = [a_pair("n1", also=[condition(names.DRIFTED, changed=NOW - 60)]), a_pair("a")]
    world = a_buffered(pairs, pools=[a_pool(consolidate_after=None)], types=ONE_TYPE, replicas=2)

    assert [(len(c.replacements), c.targets[0].node) for c in commands(world)] == [(0, "n1")]


def test_a_buffer_keeps_its_room_on_a_node_that_is_not_quiet_yet() -> None:
    """DIQ-21: were virtual pods kept off settling nodes (DIS-87), a young buffer would stop all consolidation."""
    young = a_pair("n2", claim={"last_pod_event": NOW - 10})
    quiet = [a_pair(name, claim={"last_pod_event": NOW - 100}) for name in ("n1", "n3")]
    pods = [a_pod("n1"), a_pod("n2", "2"), a_pod("n3", "6")]
    pool = a_pool(consolidate_after=30.0)
    world = a_buffered([young, *quiet], pods, pools=[pool], types=ONE_TYPE, replicas=1, cpu="6")

    assert [(t, d) for c in commands(world) for t, d in [(c.targets[0].node, c.destinations)]] == [("n1", ("n3",))]

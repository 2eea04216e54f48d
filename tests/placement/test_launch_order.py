"""In which order the claims of a plan are created and launched."""

from dovetail.messages.plans import ProposedNode
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.pods import Expression
from dovetail.placement.provisioning_plan import in_launch_order

CLASS = NodeClassRef(group="g", kind="K", name="c")


def a_proposed_node(label: str, cpu: int, *zones: str) -> ProposedNode:
    requirements = (Expression(key=names.ZONE, operator="In", values=zones),) if zones else ()
    return ProposedNode(
        pool=label,
        pool_uid="uid",
        node_class=CLASS,
        requirements=requirements,
        type_list=0,
        requests=(("cpu", cpu), ("memory", 1)),
    )


def order_of(*proposed: ProposedNode) -> list[str]:
    return [node.pool for node in in_launch_order(proposed)]


def test_the_largest_of_every_zone_come_first() -> None:
    small = [a_proposed_node(f"small-{index}", 100, "a") for index in range(3)]

    order = order_of(
        *small,
        a_proposed_node("big-a", 900, "a"),
        a_proposed_node("big-b", 800, "b"),
        a_proposed_node("big-c", 700, "c"),
    )

    assert order == ["big-a", "big-b", "big-c", "small-0", "small-1", "small-2"]


def test_like_nodes_of_several_zones_take_turns() -> None:
    nodes = [a_proposed_node(f"{zone}{index}", 100, zone) for zone in ("a", "b") for index in range(2)]

    assert order_of(*nodes) == ["a0", "b0", "a1", "b1"]


def test_nodes_that_may_be_in_any_zone_are_ordered_by_size() -> None:
    assert order_of(a_proposed_node("small", 1), a_proposed_node("large", 9)) == ["large", "small"]

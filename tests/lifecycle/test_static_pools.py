"""NPL-40 to NPL-44: which claims a static pool counts as its own, and which of them it gives up first."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.lifecycle.numbering import static_plan
from dovetail.lifecycle.static_pools import shortfalls, surplus
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pods import Pod
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_new_pool, a_web_pod
from tests.lifecycle.test_gated import NOW, a_gated_snapshot, nodes, static
from worlds.disruption import a_claim

FOREIGN = NodeClassRef(group="other.cloud", kind="OtherClass", name="default")


def given_up(replicas: int, *objects: NodeClaim | Pod, costs: dict[str, float] | None = None) -> list[str]:
    """The claims that a pool of so many replicas deletes, in their order."""
    return [order.claim.name for order in surplus(a_gated_snapshot(static(replicas), *objects), costs or {})]


@pytest.mark.parametrize(
    "other",
    [
        {"labels": {names.NODE_POOL: "other"}},
        {"labels": {}},
        {"deleting_since": NOW},
        {"annotations": {names.OWNER: "c/disrupt/1"}},
    ],
)
def test_only_what_runs_and_is_the_pools_own_is_surplus(other: dict[str, Any]) -> None:
    """NPL-44: nodes of other pools, and those that leave or are marked, are neither counted nor deleted."""
    strangers = [a_joined_claim(f"x{n}", node_name=f"x{n}", provider_id=f"x-{n}", **other) for n in range(3)]

    assert given_up(2, *nodes(2), *strangers) == []
    assert given_up(1, *nodes(2), *strangers) == ["c0"]


def test_a_claim_that_is_marked_and_leaving_is_not_counted_as_running() -> None:
    """NPL-41: it is replaced; what is marked and not yet leaving has its replacement on the way."""
    marked = {names.OWNER: "c/disrupt/1"}
    leaving = a_joined_claim("leaving", annotations=marked, deleting_since=NOW)

    (found,) = shortfalls(a_gated_snapshot(static(3), *nodes(2), leaving))

    assert len(found.numbers) == 1


def test_the_claims_of_other_pools_fill_no_static_pool() -> None:
    """NPL-41."""
    others = nodes(3, labels={names.NODE_POOL: "other"})

    (found,) = shortfalls(a_gated_snapshot(static(3), *others))

    assert len(found.numbers) == 3


@pytest.mark.parametrize(
    "pool",
    [
        a_new_pool(),
        static(0, deleting_since=NOW),
        replace(static(0), template=replace(static(0).template, node_class=FOREIGN)),
    ],
)
def test_dynamic_leaving_and_foreign_pools_give_nothing_up(pool: Any) -> None:
    """NPL-40, NPL-44, PLM-1: least of all a dynamic pool, which has no number to come down to."""
    assert surplus(a_gated_snapshot(pool, *nodes(3)), {}) == ()


def test_foreign_pools_are_not_filled() -> None:
    """NPL-40, PLM-1."""
    pool = static(3)

    assert len(shortfalls(a_gated_snapshot(pool))) == 1
    foreign = replace(pool, template=replace(pool.template, node_class=FOREIGN))
    assert shortfalls(a_gated_snapshot(foreign)) == ()


def test_pods_that_have_ended_do_not_keep_a_node() -> None:
    """NPL-44: a node whose pods have all ended is empty."""
    ended = [a_web_pod(phase, node_name="n1", phase=phase) for phase in ("Succeeded", "Failed")]
    costs = {"n0": 0.0, "n1": 9.0}

    assert given_up(1, *nodes(2), a_web_pod("web", node_name="n0"), *ended, costs=costs) == ["c1"]


def test_one_pod_beside_those_of_daemonsets_makes_a_node_not_empty() -> None:
    """NPL-44."""
    agents = [a_web_pod(f"agent-{n}", node_name=f"n{n}", owners=(DAEMON,)) for n in range(2)]

    assert given_up(1, *nodes(2), *agents, a_web_pod("web", node_name="n0"), costs={"n0": -1.0, "n1": 9.0}) == ["c1"]


def test_one_protected_pod_among_others_keeps_a_node_to_the_last() -> None:
    """NPL-44: also where it is a DaemonSet's, and where moving the pods of the other node costs more."""
    pods = [a_web_pod("web", node_name="n0"), a_web_pod("held", node_name="n0", do_not_disrupt="true")]
    dear = a_web_pod("dear", node_name="n1")
    agent = a_web_pod("agent", node_name="n0", owners=(DAEMON,), do_not_disrupt="true")

    assert given_up(1, *nodes(2), *pods, dear, costs={"n0": 0.0, "n1": 9.0}) == ["c1"]
    assert given_up(1, *nodes(2), agent, dear, costs={"n0": 0.0, "n1": 9.0}) == ["c1"]


def test_a_claim_without_a_node_has_no_pods() -> None:
    """NPL-44: pods that wait for a node say nothing of a claim that has none yet."""
    joining = a_claim("joining", provider_id="i-9")

    assert given_up(1, joining, *nodes(1), a_web_pod("web", node_name=""), a_web_pod("other", node_name="n0")) == [
        "joining"
    ]


def test_among_equals_the_name_decides() -> None:
    """NPL-44: whatever the order in which they were read, so that a look that is repeated chooses the same."""
    first, second, third = nodes(3)

    assert given_up(1, third, first, second) == given_up(1, first, second, third) == ["c0", "c1"]


def test_between_the_two_writes_of_an_undo_the_replacement_is_the_one_too_many() -> None:
    """NPL-44: the mark is off and the replacement not given back yet; with an empty node beside it in its place the
    pool would lose both."""
    undone, spare = nodes(2)
    replacement = a_joined_claim("x", node_name="x", provider_id="i-x", annotations={names.PLAN: "p/0"})
    made = replace(spare, annotations={names.PLAN: f"{static_plan(static(2))}/1"})

    for beside in (spare, made):
        assert given_up(2, undone, beside, replacement, a_web_pod("web", node_name="n0")) == ["x"]

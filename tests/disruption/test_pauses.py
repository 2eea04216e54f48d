"""A pause holds nodes back in every decision: the first look, the second, and what `explain` says."""

from dataclasses import replace

import pytest

from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.explain import explain_node
from dovetail.disruption.revalidate import Invalid
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.objects.workloads import Namespace
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from tests.disruption.second_look import revalidate
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_pool, a_world, condition

SETTINGS = DisruptionSettings()
UNTIL = "2023-11-14T23:13:20Z"  # an hour after NOW


def methods(world: Snapshot) -> list[str]:
    choice = choose(world, SETTINGS, never)
    return [command.method for command in choice.commands] if isinstance(choice, DisruptionPlan) else []


def for_all(world: Snapshot, what: str, **more: str) -> Snapshot:
    annotations = {names.PAUSED: what, **{f"dovetail.sh/paused-{key}": text for key, text in more.items()}}
    return replace(world, namespaces={"kube-system": Namespace(name="kube-system", annotations=annotations)})


EMPTY = a_world([a_pair("n1"), a_pair("n2")])
DRIFTED = a_world([a_pair("n1", also=(names.DRIFTED,))], [a_pod("n1")])
EXPIRED = a_world(
    [a_pair("n1", claim={"expire_after": HOUR})],
    [a_pod("n1")],
    [a_pool(annotations={names.REPLACE_FIRST: "true"}, consolidate_after=None)],
)


@pytest.mark.parametrize(
    ("world", "method", "held_by"),
    [
        (EMPTY, "emptiness", {"disruption", "all", "", "nonsense"}),
        (DRIFTED, "drift", {"disruption", "all", "", "nonsense"}),
        (EXPIRED, "expiration", {"expiry", "all", "", "nonsense"}),
    ],
)
def test_each_method_is_held_by_what_it_belongs_to(world: Snapshot, method: str, held_by: set[str]) -> None:
    assert methods(world) == [method]
    for what in ("disruption", "expiry", "drains", "all", "", "nonsense"):
        assert methods(for_all(world, what)) == ([] if what in held_by else [method]), what


def test_a_pool_is_paused_alone() -> None:
    pools = [a_pool("a", annotations={names.PAUSED: "disruption"}), a_pool("b")]
    world = a_world([a_pair("n1", pool="a"), a_pair("n2", pool="b")], pools=pools)

    choice = choose(world, SETTINGS, never)

    assert isinstance(choice, DisruptionPlan)
    assert [t.node for c in choice.commands for t in c.targets] == ["n2"]


def test_the_refusal_says_who_why_and_until_when_and_the_round_comes_back_at_the_end() -> None:
    choice = choose(for_all(EMPTY, "disruption", by="alice", reason="a move", until=UNTIL), SETTINGS, never)

    assert isinstance(choice, NothingToDo)
    [refusal] = [r for r in choice.refusals if r.reason == WhyNot.PAUSED]
    assert refusal.count == 2
    assert refusal.examples[0] == f"n1: disruption paused for all NodePools until {UNTIL}, by alice: a move"
    assert choice.next_due == NOW + HOUR


def test_a_plan_that_waits_is_dropped_where_a_pause_has_begun() -> None:
    choice = choose(EMPTY, SETTINGS, never)
    assert isinstance(choice, DisruptionPlan)

    assert isinstance(revalidate(choice, for_all(EMPTY, "disruption"), SETTINGS), Invalid)


def test_explain_names_the_pause_for_the_methods_that_it_holds() -> None:
    found = explain_node(for_all(EMPTY, "disruption"), SETTINGS, "n1")

    paused = {answer.method for answer in found.methods if answer.why == WhyNot.PAUSED}
    assert paused == {answer.method for answer in found.methods} - {"expiration"}
    assert found.goes_for == ()


def test_a_node_whose_disruption_a_person_calls_off_is_left_alone() -> None:
    called_off = a_pair("n1", claim={"annotations": {names.CANCEL: "not now"}})

    choice = choose(a_world([called_off, a_pair("n2")]), SETTINGS, never)

    assert isinstance(choice, DisruptionPlan)
    assert [t.node for c in choice.commands for t in c.targets] == ["n2"]


def test_a_static_pools_node_stays_while_launches_are_paused() -> None:
    static = a_pool(replicas=1, annotations={names.PAUSED: "launches"})
    world = a_world([a_pair("n1", also=(condition(names.DRIFTED),))], pools=[static])

    assert methods(world) == []
    assert methods(replace(world, pools={"a": replace(static, annotations={})})) == ["staticDrift"]

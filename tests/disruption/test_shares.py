"""Whose pods the nodes of a command are for."""

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.disruption.choose import decide
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.screening import screen
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.shares import MOST_NAMESPACES, shares_of
from dovetail.messages.plans import NOBODY, OTHERS, DisruptionPlan, Share
from dovetail.messages.sizes import encoded_bytes
from dovetail.model import names
from dovetail.model.pods import Pod
from worlds.disruption import a_pair, a_pod, a_world, condition

LONGEST: Final = 63  # characters of a namespace


ONE: Final = screen(Fleet(a_world([a_pair("n")]), DisruptionSettings())).graceful[0]


def a_candidate(price: float, *pods: Pod) -> Candidate:
    return replace(ONE, pods=pods, price=price)


def shares(*candidates: Candidate) -> dict[str, float]:
    return {each.namespace: each.share for each in shares_of(candidates)}


def test_pods_share_their_node_by_what_they_request() -> None:
    """A quarter and three quarters of cpu, a half each of memory: the mean of both."""
    node = a_candidate(1.0, a_pod("n", "1", namespace="shop"), a_pod("n", "3", namespace="search"))

    assert shares_of((node,)) == (Share(namespace="search", share=0.625), Share(namespace="shop", share=0.375))


def test_a_gpu_counts_beside_cpu_and_memory() -> None:
    plain, trains = a_pod("n", namespace="shop"), a_pod("n", namespace="models")
    trains = a_pod("n", namespace="models", requests={**trains.requests, "nvidia.com/gpu": 8})

    assert shares(a_candidate(1.0, plain, trains)) == {"models": 0.6667, "shop": 0.3333}


def test_pods_that_request_nothing_count_by_their_number() -> None:
    found = [a_pod("n", namespace=each, requests={"pods": 1, "cpu": 0}) for each in ("shop", "shop", "shop", "web")]

    assert shares(a_candidate(1.0, *found)) == {"shop": 0.75, "web": 0.25}


def test_nodes_count_by_their_prices_and_alike_where_none_is_known() -> None:
    shop, web = a_pod("n", namespace="shop"), a_pod("n", namespace="web")

    assert shares(a_candidate(0.3, shop), a_candidate(0.1, web)) == {"shop": 0.75, "web": 0.25}
    assert shares(a_candidate(0.0, shop), a_candidate(0.0, web)) == {"shop": 0.5, "web": 0.5}


def test_an_empty_node_beside_others_is_nobodys_and_nothing_is_carried_for_empty_nodes_alone() -> None:
    shop = a_pod("n", namespace="shop")

    assert shares(a_candidate(0.1, shop), a_candidate(0.3)) == {"shop": 0.25, NOBODY: 0.75}
    assert shares_of((a_candidate(0.1), a_candidate(0.2))) == shares_of(()) == ()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 64), st.floats(0.0, 9.0)), min_size=1, max_size=60))
def test_shares_are_few_and_add_up_to_one_however_many_namespaces_there_are(
    pods: list[tuple[int, int, float]],
) -> None:
    found = shares_of([a_candidate(price, a_pod("n", str(cpu), namespace=f"ns-{n}")) for n, cpu, price in pods])

    assert len(found) <= MOST_NAMESPACES + 1
    assert sum(each.share for each in found) == pytest.approx(1.0, abs=0.001)
    assert [each.share for each in found if each.namespace != OTHERS] == sorted(
        (each.share for each in found if each.namespace != OTHERS), reverse=True
    )


def test_a_command_carries_little_of_a_hundred_namespaces() -> None:
    pods = [a_pod("n", namespace=f"{n:0{LONGEST}}") for n in range(100)]

    found = shares_of((a_candidate(1.0, *pods),))

    assert found[-1] == Share(namespace=OTHERS, share=0.9)
    assert encoded_bytes(found) < 1100


def test_the_plan_of_a_drifted_node_says_whose_pods_it_had() -> None:
    drifted = a_pair("n", also=(condition(names.DRIFTED),))
    world = a_world([drifted], [a_pod("n", namespace="shop"), a_pod("n", "3", namespace="search")])

    plan = decide(world, DisruptionSettings(), never).choice

    assert isinstance(plan, DisruptionPlan)
    [command] = plan.commands
    assert [(each.namespace, each.share) for each in command.shares] == [("search", 0.625), ("shop", 0.375)]

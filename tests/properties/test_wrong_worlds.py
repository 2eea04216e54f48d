"""Whatever the plan is wrong about, no pod is launched for more than twice in an hour (PLQ-32)."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.model.values.resources import parse_resources
from tests.placement.builders import a_shape, a_waiting_pod
from tests.properties.wrong_worlds import Wrong, WrongWorld

GIB = 1024**3
ZONAL = a_shape(node_selector=((names.ZONE, "z2"),))
SIX_AND_A_ZONAL_ONE = {f"uid-{i}": a_waiting_pod(f"{i}", shape=ZONAL if i == 6 else a_shape()) for i in range(7)}


def of_size(number: int, cpu: str, memory: str) -> Pod:
    """The first of them asks for a zone."""
    requests = {**parse_resources({"cpu": cpu, "memory": memory}), "pods": 1}
    pod = a_waiting_pod(f"p{number:02}", shape=a_shape() if number else ZONAL)
    return replace(pod, requests=requests)


SIZES = [("100m", "256Mi")] * 3 + [("1", "4Gi")] + [("3", "12Gi")] * 5
OF_ALL_SIZES = {pod.uid: pod for pod in (of_size(n, *size) for n, size in enumerate(SIZES))}

wrongs = st.builds(
    Wrong,
    memory=st.sampled_from((1.0, 0.9, 0.5, 0.1)),
    claim_knows=st.booleans(),
    daemon=st.sampled_from((0, 0, 4 * GIB, 64 * GIB)),
    zone=st.sampled_from(("", "", "nowhere")),
    taint=st.sampled_from(("", "", "stays", "startup")),
    registers=st.sampled_from((True, True, True, False)),
    boot=st.sampled_from((0.0, 5.0, 20.0, 90.0)),
    empties_after=st.sampled_from((0.0, 30.0, 600.0)),
)


@st.composite
def waiting_pods(draw: st.DrawFn) -> dict[str, Pod]:
    found = {}
    for number in range(draw(st.integers(1, 12))):
        cpu, memory = draw(st.sampled_from((("100m", "256Mi"), ("1", "4Gi"), ("1", "7Gi"), ("3", "12Gi"))))
        selector = draw(st.sampled_from(((), (), ((names.ZONE, "z2"),))))
        pod = a_waiting_pod(f"p{number:02}", shape=a_shape(node_selector=selector))
        found[pod.uid] = Pod(
            name=pod.name,
            uid=pod.uid,
            shape=pod.shape,
            requests={**parse_resources({"cpu": cpu, "memory": memory}), "pods": 1},
            unschedulable=True,
        )
    return found


def judge(wrong: Wrong, pods: dict[str, Pod], seconds: float) -> None:
    """Play one world, and count."""
    world = WrongWorld(wrong, dict(pods))
    world.play(seconds)
    assert world.in_vain() <= 2
    assert max(map(len, world.named.values()), default=0) <= 4
    assert world.launches <= 2 * len(pods)


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@example(Wrong(memory=0.1), {"uid-a": a_waiting_pod("a")}, 600.0)
@example(Wrong(memory=0.1, claim_knows=False, empties_after=0.0), {"uid-a": a_waiting_pod("a")}, 1200.0)
@example(Wrong(registers=False), {"uid-a": a_waiting_pod("a")}, 3000.0)
@example(Wrong(zone="nowhere"), SIX_AND_A_ZONAL_ONE, 300.0)
@example(Wrong(zone="nowhere", claim_knows=False, boot=0.0, empties_after=0.0), OF_ALL_SIZES, 300.0)
@example(
    Wrong(zone="nowhere"),
    {f"uid-{i}": a_waiting_pod(f"{i}", shape=ZONAL if i == 6 else a_shape()) for i in range(7)},
    300.0,
)
@given(wrongs, waiting_pods(), st.sampled_from((300.0, 900.0)))
def test_no_pod_is_launched_for_more_than_twice(wrong: Wrong, pods: dict[str, Pod], seconds: float) -> None:
    judge(wrong, pods, seconds)


@pytest.mark.soak
@settings(max_examples=1000, deadline=None, suppress_health_check=QUIET)
@given(wrongs, waiting_pods(), st.sampled_from((300.0, 900.0)))
def test_no_pod_is_launched_for_more_than_twice_in_a_thousand_worlds(
    wrong: Wrong, pods: dict[str, Pod], seconds: float
) -> None:
    judge(wrong, pods, seconds)


@settings(max_examples=20, deadline=None, suppress_health_check=QUIET)
@given(waiting_pods(), st.sampled_from((0.0, 20.0, 90.0)))
def test_in_an_honest_world_all_pods_run_and_nothing_is_stopped(pods: dict[str, Pod], boot: float) -> None:
    world = WrongWorld(Wrong(boot=boot), dict(pods))

    world.play(300.0)

    assert world.pending() == []
    assert names.LAUNCHES_STOPPED not in world.pool_annotations


def test_many_pods_whose_nodes_are_of_no_use_are_held_and_the_pool_is_not() -> None:
    """Two nodes for each of thirty pods would be sixty; the brake on their namespace ends it before."""
    pods = {f"uid-p{i}": a_waiting_pod(f"p{i}", cpu="12") for i in range(30)}
    world = WrongWorld(Wrong(memory=0.01, claim_knows=False, empties_after=0.0, boot=5.0), pods)

    world.play(600.0)

    assert names.LAUNCHES_STOPPED not in world.pool_annotations
    assert world.launches < 60


def test_pods_whose_instances_are_taken_away_three_times_before_they_join_run_on_the_fourth() -> None:
    """A spot market that takes back at once says nothing of what the pods ask for."""
    world = WrongWorld(Wrong(boot=60.0, taken_after=30.0, takes=3), {"uid-a": a_waiting_pod("a")})

    world.play(300.0)

    assert world.launches == 4
    assert world.pending() == []


def test_instances_that_are_always_taken_away_stop_the_pool() -> None:
    world = WrongWorld(Wrong(boot=60.0, taken_after=30.0), {"uid-a": a_waiting_pod("a")})

    world.play(1800.0)

    assert names.LAUNCHES_STOPPED in world.pool_annotations
    assert world.launches <= 11 + 2  # one more is tried 5 min after the stop, and 10 min after that one

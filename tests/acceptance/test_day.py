"""An hour in fast motion: every pod runs somewhere, both policies meet the same hour, and nobody beats the bound."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import orjson
import pytest

from acceptance.binding.nodes import Node
from acceptance.binding.pods import Kinds
from acceptance.binding.scheduler import Cluster
from research.days.__main__ import played, table
from research.days.books import Week, compared
from research.days.bound import lowest
from research.days.load import Load
from research.days.market import Market
from research.days.picture import picture
from research.days.play import Course, Play
from research.days.short import line_of

PICTURES = Path(__file__).parents[2] / "docs/pictures"
HOUR = Course(cost=False, hours=1, nodes=3, steps=3, first_hour=18, every=10)


@pytest.mark.parametrize("cost", [False, True])
def test_after_an_hour_every_pod_runs_and_is_paid_for(cost: bool) -> None:
    play = Play(replace(HOUR, cost=cost))
    figures = play.run(lambda _: None)
    fleet = play.fleet

    assert set(fleet.pods) == set(play.load.app_of)
    assert len(fleet.pods) > 20
    assert {pod.name for pod in fleet.pods.values() if not pod.node_name} == set(fleet.pending)
    assert all(pod.node_name in fleet.nodes for pod in fleet.pods.values() if pod.node_name)
    assert len(figures.dollars) == 1
    assert not fleet.pending
    assert lowest(play.load.groups(), play.market) <= fleet.dollars()


def _filled(course: Course) -> tuple[Play, dict[str, str]]:
    """After the first two minutes, with what was meant for each pod after the first."""
    play, first = Play(course), course.first_hour * 60 - 30
    play._minute(first, True)
    meant = dict(play.fleet.nominated)
    play._minute(first + 1, False)
    return play, meant


def test_under_the_policy_pods_are_nominated_to_the_nodes_planned_for_them() -> None:
    play, meant = _filled(replace(HOUR, cost=True))

    assert len(meant) > 20
    bound = {name: pod.node_name for name, pod in play.fleet.pods.items() if pod.node_name}
    assert sum(bound.get(name) == node for name, node in meant.items()) > 0.9 * len(meant)
    assert not _filled(HOUR)[1]
    assert not _filled(replace(HOUR, cost=True, nominates=False))[1]


@pytest.mark.parametrize("follows", [False, True])
def test_pods_that_owners_make_anew_are_nominated_on_request(follows: bool) -> None:
    play, _ = _filled(replace(HOUR, cost=True, follows=follows))
    node, other, *_ = (name for name, each in play.fleet.nodes.items() if each.pods)
    play.fleet.nominated = dict.fromkeys(play.fleet.nodes[node].pods, other)
    count = play._evict(node, 0.0)

    assert len(play.fleet.nominated) == (count if follows else 0)
    assert set(play.fleet.nominated) <= set(play.fleet.pending)


def test_the_same_hour_is_played_the_same_again() -> None:
    first, second = (played(replace(HOUR, cost=True)) for _ in range(2))

    assert {**first, "processor_seconds": 0} == {**second, "processor_seconds": 0}


def test_a_day_s_savings_are_those_of_the_cloud_s_bills() -> None:
    """As tests/acceptance/test_week.py has it for a week, with a tenth of the nodes."""
    found = compared(Week(course=Course(cost=False, hours=24, nodes=3, steps=3, every=20)))

    assert found.answer.total.bill == pytest.approx(found.bill)
    assert found.answer.total.moves > 10 and found.answer.total.undone > 0
    assert abs(found.beside_bill) < 0.02


def test_a_quiet_evening_lets_nodes_leave() -> None:
    """Services shrink after the afternoon: some command is carried out, and its pods run elsewhere."""
    figures = Play(replace(HOUR, hours=2, nodes=6)).run(lambda _: None)

    assert sum(figures.steps.values()) > 0


def test_the_line_of_the_benchmark_has_both_policies() -> None:
    line = line_of(replace(HOUR, hours=2, nodes=6))
    plain, cost = line["default, cost"]["dollars"]

    assert line["cost"] == cost
    assert line["over upstream"] == pytest.approx(cost / plain, abs=1e-4)
    assert line["default, cost"]["lowest"][0] == line["default, cost"]["lowest"][1]


def test_a_move_back_within_a_day_is_counted() -> None:
    play = Play(replace(HOUR, cost=True, nodes=6))
    play.run(lambda _: None)
    first, second, third, *_ = play.fleet.nodes
    kinds = {name: play.fleet.nodes[name].key for name in (first, second, third)}
    play.fleet.nodes[third].key = kinds[first]
    play.fleet.nodes[second].key = ("another", *kinds[second][1:])
    play._note_moves([first], [second], 0.0)
    assert play.figures.undone == 0
    play._note_moves([second], [third], 3600.0)
    assert play.figures.undone == 1
    play._note_moves([second], [third], 100_000.0)
    assert play.figures.undone == 1


def test_services_are_fewest_at_night_and_most_in_the_afternoon() -> None:
    load = Load(5000, np.random.default_rng(1))
    [service, *_] = [app for app in load.apps if not app.is_job]
    wanted = [load.wanted(service, 60 * hour) for hour in range(24)]

    assert (wanted.index(min(wanted)), wanted.index(max(wanted))) == (2, 14)


def test_the_bound_grows_with_the_pods() -> None:
    market, load = Market(np.random.default_rng(1)), Load(50, np.random.default_rng(1))
    [app, *_] = load.apps

    assert lowest([], market) == 0.0
    assert lowest([(app, 20)], market) == pytest.approx(2 * lowest([(app, 10)], market))


def test_a_pod_that_is_released_leaves_nothing_behind() -> None:
    app = next(a for a in Load(50, np.random.default_rng(1)).apps if "topologySpreadConstraints" in a.spec)
    kinds = Kinds()
    kind = kinds.of(app.raw("p"))
    room = {"cpu": kind.requests["cpu"], "memory": kind.requests["memory"], "pods": Fraction(1)}
    labels = {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": "z1"}
    cluster = Cluster([Node("n", labels, (), room)], kinds, np.random.default_rng(1))
    cluster.up[:] = True

    assert cluster.bind_what_fits([app.raw("p")]) == []
    assert [raw["metadata"]["name"] for raw in cluster.bind_what_fits([app.raw("q")])] == ["q"]
    cluster.release("p", kind)
    assert cluster.bind_what_fits([app.raw("q")]) == []


def test_the_picture_is_that_of_the_recorded_figures() -> None:
    recorded = orjson.loads((PICTURES / "day.json").read_bytes())

    assert (PICTURES / "day.svg").read_text() == picture(recorded)
    assert set(recorded) == {"default", "cost"}
    assert table(recorded)[1].startswith("dollars")

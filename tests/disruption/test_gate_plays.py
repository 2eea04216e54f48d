"""An image that boots and breaks pods is stopped in the canary; an application that breaks everywhere at once is not
blamed on it. Twenty plays each, on the stage of `test_roll_back_plays.py`."""

import random
from dataclasses import replace
from typing import Final

import pytest

from dovetail.model.own.gates import GateResult
from dovetail.rules.rollout.before import STARTS_WITHIN
from dovetail.rules.rollout.moves import CONFIRMED
from tests.disruption.test_roll_back_plays import NEW, NODES, OLD, Play, a_rollout
from worlds.disruption import NOW

LOOK: Final = 10.0  # seconds between two looks of upkeep here; a change of the cluster wakes it within one
NEVER: Final = NOW + 10**9
SEEDS: Final = [0, *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 20)]]


def a_play(seed: str, *, crashes: bool, everywhere: bool = False) -> Play:
    """40 nodes and a change of their image; nobody breaks anything yet."""
    chosen = random.Random(seed)
    rollout = replace(a_rollout(), rolls_back=False)
    play = Play(chosen, NEVER, rollout, crashes=crashes, everywhere=everywhere)
    for _ in range(NODES):
        play.put(play.join(OLD))
    play.now += 3600.0
    play.pods = {name: replace(pod, started=NOW) for name, pod in play.pods.items()}
    return play


def go_on(play: Play) -> None:
    """Ten seconds, in which workers do something and may die."""
    for act in play.chosen.sample([play.plan, play.launch, play.finish, play.scale_up, play.undo], 3):
        act()
    play.upkeep()
    play.now += LOOK


def canary_pods(play: Play) -> float | None:
    """When the first pod was started on the new image."""
    started = [pod.started for pod in play.pods.values() if play.images[pod.node_name] == NEW and pod.started]
    return min(started, default=None)


def result(play: Play) -> GateResult:
    assert play.rollout is not None
    return play.rollout.status.gate.result


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("crashes", "within"), [(True, CONFIRMED), (False, STARTS_WITHIN + CONFIRMED)])
def test_an_image_that_breaks_pods_is_stopped_in_the_canary_within_six_minutes(
    seed: int, crashes: bool, within: float
) -> None:
    play = a_play(f"breaks on the image {seed}", crashes=crashes)
    play.breaks = 0.0
    began: float | None = None
    for _ in range(600):
        go_on(play)
        began = began or canary_pods(play)
        if began is not None and result(play) == GateResult.FAILING:
            break

    assert began is not None and result(play) == GateResult.FAILING
    assert play.now - began <= within + 3 * LOOK  # a look at each end, and the moment at which it was started
    assert play.rollout is not None and play.rollout.status.step == "canary"
    for _ in range(60):
        go_on(play)
    assert play.on_new() == 1 and len(play.harmed) == 1 and result(play) == GateResult.FAILING


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_an_application_that_breaks_everywhere_at_once_does_not_stop_it(seed: int) -> None:
    """It breaks once a canary is there, for twenty minutes, with its pods failing or only not ready."""
    play = a_play(f"breaks everywhere {seed}", everywhere=True, crashes=bool(seed % 2))
    for _ in range(600):
        if canary_pods(play) is not None:
            break
        go_on(play)
    assert canary_pods(play) is not None
    play.breaks = play.now + play.chosen.randint(60, 600)
    ends, results = play.breaks + 1200.0, set[GateResult]()
    while play.now < ends:
        go_on(play)
        results.add(result(play))
    play.breaks = NEVER
    assert play.rollout is not None
    for _ in range(900):
        if play.rollout.status.step != "canary":
            break
        go_on(play)
        results.add(result(play))

    assert GateResult.FAILING not in results
    assert play.rollout.status.step != "canary"  # it went on

"""Hours of the week beside a vendor's: requests change, budgets hold, spreads hold, and nobody beats the bound."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from dovetail.model import names
from research.days.load import START
from research.days.market import Market
from research.days.picture import picture
from research.days.play import Course
from research.days.vendor import RESIZED, VendorLoad, VendorPlay, poured

PICTURES = Path(__file__).parents[2] / "docs/pictures"
HOURS = Course(cost=False, hours=2, nodes=5, steps=3, first_hour=18, every=10, world="vendor")


class _Watched(VendorPlay):
    """Remembers how many pods of a service lost their places at once."""

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.most, self._drains = 0, False
        self._lost: Counter[str] = Counter()

    def _make_anew(self, pods: Sequence[str], now: float) -> int:
        if self._drains:
            apps = [self.fleet.app_of[name] for name in pods]
            self._lost.update(app.name for app in apps if not app.is_job)
        return super()._make_anew(pods, now)

    def _drain(self, now: float) -> None:
        self._lost.clear()
        self._drains = True
        super()._drain(now)
        self._drains = False
        self.most = max([self.most, *self._lost.values()])


@pytest.mark.parametrize("cost", [False, True])
def test_pods_run_spread_over_zones_and_leave_one_by_one(cost: bool) -> None:
    play = _Watched(replace(HOURS, cost=cost))
    figures = play.run(lambda _: None)
    fleet = play.fleet

    assert figures.moved > 0
    assert play.most == 1
    assert len(fleet.pods) > 40
    assert {pod.name for pod in fleet.pods.values() if not pod.node_name} == set(fleet.pending)
    assert poured(play.load.groups(), play.market) <= fleet.dollars()
    assert all(low <= paid for low, paid in zip(figures.lowest, figures.dollars, strict=True))


def test_requests_change_every_half_an_hour_and_pods_follow_in_parts() -> None:
    load = VendorLoad(12, np.random.default_rng(1))
    began = list(load.apps)
    for minute in range(61, 120):
        load.pass_a_minute(minute, START + minute * 60)
    changed = [app for app, before in zip(load.apps, began, strict=True) if app is not before]

    assert 0 < len(changed) <= RESIZED
    assert all(app.name == before.name for app, before in zip(load.apps, began, strict=True))
    for app in load.apps:
        assert {load.app_of[name] for name in app.pods} <= {app}  # nobody runs by requests of before
    owners = [(app.owner, before.owner) for app, before in zip(load.apps, began, strict=True) if app is not before]
    assert all(now.uid != then.uid for now, then in owners)  # other requests are another ReplicaSet


def test_the_program_of_an_hour_grows_with_the_pods() -> None:
    market, load = Market(np.random.default_rng(1)), VendorLoad(12, np.random.default_rng(1))
    app, *_ = load.apps

    assert poured([], market) == 0.0
    assert poured([(app, 40)], market) == pytest.approx(2 * poured([(app, 20)], market))
    prices = [p for (kind, _, sold), p in market.prices.items() if sold == names.CAPACITY_SPOT]
    assert poured([(app, 1)], market) < max(prices)


def test_the_picture_of_the_week_is_that_of_the_recorded_figures() -> None:
    recorded = orjson.loads((PICTURES / "vendors-week.json").read_bytes())

    assert (PICTURES / "vendors-week.svg").read_text() == picture(recorded)
    assert len(recorded["default"]["dollars"]) == len(recorded["cost"]["dollars"]) == 168

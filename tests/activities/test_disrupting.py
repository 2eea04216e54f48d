"""await_disruption_plan: what counts as taken when a held plan is looked at again."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dovetail.activities.disruption import await_disruption_plan as disrupting
from dovetail.activities.disruption.await_disruption_plan import AwaitDisruptionPlan
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.disruption.revalidate import Invalid, SecondLook, Valid
from dovetail.disruption.rounds import Round
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.outcomes import Drop, Due, Go, Hold
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, Seen, Target
from dovetail.messages.requests import DisruptionRequest
from dovetail.messages.states import Held
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import Invalidity
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world
from worlds.fakes import followers


def a_held_plan(claim: str) -> Held:
    target = Target(claim=claim, claim_uid=claim, node=claim, node_uid=claim, provider_id=claim, pool="pool", pods=())
    command = DisruptionCommand(
        reason="Empty", method="emptiness", targets=(target,), replacements=(), destinations=(), summary="", savings=0.0
    )
    plan = DisruptionPlan(seen=Seen(taken_at=0.0, versions=()), commands=(command,), type_lists=(), validate_after=15.0)
    return Held(plan=plan, due=0.0)


@pytest.mark.parametrize(("index", "taken"), [(0, set()), (1, {"first"}), (2, {"first", "second"})])
async def test_only_what_was_held_before_a_plan_counts_as_taken(
    monkeypatch: pytest.MonkeyPatch, index: int, taken: set[str]
) -> None:
    """DIS-134: an empty node, and its neighbour whose pod would land there, dropped each other's plans for ever."""
    given: list[Snapshot] = []

    def look_again(plan: DisruptionPlan, round_: Round) -> SecondLook:
        given.append(round_.snapshot)
        return SecondLook(validity=Valid(plan=plan), notices=())

    monkeypatch.setattr(disrupting, "look_again", look_again)
    nothing = cast(Any, None)
    clock: Callable[[], float] = lambda: 1.0  # noqa: E731
    step = AwaitDisruptionPlan(Snapshots(nothing, nothing), nothing, DisruptionSettings(), clock, followers())
    request = DisruptionRequest(
        must_see=(), nominations=(), quiet_until=0.0, held=tuple(a_held_plan(n) for n in ("first", "second", "third"))
    )

    answer = await step._check(Snapshot(now=1.0), request, index)

    assert given[0].disrupting == taken
    assert isinstance(answer, Due)
    assert answer.held == index


async def test_all_held_plans_that_are_due_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for a place, and one that is not due yet, stay; what follows one that is dropped comes next."""
    verdicts = {"full": Invalidity.BUDGET, "changed": Invalidity.CHURN}

    def look_again(plan: DisruptionPlan, round_: Round) -> SecondLook:
        reason = verdicts.get(plan.commands[0].targets[0].claim)
        if reason is None:
            return SecondLook(validity=Valid(plan=plan), notices=())
        return SecondLook(validity=Invalid(reason=reason, message="", candidates=1), notices=())

    monkeypatch.setattr(disrupting, "look_again", look_again)
    nothing = cast(Any, None)
    step = AwaitDisruptionPlan(Snapshots(nothing, nothing), nothing, DisruptionSettings(), lambda: 1.0, followers())
    later = replace(a_held_plan("later"), due=2.0)
    held = (*[a_held_plan(n) for n in ("first", "full", "second")], later, *[a_held_plan(n) for n in ("changed", "x")])

    def request(*held: Held) -> DisruptionRequest:
        return DisruptionRequest(must_see=(), nominations=(), quiet_until=0.0, held=held)

    together = await step._judge_due(Snapshot(now=1.0), request(*held), until=2.0)
    assert isinstance(together, Go)
    assert (together.held, [other.held for other in together.others]) == (0, [2])
    assert isinstance(await step._judge_due(Snapshot(now=1.0), request(*held[4:]), until=2.0), Drop)
    hurried = await step._judge_due(Snapshot(now=1.0), request(*held), until=0.0)
    assert isinstance(hurried, Go) and not hurried.others
    assert await step._judge_due(Snapshot(now=1.0), request(later), until=2.0) is None


class PublishedNotices:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    async def publish(self, *notices: Notice) -> None:
        self.notices += notices


async def test_what_holds_other_nodes_is_published_although_a_plan_was_found() -> None:
    """DIS-25: upstream publishes about every candidate in every pass, whatever comes of it."""
    held = a_pair("held", node={"annotations": {names.DO_NOT_DISRUPT: "true"}})
    world = a_world([a_pair("empty"), held], [a_pod("held")])
    published, nothing = PublishedNotices(), cast(Any, None)
    step = AwaitDisruptionPlan(Snapshots(nothing, nothing), published, DisruptionSettings(), lambda: NOW, followers())

    answer, _ = await step._choose(world)
    await asyncio.gather(*step.publishing)

    assert isinstance(answer, Hold)
    assert [t.node for t in answer.plan.commands[0].targets] == ["empty"]
    assert {(n.kind, n.name, n.reason) for n in published.notices} == {
        ("Node", "held", "DisruptionBlocked"),
        ("NodeClaim", "claim-held", "DisruptionBlocked"),
    }


async def test_a_changed_reason_is_published_though_the_object_is_the_same() -> None:
    """DIS-187, DIQ-14: upstream remembers the object alone, so that the first reason hides all others for 15 min."""
    pools = [a_pool(policy="WhenEmpty"), a_pool(consolidate_after=None)]
    published, nothing = PublishedNotices(), cast(Any, None)
    step = AwaitDisruptionPlan(Snapshots(nothing, nothing), published, DisruptionSettings(), lambda: NOW, followers())

    for pool in pools:
        await step._choose(a_world([a_pair("n1", type_name="m2")], [a_pod("n1")], pools=[pool]))
        await asyncio.gather(*step.publishing)

    keys = {
        (n.name, n.reason, n.distinct) for n in published.notices if n.kind == "Node" and n.reason == "Unconsolidatable"
    }
    assert len(keys) == 2


@pytest.mark.parametrize(("age", "said"), [(60.0, set()), (600.0, {"Node", "NodeClaim"})])
async def test_that_a_node_cannot_be_consolidated_is_said_once_it_has_been_there_for_a_while(
    age: float, said: set[str]
) -> None:
    """Two Events for each node that comes would say what nobody wonders about."""
    pair = a_pair("n1", type_name="m2", claim={"created": NOW - age})
    world = a_world([pair], [a_pod("n1")], pools=[a_pool(policy="WhenEmpty")])
    published, nothing = PublishedNotices(), cast(Any, None)
    step = AwaitDisruptionPlan(Snapshots(nothing, nothing), published, DisruptionSettings(), lambda: NOW, followers())

    await step._choose(world)
    await asyncio.gather(*step.publishing)

    assert {n.kind for n in published.notices if n.reason == "Unconsolidatable"} == said


@dataclass(slots=True)
class PlayedTime:
    """The clock of a step, and the cluster's view: nothing changes, and what is slept has passed at once."""

    now: float = 1.0

    def __call__(self) -> float:
        return self.now

    def revision(self) -> int:
        return 1

    def stale(self) -> tuple[str, ...]:
        return ()

    async def catch_up(self, _writes: object) -> None:
        return

    async def pause(self, seconds: float) -> None:
        self.now += max(seconds, 0.0)

    async def until_changed(self, _revision: int, seconds: float, _quiet: float = 0.0) -> None:
        self.now += max(seconds, 0.0)


async def test_a_plan_that_comes_due_while_a_long_decision_is_rested_from_waits_for_no_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waited for the next change, or for the end of its thirty seconds of patience."""
    time, nothing = PlayedTime(), cast(Any, None)

    async def whole(_reads: object) -> Snapshot:
        return Snapshot(now=time.now)

    async def long_decision(_snapshot: Snapshot) -> tuple[None, float]:
        time.now += 0.5
        return None, math.inf

    async def check(_snapshot: Snapshot, request: DisruptionRequest, index: int) -> Due:
        return Due(plan=request.held[index].plan, held=index)

    snapshots = cast(Any, SimpleNamespace(view=time, catalogues=nothing, whole=whole))
    step = AwaitDisruptionPlan(snapshots, nothing, DisruptionSettings(), time, followers())
    monkeypatch.setattr(disrupting, "ClusterSleep", lambda view: view)
    for name, played in (("_choose", long_decision), ("_check", check), ("_pause", time.pause)):
        monkeypatch.setattr(step, name, played)
    held = replace(a_held_plan("n1"), due=3.0)  # the decision ends at 1.5, and would be rested from until 4.5

    answer = await step.await_disruption_plan(DisruptionRequest(held=(held,)))

    assert isinstance(answer, Go)
    assert time.now == 3.0


NOMINATED = (("emptied", NOW + 20.0),)
EXPECTED = DisruptionRequest(nominations=NOMINATED, expected=("emptied",), expected_seen=7)


@pytest.mark.parametrize(
    ("request_", "changes", "chosen_at"),
    [
        pytest.param(EXPECTED, {}, NOW, id="its pods have run there and are gone"),
        pytest.param(
            EXPECTED,
            {"pods": {"w": a_pod("", uid="w", cpu="999", phase="Pending")}},
            NOW + 20.0,
            id="one pod waits for a node",
        ),
        pytest.param(
            EXPECTED, {"pods": {"d": a_pod("", uid="d", phase="Succeeded")}}, NOW, id="what is over waits not"
        ),
        pytest.param(EXPECTED, {"seen": {"Pod": 6}}, NOW + 20.0, id="the pods that it is for are not seen yet"),
        pytest.param(EXPECTED, {"stale": frozenset({"Pod"})}, NOW + 20.0, id="the watch of pods is broken"),
        pytest.param(replace(EXPECTED, expected=()), {}, NOW + 20.0, id="for pods that are about to be evicted"),
    ],
)
async def test_a_node_on_which_pods_were_expected_waits_no_longer_than_they_do(
    monkeypatch: pytest.MonkeyPatch, request_: DisruptionRequest, changes: dict[str, Any], chosen_at: float
) -> None:
    """DIS-20: twenty seconds are the longest; a node that was emptied right after it came rested for all of them."""
    time, nothing = PlayedTime(now=NOW), cast(Any, None)
    world = replace(a_world([a_pair("emptied")]), **{"seen": {"Pod": 7}, **changes})

    async def whole(_reads: object) -> Snapshot:
        return replace(world, now=time.now)

    snapshots = cast(Any, SimpleNamespace(view=time, catalogues=nothing, whole=whole))
    step = AwaitDisruptionPlan(snapshots, PublishedNotices(), DisruptionSettings(), time, followers())
    monkeypatch.setattr(disrupting, "ClusterSleep", lambda view: view)
    monkeypatch.setattr(step, "_pause", time.pause)

    answer = await step.await_disruption_plan(request_)

    assert isinstance(answer, Hold)
    assert [target.node for command in answer.plan.commands for target in command.targets] == ["emptied"]
    assert time.now == chosen_at

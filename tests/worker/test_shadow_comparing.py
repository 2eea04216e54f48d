"""Two ways to look after a cluster are compared by what they did, and by what one of them would have done."""

import pytest

from dovetail.answers.shadow.comparing import (
    REMEMBERED_SECONDS,
    Comparing,
    GoneClaim,
    LaunchedNode,
    compared_launch,
)
from dovetail.messages.plans import DisruptionCommand, Target

HOLD = 15.0


def command(*claims: str, reason: str = "Underutilized", savings: float = 0.5) -> DisruptionCommand:
    targets = tuple(
        Target(claim=name, claim_uid=name, node=f"node-{name}", node_uid="", provider_id="", pool="default")
        for name in claims
    )
    return DisruptionCommand(reason=reason, method="single", targets=targets, savings=savings)


def gone(claim: str, reason: str = "Underutilized") -> GoneClaim:
    return GoneClaim(claim=claim, node=f"node-{claim}", pool="default", reason=reason)


def node(price: float | None = 0.2, pool: str = "default") -> LaunchedNode:
    return LaunchedNode(pool=pool, type="m5.large", price=price)


def test_a_node_that_both_take_agrees_also_where_the_plan_was_dropped_because_karpenter_had_marked_the_node() -> None:
    both = Comparing(since=0.0)
    both.decided([command("a")], HOLD, 10.0)
    both.decided([], HOLD, 30.0)
    both.left(gone("a"), 31.0)

    report = both.report(40.0)
    [departure] = report.departures
    assert (departure.way, departure.differs, departure.dovetail_since) == ("both", "", 10.0)
    assert (report.totals.departures_alike, report.totals.only_dovetail, report.totals.dropped) == (1, 0, 0)


def test_another_reason_is_said_and_is_no_agreement() -> None:
    both = Comparing(since=0.0)
    both.decided([command("a", reason="Drifted")], 0.0, 10.0)
    both.left(gone("a", "Underutilized"), 11.0)
    [departure] = both.report(12.0).departures
    assert departure.differs == "for Drifted instead of Underutilized"
    assert both.report(12.0).totals.departures_unlike == 1


def test_a_node_that_dovetail_would_have_left_is_karpenter_s_alone() -> None:
    both = Comparing(since=0.0)
    both.decided([command("b")], HOLD, 10.0)
    both.left(gone("a"), 11.0)
    [departure] = both.report(12.0).departures
    assert (departure.claim, departure.way, departure.differs) == ("a", "karpenter", "Dovetail had not planned it")


def test_what_leaves_without_a_disruption_is_not_compared() -> None:
    both = Comparing(since=0.0)
    both.left(gone("a", ""), 1.0)
    report = both.report(2.0)
    assert (report.departures, report.totals.not_compared) == ((), 1)


def test_what_dovetail_alone_would_do_counts_after_its_second_look_and_for_as_long_as_it_stands() -> None:
    alone = Comparing(since=0.0)
    alone.decided([command("a", "b", savings=0.5)], HOLD, 0.0)
    assert alone.report(14.0).totals.only_dovetail == 0, "it would not have begun yet"

    standing = alone.report(HOLD + 3600.0)
    assert [each.claim for each in standing.departures] == ["a", "b"]
    assert {each.way for each in standing.departures} == {"dovetail"}
    assert standing.totals.saving_now == 0.5, "of both nodes together"
    assert standing.totals.saved == pytest.approx(0.5)

    alone.decided([], HOLD, HOLD + 7200.0)
    over = alone.report(HOLD + 9999.0)
    assert over.totals.saving_now == 0 and over.totals.saved == pytest.approx(1.0)


def test_a_look_that_finds_the_same_again_counts_no_time_twice() -> None:
    alone = Comparing(since=0.0)
    for moment in range(0, 3601, 60):
        alone.decided([command("a", savings=1.0)], 0.0, float(moment))
        alone.report(float(moment))
    assert alone.report(3600.0).totals.saved == pytest.approx(1.0)


def test_what_karpenter_did_after_all_saves_nothing_from_then_on() -> None:
    both = Comparing(since=0.0)
    both.decided([command("a", savings=1.0)], 0.0, 0.0)
    both.left(gone("a"), 1800.0)
    both.decided([command("a", savings=1.0)], 0.0, 1801.0)
    report = both.report(7200.0)
    assert report.totals.saved == pytest.approx(0.5) and report.totals.saving_now == 0.0


def test_what_came_to_nothing_is_counted_once_it_is_forgotten_and_is_another_matter_then() -> None:
    alone = Comparing(since=0.0)
    alone.decided([command("a")], HOLD, 0.0)
    alone.decided([], HOLD, 60.0)
    alone.decided([], HOLD, 61.0 + REMEMBERED_SECONDS)
    assert alone.report(9000.0).totals.dropped == 1
    alone.left(gone("a"), 9001.0)
    assert alone.report(9002.0).departures[-1].way == "karpenter"


def test_launches_agree_by_pool_and_price() -> None:
    same = compared_launch(1.0, ["default/a"], (node(0.2),), (node(0.2),))
    dearer = compared_launch(1.0, ["default/a"], (node(0.2),), (node(0.3),))
    fewer = compared_launch(1.0, ["default/a", "default/b"], (node(0.3),), (node(0.2), node(0.2)))
    other = compared_launch(1.0, ["default/a"], (node(0.2, "spot"),), (node(0.2),))
    nothing = compared_launch(1.0, ["default/a"], (), (node(0.2),))

    assert same.differs == ""
    assert dearer.differs == "$0.2000/h instead of $0.3000/h" and dearer.saving == pytest.approx(0.1)
    assert fewer.differs == "1 of default instead of 2 of default" and fewer.saving == pytest.approx(0.1)
    assert other.differs == "1 of spot instead of 1 of default"
    assert nothing.differs == "none instead of 1 of default"


def test_a_price_that_nobody_knows_is_no_difference_and_saves_nothing() -> None:
    unknown = compared_launch(1.0, ["default/a"], (node(0.2),), (node(None),))
    assert (unknown.differs, unknown.saving) == ("", None)


def test_launches_are_summed_and_pods_that_no_node_was_made_for_are_left_out() -> None:
    both = Comparing(since=0.0)
    both.launched(compared_launch(1.0, ["default/a"], (node(0.2),), (node(0.2),)))
    both.launched(compared_launch(2.0, ["default/b"], (node(0.2),), (node(0.3),)))
    both.launched(compared_launch(3.0, ["default/c"], (), ()))
    totals = both.report(4.0).totals
    assert (totals.launches_alike, totals.launches_unlike) == (1, 1)
    assert totals.launches_saving == pytest.approx(0.1)

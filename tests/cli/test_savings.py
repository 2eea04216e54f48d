"""What `dovetail savings` makes of the record, and which entries `dovetail log` shows."""

from dataclasses import replace
from typing import Any

from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.log import LogAnswer, Wanted, log_from, log_markdown, log_text
from dovetail.answers.record.savings import PoolSavings, savings_from, savings_markdown, savings_text
from dovetail.model.snapshot import Snapshot
from worlds.disruption import a_pair, a_pod, a_pool, a_world

HOUR = 3600.0
DISRUPTION = Entry(
    kind="disruption",
    workflow="demo/disrupt/1",
    run="r",
    began=0.0,
    ended=HOUR,
    outcome="done",
    reason="Underutilized",
    pool="web",
    nodes=("n1",),
    claims=("web-1",),
    pods=4,
    price_before=0.5,
    price_after=0.1,
    saved=0.4,
)
LAUNCH = replace(DISRUPTION, kind="launch", claims=("web-9",), reason="Provisioned", saved=None, outcome="initialised")


def pool_savings(entries: list[Entry], until: float) -> tuple[PoolSavings, ...]:
    return savings_from("demo", Period(since=0.0), Entries(entries=tuple(entries)), until).pools


def test_a_saving_counts_from_the_end_of_the_move() -> None:
    [found] = pool_savings([DISRUPTION], until=6 * HOUR)

    assert (found.moves, found.undone, found.pods, found.predicted) == (1, 0, 4, 0.4)
    assert round(found.saved, 6) == 2.0
    assert (found.per_pod, found.per_move) == (found.saved / 4, found.saved)


def test_a_saving_counts_from_the_end_of_each_instance_where_the_record_has_it() -> None:
    two = replace(DISRUPTION, claims=("web-1", "web-3"))
    first = replace(DISRUPTION, kind="termination", saved=None, instance_gone=0.5 * HOUR)
    last = replace(first, claims=("web-3",), instance_gone=0.75 * HOUR)

    [found] = pool_savings([two, first, last], until=6 * HOUR)
    [unknown] = pool_savings([two, first, replace(last, instance_gone=None)], until=6 * HOUR)

    assert round(found.saved, 6) == round(0.2 * 5.5 + 0.2 * 5.25, 6)
    assert round(unknown.saved, 6) == round(0.2 * 5.5 + 0.2 * 5.0, 6)


def test_a_saving_ends_when_the_replacement_leaves() -> None:
    moved = replace(DISRUPTION, replacements=("web-2",))
    gone = replace(DISRUPTION, kind="termination", claims=("web-2",), began=3 * HOUR, ended=3 * HOUR, saved=None)

    [found] = pool_savings([moved, gone], until=6 * HOUR)

    assert round(found.saved, 6) == 0.8


def test_what_was_called_off_saves_nothing_and_counts_as_undone() -> None:
    called_off = replace(DISRUPTION, outcome="cancelled")

    [found] = pool_savings([called_off, replace(DISRUPTION, outcome="running", ended=None)], until=6 * HOUR)

    assert (found.moves, found.undone, found.predicted, found.saved) == (0, 1, 0.0, 0.0)


def test_a_node_launched_for_pods_within_a_day_came_back_once() -> None:
    launches = [replace(LAUNCH, began=began) for began in (0.5 * HOUR, 2 * HOUR, 3 * HOUR, 40 * HOUR)]
    replacing = replace(LAUNCH, began=2 * HOUR, disruption="demo/disrupt/2")

    [found] = pool_savings([DISRUPTION, replacing, *launches], until=50 * HOUR)

    assert found.back == 1


def test_drift_costs_what_it_costs() -> None:
    dearer = replace(DISRUPTION, reason="Drifted", saved=-0.2, replacements=("web-2",))

    [found] = pool_savings([dearer], until=2 * HOUR)

    assert round(found.saved, 6) == -0.2


def test_entries_are_asked_for_by_pool_reason_pod_and_kind() -> None:
    entry, period = replace(DISRUPTION, pod_names=("shop/cart-1",)), Period(since=0.0)

    assert Wanted(period=period, pool="web", reason="underutilized", pod="cart-1", kinds=("disruption",)).takes(entry)
    assert Wanted(period=period, pod="shop/cart-1").takes(entry)
    for other in ({"pool": "db"}, {"reason": "Drifted"}, {"pod": "shop/cart-2"}, {"kinds": ("launch",)}):
        assert not Wanted(period=period, **other).takes(entry)


def test_the_log_is_one_line_each() -> None:
    cancelled = replace(DISRUPTION, outcome="cancelled", by="ann", message="not now", replacements=("web-2",))
    answer = LogAnswer(cluster="demo", since="1970-01-01T00:00:00Z", until=None, entries=(cancelled, LAUNCH))

    text, wide = log_text(answer), log_text(answer, wide=True)

    assert len(text.splitlines()) == 3
    assert "n1 → 1 new" in text and "−0.4000" in text and "cancelled by ann" in text
    assert "not now" in wide and "demo/disrupt/1" in wide
    assert log_markdown(answer).count("\n") == 3


def test_the_log_says_how_often_each_pod_was_moved() -> None:
    """Of the pods that run now, in the pools that are asked for; what was called off has moved none."""
    pools = [a_pool("web"), a_pool("db")]
    fleet = a_world([a_pair("n1", pool="web"), a_pair("n2", pool="db")], [a_pod("n1") for _ in range(4)], pools)
    cancelled, other = replace(DISRUPTION, outcome="cancelled"), replace(DISRUPTION, pool="db", pods=0)
    entries = Entries(entries=(DISRUPTION, replace(DISRUPTION, pods=1), cancelled, LAUNCH))

    def notes(found: Entries, fleet: Snapshot | None = fleet, **wanted: Any) -> tuple[str, ...]:
        return log_from("demo", Wanted(period=Period(since=0.0), **wanted), found, 6 * HOUR, fleet).notes

    assert notes(entries) == ("disruptions moved 5 pods, 1.25 for each of the 4 that run now",)
    assert notes(entries, pool="web") == notes(entries, reason="Underutilized") == notes(entries)
    assert notes(entries, fleet=None) == ("disruptions moved 5 pods",)
    assert notes(entries, pod="shop/cart-1") == notes(Entries(entries=(other,))) == ()
    assert notes(replace(entries, cut=True))[-1] == "disruptions moved at least 5 pods"


def test_a_sum_of_what_could_be_read_says_that_it_is_one() -> None:
    whole, part = (
        savings_from("demo", Period(since=0.0), Entries(entries=(DISRUPTION,), cut=cut), 6 * HOUR)
        for cut in (False, True)
    )

    least = "at least $2.00 saved: not every workflow of that time was read"
    assert (whole.partial, part.partial) == (False, True)
    assert savings_text(part).splitlines()[1] == savings_markdown(part).splitlines()[0] == least
    assert "at least" not in savings_text(whole) + savings_markdown(whole)
    assert "| $ per move |" in savings_markdown(whole)


def test_each_move_that_is_done_says_what_it_has_saved_until_now_or_until_its_replacement_left() -> None:
    moved = replace(DISRUPTION, claims=("web-0",), replacements=("web-2",))
    ended = replace(DISRUPTION, kind="termination", claims=("web-2",), began=2 * HOUR, ended=2 * HOUR, saved=None)
    undone = replace(DISRUPTION, outcome="cancelled")
    entries = Entries(entries=(DISRUPTION, moved, undone, ended, replace(LAUNCH, began=8 * HOUR)))

    answer = log_from("demo", Wanted(period=Period(since=0.0), kinds=("disruption",)), entries, 6 * HOUR)
    until = log_from("demo", Wanted(period=Period(since=0.0, until=3 * HOUR)), entries, 6 * HOUR)

    assert [each.saved_dollars and round(each.saved_dollars, 6) for each in answer.entries] == [2.0, 0.4, None]
    assert [each.saved_dollars and round(each.saved_dollars, 6) for each in until.entries] == [0.8, 0.4, *[None] * 3]
    assert "SAVED $" in log_text(answer, wide=True) and "2.0000" in log_text(answer, wide=True)
    assert "SAVED $" not in log_text(answer)


def test_many_nodes_are_counted_and_moments_say_their_zone() -> None:
    many = replace(DISRUPTION, nodes=("n1", "n2", "n3"))
    answer = LogAnswer(cluster="demo", since="1970-01-01T00:00:00Z", until=None, entries=(many,))

    head, line = log_text(answer).splitlines()

    assert "n1, n2 and 1 more" in line and head.startswith("BEGAN (UTC)")
    assert head.index("$/H") + len("$/H") == line.index("0.4000") + len("0.4000"), "amounts end below one another"
    assert log_markdown(answer).startswith("| began (UTC) |")

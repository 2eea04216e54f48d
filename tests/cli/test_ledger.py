"""What moves have saved, against the same time without them, and what all nodes have cost."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.questions import table
from dovetail.answers.questions.asking import Answered, Asked
from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.kept import Archive
from dovetail.answers.record.lives import joined
from dovetail.answers.record.log import LogAnswer, Wanted, log_from, log_text
from dovetail.answers.record.savings import PoolSavings, SavingsAnswer, savings_from, savings_markdown, savings_text
from dovetail.answers.serving import duties
from dovetail.cli.top.questions import SAVINGS_PERIOD
from dovetail.model.names import (
    CAPACITY_ON_DEMAND,
    CAPACITY_RESERVED,
    CAPACITY_SPOT,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    LAUNCHED,
    ZONE,
)
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.pools import Catalogue
from dovetail.model.reasons.endings import Ending
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.durations import DAY
from dovetail.telemetry.metrics.ours.last_day import LastDay
from worlds.disruption import TYPES, a_pair, a_type, an_offering, condition

HOUR: Final = 3600.0
KINDS: Final = (*TYPES, a_type("dear", 4, 0.3))
PRICES: Final = {each.name: each.offerings[0].price for each in KINDS}


def fleet(*pairs: Any) -> Snapshot:
    """These nodes, and what instance types cost: m2 0.1 an hour, m4 0.2, m8 0.4, spot the half; dear as large as m4."""
    claims = {pair.claim.name: pair.claim for pair in pairs}
    return Snapshot(now=0.0, claims=claims, catalogues={"web": Catalogue(types=KINDS), "db": Catalogue(types=KINDS)})


def a_move(at: float, claim: str, kind: str = "m4", *replacements: str, **more: Any) -> Entry:
    """One node that a disruption took away, within a minute."""
    price = PRICES[kind]
    given: dict[str, Any] = {"reason": "Empty", "pool": "web", "price_before": price, "saved": price, **more}
    return Entry(
        kind="disruption",
        workflow=f"move of {claim}",
        run="1",
        began=at,
        ended=at + 60.0,
        outcome="done",
        claims=(claim,),
        nodes=(claim,),
        replacements=replacements,
        **given,
    )


def a_launch(at: float, claim: str, kind: str = "m4", spot: bool = False, **more: Any) -> Entry:
    return Entry(
        kind="launch",
        workflow=f"launch of {claim}",
        run="1",
        began=at,
        ended=at + 40.0,
        outcome="initialised",
        claims=(claim,),
        instance_type=kind,
        zone="z1",
        capacity_type=CAPACITY_SPOT if spot else CAPACITY_ON_DEMAND,
        **{"pool": "web", **more},
    )


def an_end(at: float, claim: str, kind: str = "m4", **more: Any) -> Entry:
    """Of an instance that had ended a minute after its claim began to leave."""
    ended = {"outcome": "terminated", "instance_gone": at + 60.0, "launched": 0.0}
    return replace(a_launch(at, claim, kind), kind="termination", workflow=f"end of {claim}", **{**ended, **more})


def found(until: float, *entries: Entry, nodes: Snapshot | None = None) -> SavingsAnswer:
    record = Entries(entries=joined(entries))
    return savings_from("demo", Period(since=0.0), record, until, nodes if nodes is not None else fleet())


def total(until: float, *entries: Entry) -> PoolSavings:
    return found(until, *entries).total


def gone(at: float, claim: str, kind: str = "m4", **more: Any) -> tuple[Entry, Entry]:
    """A node that was emptied and taken away."""
    return a_move(at, claim, kind, **more), an_end(at, claim, kind)


def test_what_the_pool_buys_again_ten_seconds_later_has_saved_nothing() -> None:
    one = total(HOUR, *gone(100.0, "web-1"), a_launch(110.0, "web-2"))

    beside = 0.2 * 50 / HOUR  # for so many seconds both were paid
    assert (one.moves, one.back, round(one.saved, 9)) == (1, 1, round(-beside, 9))
    assert one.predicted == 0.2


def test_how_sure_the_figure_is_stands_beside_it_where_something_came_back() -> None:
    """What was launched for a move itself is known, and so is a time in which nothing came back: no ± there."""
    back = found(10 * HOUR, *gone(0.0, "web-1"), a_launch(2 * HOUR, "web-2"))
    replaced = [a_move(0.0, "web-1", "m4", "web-2"), an_end(0.0, "web-1"), a_launch(0.0, "web-2", "m2")]

    [said] = [note for note in back.notes if note.startswith("±")]
    assert said.startswith(f"±${8 * 0.2 * 0.1:.2f}: ${8 * 0.2:.2f} of nodes launched later"), "eight hours of an m4"
    assert said in savings_text(back) and said in savings_markdown(back)
    for sure in (found(10 * HOUR, *gone(0.0, "web-1")), found(10 * HOUR, *replaced)):
        assert sure.total.saved > 0 and not any("±" in note for note in sure.notes)


def test_nodes_that_go_each_evening_and_come_each_morning_save_their_nights() -> None:
    nights = list[Entry]()
    for day in range(30):
        evening = day * DAY + 22 * HOUR
        for number in range(10):
            nights += gone(evening, f"web-{day}-{number}")
            nights.append(a_launch(evening + 8 * HOUR, f"web-{day + 1}-{number}"))

    one = total(30 * DAY + 7 * HOUR, *nights)

    assert one.back == 300
    assert one.saved == pytest.approx(30 * 10 * 0.2 * (8 - 1 / 60), rel=1e-6), "and not from each night until now"


def test_what_comes_back_cheaper_has_saved_the_difference_and_what_comes_back_dearer_has_cost_it() -> None:
    cheap = total(11 * HOUR + 60, *gone(0.0, "web-1"), a_launch(HOUR + 60, "web-2", spot=True))
    dear = total(11 * HOUR + 60, *gone(0.0, "web-1"), a_launch(HOUR + 60, "web-2", "dear"))

    assert round(cheap.saved, 6) == round(0.2 + 10 * 0.1, 6)
    assert round(dear.saved, 6) == round(0.2 - 10 * 0.1, 6)


def test_a_node_on_demand_is_launched_for_pods_that_would_not_have_gone_to_a_spot_node() -> None:
    """A spot node is: its pods may go anywhere."""
    spot = [
        a_move(0.0, "web-1", price_before=0.1, saved=0.1),
        replace(an_end(0.0, "web-1"), capacity_type=CAPACITY_SPOT),
    ]
    firm = gone(0.0, "web-1")

    assert round(total(10 * HOUR + 60, *spot, a_launch(60.0, "web-2")).saved, 6) == 1.0
    assert round(total(10 * HOUR + 60, *spot, a_launch(60.0, "web-2", spot=True)).saved, 6) == 0.0
    assert round(total(10 * HOUR + 60, *firm, a_launch(60.0, "web-2", spot=True)).saved, 6) == 1.0
    both = [*spot, *gone(60.0, "web-9"), a_launch(120.0, "web-2"), a_launch(120.0, "web-3", spot=True)]
    assert round(total(10 * HOUR + 60, *both).saved, 6) == round(0.1 / 60, 6), "a minute of the spot node"


def test_only_the_room_that_was_taken_away_is_bought_again() -> None:
    """A node twice as large would have been needed anyway; of a smaller one half of the room is left."""
    large = total(11 * HOUR + 60, *gone(0.0, "web-1"), a_launch(HOUR + 60, "web-2", "m8"))
    small = total(11 * HOUR + 60, *gone(0.0, "web-1"), a_launch(HOUR + 60, "web-2", "m2"))

    assert round(large.saved, 6) == 0.2
    assert round(small.saved, 6) == round(0.2 + 10 * 0.1, 6)


def test_a_move_to_spot_takes_no_room_away_and_nothing_that_is_launched_later_ends_it() -> None:
    moved = a_move(0.0, "web-1", "m4", "web-2", reason="Underutilized", saved=0.1)
    entries = [moved, a_launch(0.0, "web-2", spot=True), an_end(0.0, "web-1"), a_launch(HOUR, "web-3")]

    one = total(10 * HOUR + 60, *entries)

    beside = 0.1 / 60  # for a minute both were paid
    assert (round(one.saved, 6), one.back) == (round(1.0 - beside, 6), 0)


def test_another_pool_s_nodes_are_not_what_was_taken_away() -> None:
    one = found(10 * HOUR + 60, *gone(0.0, "web-1"), a_launch(HOUR, "db-1", pool="db"))

    assert [(pool.pool, round(pool.saved, 6)) for pool in one.pools] == [("db", 0.0), ("web", 2.0)]


def by_pools(answer: SavingsAnswer) -> list[tuple[str, int, int, float, float, int]]:
    return [(p.pool, p.moves, p.back, round(p.predicted, 6), round(p.saved, 6), p.pods) for p in answer.pools]


def both_pools(*replacements: str, **more: Any) -> Entry:
    """One command that took a node of either NodePool away."""
    given = {"price_before": 0.4, "saved": 0.4, "pools": ("web", "db"), "pods": 3, **more}
    move = a_move(0.0, "web-1", "m4", *replacements, **given)
    return replace(move, claims=("web-1", "db-1"), nodes=("n-1", "n-2"))


def test_a_move_of_two_pools_nodes_is_counted_like_a_move_in_each() -> None:
    """What comes back in either is set against what left it."""
    ends = an_end(0.0, "web-1"), an_end(0.0, "db-1", pool="db")
    back = a_launch(60.0, "web-2"), a_launch(60.0, "db-2", pool="db")

    one = found(30 * DAY, both_pools(), *ends, *back)
    each = found(30 * DAY, a_move(0.0, "web-1", pods=2), a_move(0.0, "db-1", pool="db", pods=1), *ends, *back)

    assert by_pools(one) == by_pools(each) and one.total.back == 2
    whole = found(10 * HOUR + 60, both_pools(), *ends)
    assert [(pool.pool, round(pool.saved, 6)) for pool in whole.pools] == [("db", 2.0), ("web", 2.0)]


def test_what_replaces_two_pools_nodes_is_charged_to_each_of_them_once() -> None:
    move = both_pools("web-2", reason="Underutilized", saved=0.2)
    entries = [move, an_end(0.0, "web-1"), an_end(0.0, "db-1", pool="db"), a_launch(60.0, "web-2")]

    one = found(10 * HOUR + 60, *entries)
    removed = found(10 * HOUR + 60, *entries, an_end(HOUR, "web-2", reason=Ending.NODE_DELETED))
    [logged] = [entry for entry in a_log(10 * HOUR + 60, "", *entries).entries if entry.kind == "disruption"]

    assert [(pool.pool, round(pool.saved, 6)) for pool in one.pools] == [("db", 1.0), ("web", 1.0)]
    assert logged.saved_dollars == pytest.approx(one.total.saved), "the whole move"
    assert round(removed.total.saved, 6) == round(0.2 * (1 - 1 / 60), 6), "a person ends it in both"


def a_log(until: float, pool: str, *entries: Entry) -> LogAnswer:
    wanted = Wanted(period=Period(since=-1.0), pool=pool, kinds=("disruption",))
    return log_from("demo", wanted, Entries(entries=joined(entries)), until, fleet())


def test_the_log_of_a_pool_has_each_move_that_took_one_of_its_nodes() -> None:
    web, db, other = (a_log(HOUR, pool, both_pools()) for pool in ("web", "db", "shop"))

    assert len(web.entries) == len(db.entries) == 1 and not other.entries
    assert "web, db" in log_text(db, 200)
    assert (web.notes, db.notes) == (("disruptions moved 2 pods",), ("disruptions moved 1 pod",))


@pytest.mark.parametrize("why", [Ending.NODE_DELETED, Ending.SPOT])
def test_a_replacement_counts_the_same_in_another_pool_than_the_node_before_it(why: Ending) -> None:
    """Its pods run there from then on: what is launched there when it is lost would have found room on the old node."""

    def saved(pool: str) -> PoolSavings:
        move = a_move(0.0, "web-1", "m8", "new-2", reason="Underutilized", saved=0.2)
        lost = replace(an_end(HOUR, "new-2", pool=pool, reason=why), capacity_type=CAPACITY_SPOT)
        came = a_launch(0.0, "new-2", spot=True, pool=pool), a_launch(2 * HOUR, "new-3", pool=pool)
        return total(30 * DAY, move, an_end(0.0, "web-1", "m8"), *came, lost)

    assert saved("db") == saved("web")


def test_a_launch_that_brought_no_instance_ends_no_saving() -> None:
    refused = replace(a_launch(HOUR, "web-2"), outcome="no_capacity", instance_type="")

    assert round(total(10 * HOUR + 60, *gone(0.0, "web-1"), refused).saved, 6) == 2.0


def test_a_saving_counts_at_what_was_launched_and_not_at_what_was_promised() -> None:
    """The template of a static pool promises nothing; what was launched says what it costs."""
    same = a_move(0.0, "web-1", "m4", "web-2", reason="Drifted", saved=0.0)
    cheaper = [same, a_launch(60.0, "web-2", "m2"), an_end(0.0, "web-1")]
    alike = [same, a_launch(60.0, "web-2", "m4"), an_end(0.0, "web-1")]

    assert round(total(10 * HOUR + 60, *cheaper).saved, 6) == 1.0
    assert round(total(10 * HOUR + 60, *alike).saved, 6) == 0.0


def two_moves() -> list[Entry]:
    """From m8 to m4, and an hour later from m4 to m2."""
    first = a_move(0.0, "web-1", "m8", "web-2", reason="Underutilized", saved=0.2)
    second = a_move(HOUR, "web-2", "m4", "web-3", reason="Underutilized", saved=0.1)
    known = [first, an_end(0.0, "web-1", "m8"), a_launch(60.0, "web-2"), second, an_end(HOUR, "web-2")]
    return [*known, a_launch(HOUR + 60, "web-3", "m2")]


def test_a_saving_goes_on_while_moves_follow_one_another() -> None:
    assert round(total(11 * HOUR + 60, *two_moves()).saved, 6) == round(11 * 0.2 + 10 * 0.1, 6)


@pytest.mark.parametrize("reason", [Ending.BY_OTHERS, Ending.POOL_DELETED, ""])
def test_a_saving_ends_when_a_person_takes_its_node_away(reason: str) -> None:
    """The node before it would have gone as well."""
    lost = total(11 * HOUR + 60, *two_moves(), an_end(6 * HOUR, "web-3", "m2", instance_gone=6 * HOUR, reason=reason))

    assert round(lost.saved, 6) == round(11 * 0.2 + (5 - 1 / 60) * 0.1, 6)


def test_a_saving_is_counted_anew_when_the_cloud_takes_its_node_back() -> None:
    """The nodes before it would still stand, and what is launched for its pods would have found room there."""
    taken = an_end(6 * HOUR, "web-3", "m2", instance_gone=6 * HOUR, reason=Ending.SPOT)
    again = a_launch(6 * HOUR, "web-4")

    lost = total(11 * HOUR + 60, *two_moves(), taken)
    then = total(11 * HOUR + 60, *two_moves(), taken, again)
    twice = total(11 * HOUR + 60, *two_moves(), taken, again, replace(taken, claims=("web-4",), instance_type="m4"))

    rest = 5 + 1 / 60
    before = total(11 * HOUR + 60, *two_moves()).saved - rest * 0.3
    assert round(lost.saved, 6) == round(before + rest * 0.4, 6)
    assert round(then.saved, 6) == round(before + rest * 0.2, 6)
    assert round(twice.saved, 6) == round(before + rest * 0.4, 6)


def test_a_move_that_was_called_off_has_cost_what_was_launched_for_it() -> None:
    off = replace(a_move(0.0, "web-1", "m4", "web-2", reason="Underutilized", saved=0.1), outcome="cancelled")
    given_back = an_end(540.0, "web-2", "m2", reason=Ending.GIVEN_BACK)

    one = total(HOUR, off, a_launch(0.0, "web-2", "m2"), given_back)

    assert (one.undone, round(one.saved, 6)) == (1, round(-0.1 * 600 / HOUR, 6))


def test_a_saving_ends_when_the_old_node_would_have_expired() -> None:
    ended = an_end(0.0, "web-1", expires=3 * HOUR + 60)

    assert round(total(10 * HOUR, a_move(0.0, "web-1"), ended).saved, 6) == 0.6


def test_a_node_that_its_pods_left_for_others_is_set_against_those() -> None:
    """A replacement by hand promises nothing: its pods find their node as they leave."""
    asked = a_move(0.0, "web-1", reason="Requested", saved=0.0)

    one = total(10 * HOUR, asked, an_end(0.0, "web-1"), a_launch(60.0, "web-2"))

    assert (round(one.saved, 9), one.back) == (0.0, 0)


def test_the_bill_is_what_all_nodes_have_cost_in_that_time() -> None:
    standing = a_pair("n", "m8", "web").claim
    labels = {**standing.labels, INSTANCE_TYPE: "m8", ZONE: "z1", CAPACITY_TYPE: CAPACITY_ON_DEMAND}
    claim = replace(standing, labels=labels, conditions=(condition(LAUNCHED, 6 * HOUR),))
    nodes = replace(fleet(), claims={claim.name: claim})
    ended = an_end(4 * HOUR, "web-1", launched=2 * HOUR)
    never = an_end(5 * HOUR, "web-2", launched=None, instance_gone=None)

    one = found(10 * HOUR, ended, replace(never, ended=5 * HOUR), nodes=nodes)

    bill = 0.2 * (2 + 1 / 60) + 0.4 * 4
    assert one.total.bill == pytest.approx(bill)
    [day] = one.days
    assert (day.day, day.bill) == ("1970-01-01", one.total.bill)
    assert "BILL $" in savings_text(one) and f"{bill:.2f}" in savings_text(one)
    assert not [note for note in one.notes if "bill" in note]


@pytest.mark.parametrize("kind", ["", "m4"])
@pytest.mark.parametrize("outcome", ["no_capacity", "class_not_ready", "timed_out"])
def test_a_claim_that_never_got_an_instance_costs_nothing_and_is_no_node_that_the_bill_lacks(
    outcome: str, kind: str
) -> None:
    """Its termination looks once whether there is an instance after all, and may know a type from its template."""
    tried = replace(a_launch(HOUR, "web-1", ""), outcome=outcome)
    ended = an_end(HOUR + 40.0, "web-1", kind, launched=None)

    one = found(2 * HOUR, *gone(0.0, "web-2"), tried, ended)

    assert one.total.bill == pytest.approx(0.2 * 60 / HOUR)
    assert not [note for note in one.notes if "bill" in note]


def test_the_bill_of_a_time_has_nodes_that_left_after_it_and_that_had_begun_to_leave_before_it() -> None:
    after = an_end(20 * HOUR, "web-1", launched=HOUR)
    held = an_end(HOUR, "web-2", launched=0.0, instance_gone=8 * HOUR)
    outside = [an_end(20 * HOUR, "web-3", "gone-type", launched=12 * HOUR), an_end(0.0, "web-4", "gone-type")]
    record = Entries(entries=(), ends=joined([after, held, *outside]))

    one = savings_from("demo", Period(since=5 * HOUR, until=10 * HOUR), record, 30 * HOUR, fleet())

    assert one.total.bill == pytest.approx(0.2 * (5 + 3))
    assert not one.notes, "what did not live then is no node that the bill lacks"


@pytest.mark.parametrize(
    "end", [(), (replace(an_end(HOUR, "web-1", launched=None, instance_gone=None), outcome="gone"),)]
)
def test_a_node_whose_end_nobody_has_seen_is_one_that_the_bill_lacks(end: tuple[Entry, ...]) -> None:
    """A person has taken its finalizer off, or it left while Karpenter ran the cluster."""
    lost = found(10 * HOUR, a_launch(0.0, "web-1"), *end)
    under_way = found(10 * HOUR, replace(a_launch(0.0, "web-1"), ended=None, outcome="running"))
    never = found(10 * HOUR, replace(a_launch(0.0, "web-1", ""), outcome="deleting"))
    cut_short = found(10 * HOUR, an_end(HOUR, "web-1", instance_gone=None, outcome="failed: by hand"))

    assert lost.notes == cut_short.notes == ("the bill lacks 1 node whose type, price or end is not known",)
    assert under_way.notes == never.notes == ()


@pytest.mark.parametrize("stands", [True, False])
def test_a_node_that_fell_back_from_its_reservation_is_billed_from_then_on(stands: bool) -> None:
    """AWS-147. Its labels say on-demand since, and a reserved instance counts as nothing in catalogues."""
    claim = replace(a_pair("n", "m8", "web").claim, name="web-1", created=0.0, conditions=(condition(LAUNCHED, 0.0),))
    labels = {**claim.labels, ZONE: "z1", CAPACITY_TYPE: CAPACITY_ON_DEMAND}
    claim = replace(claim, labels=labels, annotations=with_memory({}, on_demand_since=6.0 * HOUR))
    ended = an_end(8 * HOUR, "web-1", "m8", launched=0.0, instance_gone=8 * HOUR, on_demand_since=6 * HOUR)

    one = found(10 * HOUR, nodes=replace(fleet(), claims={"web-1": claim})) if stands else found(10 * HOUR, ended)

    assert one.total.bill == pytest.approx(0.4 * (4 if stands else 2))


@pytest.mark.parametrize("stands", [True, False])
@pytest.mark.parametrize("as_replacement", [True, False])
def test_a_node_that_fell_back_from_its_reservation_is_set_against_what_was_saved_from_then_on(
    stands: bool, as_replacement: bool
) -> None:
    """As in the bill: it was launched for nothing, and has cost the price on demand since."""
    claim = replace(a_pair("n", "m4", "web").claim, name="web-2", created=60.0, conditions=(condition(LAUNCHED, 60.0),))
    labels = {**claim.labels, ZONE: "z1", CAPACITY_TYPE: CAPACITY_ON_DEMAND}
    claim = replace(claim, labels=labels, annotations=with_memory({}, on_demand_since=6.0 * HOUR))
    kind = a_type("m4", 4, 0.2)
    reserved = replace(kind, offerings=(*kind.offerings, an_offering("z1", CAPACITY_RESERVED, 1e-8)))
    nodes = replace(fleet(*[SimpleNamespace(claim=claim)] * stands), catalogues={"web": Catalogue(types=(reserved,))})
    came = replace(a_launch(60.0, "web-2"), capacity_type=CAPACITY_RESERVED)
    left = an_end(10 * HOUR, "web-2", launched=60.0, instance_gone=10 * HOUR, on_demand_since=6 * HOUR)
    move = a_move(0.0, "web-1", "m4", *["web-2"] * as_replacement)

    entries = (move, an_end(0.0, "web-1"), came, *[left] * (not stands))
    one = found(10 * HOUR, *entries, nodes=nodes)
    [logged, *_] = log_from(
        "demo", Wanted(period=Period(since=0.0)), Entries(entries=entries), 10 * HOUR, nodes
    ).entries

    assert one.total.bill == pytest.approx(0.2 * (1 / 60 + 4))
    assert one.total.saved == pytest.approx(0.2 * (10 - 1 / 60) - 0.2 * 4)
    assert logged.saved_dollars == pytest.approx(one.total.saved)


def test_a_node_whose_termination_was_ended_by_a_person_is_billed_while_its_claim_is_there() -> None:
    claim = replace(a_pair("n", "m8", "web").claim, name="web-1", created=0.0, conditions=(condition(LAUNCHED, 0.0),))
    claim = replace(claim, labels={**claim.labels, ZONE: "z1", CAPACITY_TYPE: CAPACITY_ON_DEMAND})
    broken = an_end(HOUR, "web-1", "m8", launched=0.0, instance_gone=None, outcome="failed: by hand")

    one = found(10 * HOUR, broken, nodes=replace(fleet(), claims={"web-1": claim}))

    assert one.total.bill == pytest.approx(4.0) and not one.notes


def test_a_bill_without_prices_says_so() -> None:
    without = savings_from("demo", Period(since=0.0), Entries(entries=gone(0.0, "web-1")), HOUR)
    unknown = found(HOUR, replace(an_end(0.0, "web-1"), instance_type="gone-type"))

    assert without.total.bill is None and "–" in savings_text(without)
    assert any("prices of now are not known" in note for note in without.notes)
    assert unknown.notes == ("the bill lacks 1 node whose type, price or end is not known",)


def test_days_add_up_to_the_whole() -> None:
    one = found(3 * DAY, *gone(0.9 * DAY, "web-1"), a_launch(2.5 * DAY, "web-2"), an_end(2.8 * DAY, "web-9", "m8"))

    assert sum(day.saved for day in one.days) == pytest.approx(one.total.saved)
    assert sum(day.bill or 0.0 for day in one.days) == pytest.approx(one.total.bill)
    assert len(one.days) == 3


def test_each_move_of_the_log_has_its_share_of_the_same_sum() -> None:
    entries = joined([*gone(0.0, "web-1"), *gone(600.0, "web-2"), a_launch(HOUR, "web-3")])
    record, period = Entries(entries=entries), Period(since=0.0)

    log = log_from("demo", Wanted(period=period), record, 9 * HOUR, fleet())

    dollars = [entry.saved_dollars for entry in log.entries if entry.saved_dollars is not None]
    assert len(dollars) == 2 and dollars[1] < dollars[0], "the youngest move is what was bought again"
    assert sum(dollars) == pytest.approx(total(9 * HOUR, *entries).saved)


async def test_the_metrics_are_the_answer_s_own_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    last_day, asked = LastDay(), list[Asked]()

    async def savings(_: Any, question: Asked) -> Answered:
        asked.append(question)
        moves = (a_move(0.0, "web-1"), a_launch(5 * HOUR + 60, "web-2"))
        answer = found(10 * HOUR + 60, *moves)
        return Answered("Savings", "demo", answer)

    monkeypatch.setattr(table, "question", lambda _: savings)
    source: Any = None

    await duties.say_savings(source, last_day)

    assert [question.word("since") for question in asked] == [SAVINGS_PERIOD], "of which `top` shows the dollars"
    said = {(each.name.removeprefix("last_day_"), each.labels): each.value for each in last_day.samples()}
    web = (("nodepool", "web"),)
    assert said == {
        ("saved_dollars", web): pytest.approx(1.0),
        ("bill_dollars", web): 0.0,
        ("moves", web): 1,
        ("moves_back", web): 1,
        ("namespace_saved_dollars", (("namespace", ""), ("whose", "nobody"))): pytest.approx(1.0),
    }


@pytest.mark.slow
async def test_ninety_days_are_counted_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty moves a day, each of them undone by a launch twelve hours later. How long that takes is printed."""
    archive, entries = Archive(FolderObjects(tmp_path), "demo"), list[Entry]()
    for hour in range(90 * 24):
        names = [f"web-{hour}-{number}" for number in range(2)]
        ended = [each for name in names for each in gone(hour * HOUR, name)]
        ended += [a_launch(hour * HOUR, f"new-{name}") for name in names] if hour % 24 >= 12 else []
        await archive.put(hour * 3600, ended)
        entries += ended
    began = time.thread_time()

    read = await archive.read(range(0, 90 * 24 * 3600, 3600))
    at = time.thread_time()
    answer = savings_from("demo", Period(since=0.0), read, 90 * DAY, fleet())

    counted = time.thread_time() - at
    with capsys.disabled():
        print(f"\n{len(entries)} entries: read in {at - began:.2f} s, counted in {counted:.2f} s", flush=True)
    assert (answer.total.moves, answer.total.back, len(answer.days)) == (90 * 48, 90 * 24, 90)

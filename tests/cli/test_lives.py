"""A name that one claim has after another, as numbers of static pools: each node is counted for itself."""

from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.kept import read_entries
from dovetail.answers.record.lives import distinct, joined
from dovetail.answers.record.log import Wanted, log_from
from dovetail.answers.record.trend import Trend
from dovetail.model.names import CAPACITY_ON_DEMAND, CAPACITY_TYPE, INSTANCE_TYPE, LAUNCHED, ZONE
from dovetail.model.nodes import NodeClaim
from dovetail.model.reasons.endings import Ending
from dovetail.model.snapshot import Snapshot
from tests.cli.test_ledger import HOUR, a_launch, a_move, an_end, fleet, found
from tests.cli.test_record_fields import Recorded
from worlds.disruption import a_pair, condition

DAY: Final = 24 * HOUR
APART: Final = [("s-0", "s-0", "s-0"), ("s-0", "s-1", "s-2")]


def with_uids(*entries: Entry) -> tuple[Entry, ...]:
    """As histories have them now: the UID of each launch and of the next end of its name."""
    uids: dict[str, str] = {}
    told = []
    for entry in sorted(entries, key=lambda each: each.began):
        if entry.kind == "launch":
            uids[entry.claims[0]] = f"uid-{entry.began:g}"
        told.append(entry if entry.kind == "disruption" else replace(entry, uid=uids[entry.claims[0]]))
    return tuple(told)


def three(first: str, second: str, third: str) -> tuple[Entry, ...]:
    """Three nodes after one another; the third stands."""
    return (
        a_launch(0.0, first),
        an_end(4 * DAY - 60, first, launched=0.0, instance_gone=4 * DAY),
        a_launch(4 * DAY, second),
        an_end(8 * DAY - 60, second, launched=4 * DAY, instance_gone=8 * DAY),
        a_launch(8 * DAY, third),
    )


def standing(name: str, since: float, uid: str) -> NodeClaim:
    claim = a_pair("n", "m4", "web").claim
    labels = {**claim.labels, INSTANCE_TYPE: "m4", ZONE: "z1", CAPACITY_TYPE: CAPACITY_ON_DEMAND}
    conditions = (condition(LAUNCHED, since),)
    return replace(claim, name=name, uid=uid, labels=labels, created=since, conditions=conditions)


def with_claim(claim: NodeClaim) -> Snapshot:
    return replace(fleet(), claims={claim.name: claim})


@pytest.mark.parametrize("names", APART)
@pytest.mark.parametrize("known", [True, False])
def test_the_bill_has_each_node_of_a_name(names: tuple[str, str, str], known: bool) -> None:
    entries = with_uids(*three(*names)) if known else three(*names)
    claim = standing(names[2], 8 * DAY, entries[4].uid or "any")

    one = found(10 * DAY, *entries, nodes=with_claim(claim))

    assert one.total.bill == pytest.approx(10 * 24 * 0.2)
    assert not one.notes


@pytest.mark.parametrize("again", ["s-0", "s-9"])
@pytest.mark.parametrize("known", [True, False])
def test_a_saving_lasts_where_another_node_gets_the_name_of_what_was_taken(again: str, known: bool) -> None:
    move = a_move(5 * DAY, "s-0", "m4", "s-1", reason="Drifted", saved=0.1)
    entries = (
        a_launch(0.0, "s-0"),
        move,
        a_launch(5 * DAY, "s-1", "m2"),
        an_end(5 * DAY + 30, "s-0", launched=0.0),
        an_end(15 * DAY, "s-1", "m2", launched=5 * DAY, reason=Ending.SPOT),
        a_launch(15 * DAY + 60, again, "m2"),
        an_end(23 * DAY, again, "m2", launched=15 * DAY + 60, reason=Ending.SPOT),
    )
    told = with_uids(*entries) if known else entries

    one = found(25 * DAY, *told)
    other = found(25 * DAY, *[replace(e, claims=("s-9",)) if e in told[5:] else e for e in told])

    assert one.total.saved == pytest.approx(other.total.saved) and one.total.saved > 0
    assert one.total.bill == pytest.approx(other.total.bill)


@pytest.mark.parametrize("known", [True, False])
def test_the_log_puts_an_end_and_a_launch_under_the_move_of_their_own_node(known: bool) -> None:
    entries = (
        a_launch(0.0, "s-0"),
        a_move(DAY, "s-0", "m4", "s-1", reason="Drifted"),
        a_launch(DAY + 1, "s-1"),
        an_end(DAY + 30, "s-0"),
        a_launch(2 * DAY, "s-0"),
        an_end(3 * DAY, "s-0", launched=2 * DAY, reason=Ending.NODE_DELETED),
        an_end(3 * DAY, "s-1", launched=DAY),
        a_launch(3 * DAY + 60, "s-1"),
    )
    record = Entries(entries=joined(with_uids(*entries) if known else entries))

    log = log_from("demo", Wanted(period=Period(since=0.0)), record, 4 * DAY, fleet())

    under = [(e.kind, e.claims[0], e.began) for e in log.entries if e.disruption]
    assert under == [("launch", "s-1", DAY + 1), ("termination", "s-0", DAY + 30)]


def test_a_move_that_was_called_off_has_not_cost_what_the_name_was_given_to_later() -> None:
    off = replace(a_move(DAY, "s-0", "m4", "s-1", reason="Drifted"), outcome="cancelled")
    before = (a_launch(0.0, "s-1"), an_end(DAY / 2, "s-1", launched=0.0))
    later = (a_launch(3 * DAY, "s-1"), an_end(4 * DAY, "s-1", launched=3 * DAY))

    for entries in ((*before, off, *later), (off, *later), (off, later[1])):
        assert found(5 * DAY, *entries).total.saved == 0.0
        assert not any(entry.disruption for entry in joined(entries))


def test_what_follows_an_end_that_nobody_has_written_is_another_node_by_its_uid() -> None:
    """A person has taken the finalizer off."""
    one, two = (replace(a_launch(at, "s-0"), uid=f"u{at:g}") for at in (0.0, DAY))

    assert [e.claims for e in distinct([one, two])] == [("s-0/1",), ("s-0",)]
    assert distinct([one, replace(two, uid=one.uid)])[0] is one, "the same launch, begun anew"


def test_the_last_day_of_prices_has_each_node_of_a_name() -> None:
    past, entries = Trend(), three("s-0", "s-0", "s-0")
    now = replace(with_claim(standing("s-0", 8 * DAY, "any")), now=8 * DAY + HOUR)

    past.fill(Entries(entries=joined(entries)), now)

    assert {point.nodes for point in past.answer(now.now).points} == {1}


async def test_histories_say_which_claim_a_launch_and_an_end_are_of() -> None:
    client: Any = Recorded()

    entries = (await read_entries(client, "demo", Period(since=0.0))).entries

    owners = [entry for entry in entries if entry.kind != "disruption"]
    assert owners and all(entry.uid for entry in owners)

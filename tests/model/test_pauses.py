"""What the annotations of a pause mean, those that somebody has spoilt included."""

import pytest

from dovetail.model import names
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.snapshot import Snapshot
from dovetail.rules.pause.pauses import (
    EVERYTHING,
    VOLUNTARY,
    annotations_of,
    joined,
    next_end,
    pause_in,
    pause_on,
    pauses,
    without,
    without_pauses,
)
from tests.lifecycle.objects import a_new_pool

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z
LATER = "2023-11-14T23:13:20Z"
EARLIER = "2023-11-14T21:13:20Z"


def read(**annotations: str) -> Pause | None:
    keys = {"paused": names.PAUSED, "until": names.PAUSED_UNTIL, "by": names.PAUSED_BY, "reason": names.PAUSED_REASON}
    return pause_in({keys[key]: text for key, text in annotations.items()}, "", NOW)


def a_paused_cluster(general: str | None = None, until: str | None = None, **pools: str) -> Snapshot:
    texts = {names.PAUSED: general, names.PAUSED_UNTIL: until}
    annotations = {key: text for key, text in texts.items() if text is not None}
    return Snapshot(
        now=NOW,
        namespaces={"kube-system": Namespace(name="kube-system", annotations=annotations)},
        pools={name: a_new_pool(name, annotations={names.PAUSED: text}) for name, text in pools.items()},
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", VOLUNTARY),
        ("true", VOLUNTARY),
        ("disruption", {Activity.DISRUPTION}),
        ("expiry, launches", {Activity.EXPIRY, Activity.LAUNCHES}),
        ("ALL", EVERYTHING),
        ("all,drains", EVERYTHING | {Activity.DRAINS}),
    ],
)
def test_the_words_name_what_is_paused(text: str, what: set[Activity]) -> None:
    found = read(paused=text)

    assert found is not None
    assert (found.what, found.faults) == (frozenset(what), ())


@pytest.mark.parametrize("text", ["everythng", "launches,disruptions", "no", "falsch", ",", "\x00", "2h"])
def test_a_word_that_is_not_known_holds_everything_voluntary_and_is_named(text: str) -> None:
    found = read(paused=text)

    assert found is not None and found.what >= VOLUNTARY
    assert all(fault.startswith("dovetail.sh/paused: ") for fault in found.faults) and found.faults


@pytest.mark.parametrize("until", ["2h", "tomorrow", "", "2023-11-14", "1700000000", "2023-11-14T21:13:20"])
def test_an_end_that_cannot_be_read_is_no_end_and_is_named(until: str) -> None:
    found = read(paused="all", until=until)

    assert found is not None and found.until is None
    assert found.faults == (
        f"dovetail.sh/paused-until: {until!r} is no time like 2030-01-31T12:00:00Z: the pause has no end",
    )


def test_a_pause_ends_by_itself() -> None:
    assert read(paused="all", until=EARLIER) is None
    assert read(paused="all", until=LATER) is not None
    assert read(until=LATER) is None
    assert read(paused="false", until=LATER) is None


def test_it_says_until_when_by_whom_and_why() -> None:
    named, unnamed = read(paused="", until=LATER, by="alice", reason="a move"), read(paused="")

    assert named is not None and unnamed is not None
    assert named.says == f"until {LATER}, by alice: a move"
    assert unnamed.says == "until it is resumed, by somebody who left no name: no reason given"


def test_a_pool_is_held_by_its_own_pause_or_by_that_for_all() -> None:
    cluster = a_paused_cluster("expiry", mine="disruption", other="launches")

    def where(pool: str, activity: Activity) -> str | None:
        found = pause_on(cluster, pool, activity)
        return found.where if found is not None else None

    assert where("mine", Activity.DISRUPTION) == "NodePool mine"
    assert where("other", Activity.DISRUPTION) is None
    assert {where(pool, Activity.EXPIRY) for pool in ("mine", "other", "unknown")} == {"all NodePools"}
    assert [pause.pool for pause in pauses(cluster)] == ["", "mine", "other"]
    assert pauses(without_pauses(cluster)) == ()


def test_the_first_end_is_known() -> None:
    assert next_end(a_paused_cluster("all", LATER, mine="expiry")) == NOW + 3600.0
    assert next_end(a_paused_cluster(mine="expiry")) is None


def test_who_pauses_one_thing_more_resumes_nothing() -> None:
    first = Pause(pool="", what=VOLUNTARY, until=NOW + 60.0, by="alice", reason="one")
    second = Pause(pool="", what=frozenset({Activity.LAUNCHES}), until=NOW + 30.0, by="bob", reason="two")

    both = joined(first, second)

    assert (both.what, both.until, both.by, both.reason) == (EVERYTHING, NOW + 60.0, "bob", "two")
    assert joined(first, Pause(pool="", what=VOLUNTARY)).until is None
    left = without(both, VOLUNTARY)
    assert left is not None and left.what == {Activity.LAUNCHES}
    assert without(both, EVERYTHING) is None


def test_what_is_written_is_read_again() -> None:
    pause = Pause(pool="", what=EVERYTHING, until=NOW + 60.0, by="alice", reason="a move")
    written = {key: text for key, text in annotations_of(pause).items() if text is not None}

    assert pause_in(written, "", NOW) == pause
    assert set(annotations_of(None)) == set(written) and set(annotations_of(None).values()) == {None}


def test_what_an_annotation_holds_too_much_of_is_cut() -> None:
    found = read(paused="x" * 200_000, until="y" * 200_000, by="z" * 200_000, reason="r" * 200_000)

    assert found is not None and found.what == VOLUNTARY
    assert len(found.says) + sum(map(len, found.faults)) < 2000

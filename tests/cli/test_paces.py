"""How long nodes take: learnt from the record, and what a forecast makes of it."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.change.basis import basis_of
from dovetail.answers.change.documents import called, documents_of, text_of
from dovetail.answers.change.planned import change_on
from dovetail.answers.change.text import change_text
from dovetail.answers.record.entries import Entry
from dovetail.answers.record.paces import MOST_COUNTED, paces_of
from dovetail.disruption.outlook.paces import COME_SECONDS, EVERY, FIRST_SECONDS, GO_SECONDS, Pace, Paces
from dovetail.model.values.time import parse_time
from tests.cli.test_explain_node import a_bound_pod, a_managed_node
from tests.cli.test_planned_changes import DAY, STILL, a_file, hashed, labelled
from tests.cli.worlds import a_ready_pool, a_world, settings_of

MOVE = Entry(
    kind="disruption",
    workflow="demo/disrupt/1",
    run="r",
    began=0.0,
    ended=30.0,
    outcome="done",
    pool="web",
    claims=("web-1",),
    replacements=("web-2",),
)


def took(seconds: float, began: float = 0.0, **other: Any) -> Entry:
    return replace(MOVE, began=began, ended=began + seconds, **other)


def test_a_pool_goes_by_the_median_of_its_own_moves() -> None:
    slow = [took(100.0, pool="db"), took(400.0, outcome="cancelled"), took(500.0, kind="launch", outcome="deleted")]

    paces = paces_of([took(20.0), took(90.0), took(30.0), *slow, replace(MOVE, ended=None, outcome="running")])

    assert paces.of("web", replaced=True) == Pace(seconds=30.0, source="record", count=3)
    assert paces.of("db", replaced=True).seconds == 100.0


def test_a_move_of_two_pools_nodes_says_how_long_either_takes() -> None:
    both = took(40.0, claims=("web-1", "db-1"), pools=("web", "db"))

    assert [paces_of([both]).of(pool, replaced=True).seconds for pool in ("web", "db")] == [40.0, 40.0]
    assert paces_of([both]).of("db", replaced=True).count == 1


def test_what_was_slow_long_ago_is_forgotten() -> None:
    old = [took(900.0, began=float(number)) for number in range(30)]
    new = [took(40.0, began=1000.0 + number) for number in range(MOST_COUNTED)]

    assert paces_of([*old, *new]).of("web", replaced=True) == Pace(seconds=40.0, source="record", count=MOST_COUNTED)


def test_a_pool_that_has_not_moved_goes_by_the_parts_of_a_move() -> None:
    launch = took(50.0, kind="launch", outcome="initialised", replacements=())
    ended = took(12.0, kind="termination", outcome="terminated", replacements=())

    paces = paces_of([launch, ended])

    assert paces.of("web", replaced=True) == Pace(seconds=62.0, source="record", count=1)
    assert paces.of("web", replaced=False) == Pace(seconds=12.0, source="record", count=1)
    assert paces.of("new", replaced=True).seconds == 62.0, "another pool's, before a constant"


def test_nodes_that_stand_say_how_long_one_takes_to_come_and_nothing_is_left_to_the_constants() -> None:
    stand = Paces(joins={"web": (44.0, 46.0), EVERY: (44.0, 46.0)})

    assert stand.of("web", replaced=True) == Pace(seconds=45.0 + GO_SECONDS, source="nothing")
    assert replace(stand, ends={EVERY: (10.0,)}).of("web", replaced=True) == Pace(seconds=55.0, source="nodes", count=2)
    assert Paces().of("web", replaced=True) == Pace(seconds=COME_SECONDS + GO_SECONDS, source="nothing")


def test_a_node_that_only_shuts_down_is_counted_by_no_budget() -> None:
    ended = took(40.0, kind="termination", outcome="terminated", replacements=(), drained=10.0)

    paces = paces_of([took(90.0), ended])

    assert paces.of("web", replaced=True) == Pace(seconds=90.0, ending=30.0, source="record", count=1)


async def test_pools_do_not_wait_for_one_another(tmp_path: Path) -> None:
    pools = [hashed(a_ready_pool(name, disruption={**STILL, "budgets": [{"nodes": "1"}]})) for name in ("web", "db")]
    bodies = list(pools)
    for number in range(4):
        pool = pools[number % 2]
        claim, node = a_managed_node(f"n{number}", pool["metadata"]["name"])
        claim["metadata"]["annotations"] = pool["metadata"]["annotations"]
        pod = a_bound_pod(f"pod-{number}", f"n{number}", f"app-{number}")
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
        bodies += [claim, node, pod]
    world = a_world(tmp_path, *bodies)
    given = [copy.deepcopy(pool) for pool in pools]
    for each in given:
        del each["status"], each["metadata"]["annotations"]
    paces = Paces(moves={"web": (30.0,), "db": (200.0,)}, endings={"db": (40.0,)})

    async with basis_of(settings_of(world), None) as basis:
        file = a_file(tmp_path, *map(labelled, given))
        documents = documents_of(text_of(file), called(file), basis.look.snapshot.supported_node_classes)
        answer = await change_on(replace(basis, paces=paces), documents, DAY)

    at = parse_time(answer.at)
    begins = {number + 1: parse_time(wave.begins) - at for number, wave in enumerate(answer.waves)}
    by_pool = {
        pool: sorted(begins[n.wave] for n in answer.nodes if n.pool == pool and n.wave) for pool in ("web", "db")
    }
    assert by_pool["web"] == pytest.approx([FIRST_SECONDS, FIRST_SECONDS + 30.0], abs=1.0)
    assert by_pool["db"] == pytest.approx([FIRST_SECONDS, FIRST_SECONDS + 160.0], abs=1.0)
    assert not answer.left_behind
    text = change_text(answer)
    assert "NodePool db: about 3m20s for a node and its replacement (as the last one did)" in text
    assert "(6m2s in all)" in text

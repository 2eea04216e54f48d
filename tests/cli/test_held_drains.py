"""What `status`, `explain node` and metrics say of a drain that is held: by what, since when, and what comes next."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from dovetail.answers.look.holds import held_text, hook_words, hooks_text
from dovetail.answers.status.answer import Need
from dovetail.answers.status.fleet_facts import FleetFacts
from dovetail.answers.status.moves import moves
from dovetail.answers.status.needs import needs_of
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.drain_rules import Blocker, DrainRules, Escalation, HookRules, Level
from dovetail.model.own.policies import Policy
from dovetail.model.pods import Toleration
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.notices.holds import drain_asks
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.ours.holds import HELP, hold_samples
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_pool, a_world, condition
from worlds.holds import forced_by, held
from worlds.time_rules import with_rules

LADDER = DrainRules(
    escalation=(
        Escalation(after=900.0, do=Level.NOTIFY),
        Escalation(after=4.0 * HOUR, do=Level.ASK),
        Escalation(after=24.0 * HOUR, do=Level.FORCE),
    )
)
POLICY = Policy(name="p", drain=LADDER)
NONE_OVERDUE = 'dovetail_drift_overdue_nodes{nodepool="a"} 0'
NOTHING: Mapping[str, str] = {}
PDB, ASKED = Blocker.PDB_BLOCKS, (Level.NOTIFY, Level.ASK)
MESH = {f"{names.PRE_DRAIN_HOOK}mesh": "mesh-team"}


def a_held(
    hours: float,
    blocker: Blocker = Blocker.PDB_BLOCKS,
    levels: Iterable[Level] = (),
    annotations: Mapping[str, str] = NOTHING,
    **more: Any,
) -> Snapshot:
    """One node that leaves, whose drain has been held for so long."""
    annotations = {**held(NOW - hours * HOUR, blocker, *levels, **more), **annotations}
    mark = replace(condition(names.DISRUPTION_REASON), reason="Drifted", changed=NOW - 30 * HOUR)
    fields: dict[str, Any] = {"annotations": annotations, "deleting_since": NOW - 29 * HOUR}
    pair = a_pair("n", also=(mark,), claim=fields)
    return with_rules(a_world([pair], pools=[a_pool("a")]), POLICY)


def claim(snapshot: Snapshot) -> NodeClaim:
    return snapshot.claims["claim-n"]


def at(hours: float) -> str:
    return format_time(NOW + hours * HOUR)


@pytest.mark.parametrize(
    ("snapshot", "says"),
    [
        (a_held(1), f"held by a PDB since {at(-1)}; next: Notify at {at(-0.75)}"),
        (a_held(1, levels=ASKED[:1]), f"held by a PDB since {at(-1)}; next: Ask at {at(3)}"),
        (
            a_held(5, levels=ASKED),
            f"held by a PDB since {at(-5)}, and waits for `dovetail decide`; next: Force at {at(19)}",
        ),
        (a_held(25, levels=Level), f"held by a PDB since {at(-25)}"),
        (a_held(50), ""),  # of an earlier departure
    ],
)
def test_it_is_said_by_what_since_when_and_what_comes_next(snapshot: Snapshot, says: str) -> None:
    """TRM-48."""
    assert held_text(snapshot, claim(snapshot), ()) == says


def test_a_forced_drain_says_by_when_its_pods_leave_and_what_is_waited_for_still() -> None:
    """TRM-49."""
    snapshot = a_held(25, levels=Level, forced=forced_by(NOW + HOUR, PDB, Blocker.HOOK_WAITS))

    words = (
        f"forced: all pods will be deleted by {at(1)}, each with its own grace period; attached volumes are waited for"
    )
    assert words in held_text(snapshot, claim(snapshot), ())


def test_no_force_is_promised_where_a_pod_asks_not_to_be_disrupted() -> None:
    """TRM-49."""
    snapshot = a_held(5, levels=ASKED)

    assert "Force" not in held_text(snapshot, claim(snapshot), [a_pod("p", "n", do_not_disrupt="true")])


def test_a_force_is_promised_where_only_a_pod_that_stays_asks_not_to_be_disrupted() -> None:
    """TRM-49. The drain does not wait for one that tolerates its taint, so the ladder forces it all the same."""
    snapshot, staying = a_held(5, levels=ASKED), a_pod("p", "n", do_not_disrupt="true")
    staying = replace(staying, shape=replace(staying.shape, tolerations=(Toleration(operator="Exists"),)))

    assert f"next: Force at {at(19)}" in held_text(snapshot, claim(snapshot), [staying])


def test_nobody_is_asked_about_a_node_whose_instance_ends() -> None:
    """TRM-50. Others may hold its Node for days after that, and `dovetail decide` comes too late."""
    snapshot = a_held(5, levels=ASKED)
    ends = replace(claim(snapshot), conditions=(*claim(snapshot).conditions, condition(names.INSTANCE_TERMINATING)))
    snapshot = replace(snapshot, claims={ends.name: ends})

    assert (the_needs(snapshot), held_text(snapshot, ends, ())) == ([], "")


def test_a_hook_is_named_with_its_owner_and_what_becomes_of_it() -> None:
    """TRM-47."""
    snapshot = a_held(0.5, Blocker.HOOK_WAITS, annotations=MESH)
    snapshot = with_rules(snapshot, replace(POLICY, drain=DrainRules(hooks=HookRules(timeout=1800.0, proceeds=True))))

    assert hook_words(claim(snapshot), "drain") == ("hook mesh (mesh-team)",)
    [(by, detail)] = hooks_text(snapshot, claim(snapshot))
    assert by == "hook mesh (mesh-team)"
    assert detail == "holds the first eviction until its owner takes it off; after 30m the node goes on without it"
    assert held_text(snapshot, claim(snapshot), ()).endswith("(hook mesh (mesh-team))")


def the_needs(snapshot: Snapshot) -> list[Need]:
    facts = FleetFacts.of(snapshot, closer=frozenset({"n"}))
    return [need for need in needs_of(facts, moves(facts, ())) if need.about == "n"]


def test_a_drain_that_asks_needs_a_person_and_names_the_command() -> None:
    """TRM-50. Once: what asks is not listed as a drain that takes long as well."""
    snapshot = a_held(5, levels=ASKED)

    [need] = the_needs(snapshot)
    assert need.what.startswith("drain held by a PDB since")
    assert need.command == "dovetail decide n wait 6h", "pasted, it forces nothing"
    assert need.since == NOW - 5 * HOUR


@pytest.mark.parametrize(("deleted", "answers"), [(None, "wait, force or cancel"), (NOW - HOUR, "wait or force")])
def test_a_cancel_is_offered_only_while_it_does_not_come_too_late(deleted: float | None, answers: str) -> None:
    """TRM-50."""
    snapshot = a_held(5, levels=ASKED)
    leaving = replace(claim(snapshot), deleting_since=deleted)

    [need] = the_needs(replace(snapshot, claims={leaving.name: leaving}))
    [said] = drain_asks([snapshot.nodes["n"]], leaving, "held")

    assert need.what.endswith(f"; say {answers}")
    assert said.message == f"Its drain is held: say {answers}, as in `dovetail decide {leaving.name} wait 6h`"


def test_a_drain_that_a_person_has_asked_to_wait_for_asks_nobody() -> None:
    """TRM-50."""
    assert the_needs(a_held(5, levels=ASKED, waits_until=NOW + HOUR)) == []


@pytest.mark.parametrize(
    ("more", "needed"),
    [
        ({}, True),
        ({"annotations": {names.TERMINATION_DEADLINE: at(-1)}}, False),
        ({"forced": forced_by(NOW + HOUR, PDB)}, False),
        ({"forced": forced_by(NOW - HOUR, PDB)}, True),
    ],
)
def test_a_drain_that_no_deadline_ends_any_more_needs_a_person(more: Mapping[str, Any], needed: bool) -> None:
    """TRM-49. A force is over when its pods have gone; a hook or a volume may hold the node after that."""
    facts = FleetFacts.of(a_held(25, **more), closer=frozenset({"n"}))
    under_way = tuple(replace(move, blockers=("hook backup",)) for move in moves(facts, ()))

    assert bool([need for need in needs_of(facts, under_way) if need.about == "n"]) is needed


def test_a_hook_that_holds_a_drain_for_long_needs_a_person_without_any_policy() -> None:
    """TRM-47."""
    snapshot = with_rules(a_held(5, Blocker.HOOK_WAITS, annotations=MESH))

    [need] = the_needs(snapshot)
    assert "hook mesh (mesh-team)" in need.what


def lines(snapshot: Snapshot) -> set[str]:
    return {line for line in measured(hold_samples(snapshot), HELP, "dovetail_") if not line.startswith("#")}


def test_what_is_held_and_what_asks_is_measured() -> None:
    """TRM-50."""
    assert lines(a_held(1)) == {
        'dovetail_drain_held_seconds{blocker="PdbBlocks"} 3600',
        'dovetail_drains_asking{nodepool="a"} 0',
        NONE_OVERDUE,
    }
    assert 'dovetail_drains_asking{nodepool="a"} 1' in lines(a_held(5, levels=ASKED))
    assert lines(a_held(50)) == {NONE_OVERDUE}

"""How far a force reaches: by when pods leave, with which grace, and what it was meant for."""

from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.own.drain_rules import Blocker, DrainRules, Escalation, Level
from dovetail.model.own.held_drains import Forced
from dovetail.model.values.time import format_time
from dovetail.termination.deadline import deadline_of
from dovetail.termination.evictions import SYSTEM_PRIORITY, plan_evictions
from dovetail.termination.forced import deadline_of_hooks, deadline_of_volumes, forced_of, with_forced
from dovetail.termination.ladder import DrainHold, forced_deadline, forced_through
from tests.lifecycle.objects import a_web_pod
from worlds.disruption import a_claim
from worlds.holds import held

NOW = 1_700_000_000.0
PDB, HOOK, VOLUMES = Blocker.PDB_BLOCKS, Blocker.HOOK_WAITS, Blocker.VOLUMES_ATTACHED


def a_leaving_claim(**annotations: str) -> NodeClaim:
    return a_claim(deleting_since=NOW, annotations=annotations)


def forced(claim: NodeClaim, more: Forced) -> NodeClaim:
    return replace(claim, annotations=with_memory(claim.annotations, held=with_forced(claim, more)))


def test_the_deadline_gives_each_pod_that_is_left_its_own_grace() -> None:
    """TRM-49. One that ends already has what is left of it, and none that is known has no more than now."""
    pods = (
        a_web_pod("a"),
        a_web_pod("b", grace_seconds=600),
        a_web_pod("c", deleting_since=NOW + 900.0, grace_seconds=7200),
    )

    assert [forced_deadline(pods[:count], NOW) - NOW for count in range(4)] == [0.0, 30.0, 600.0, 900.0]
    assert forced_deadline((a_web_pod(grace_seconds=None),), NOW) == NOW + 30.0
    assert forced_deadline((a_web_pod(grace_seconds=2**63 - 1),), NOW) == NOW + 3600.0, "nothing is put off for longer"


def test_forced_pods_leave_by_tiers_in_time_for_their_grace_and_one_that_ends_is_left_alone() -> None:
    """TRM-49. Whatever their annotations; the node's deadline alone takes grace."""
    pods = (
        a_web_pod("critical", priority=SYSTEM_PRIORITY),
        a_web_pod("db", grace_seconds=600, do_not_disrupt="true"),
        a_web_pod("web"),
        a_web_pod("ends", deleting_since=NOW + 9e9),
    )

    found = plan_evictions(pods, None, NOW + 1.0, NOW + 600.0)
    assert ([p.name for p in found.let_go], found.evict, found.protected, found.force) == (["db", "web"], (), (), ())
    for late, names_of in ((570.0, ["db", "web"]), (570.5, ["critical", "db", "web"])):
        assert sorted(p.name for p in plan_evictions(pods, None, NOW + late, NOW + 600.0).let_go) == names_of

    both = plan_evictions(pods, NOW + 300.0, NOW + 1.0, NOW + 600.0)
    assert ({p.name for p in both.force}, [p.name for p in both.let_go]) == ({"db", "ends"}, ["web"])


def test_a_pod_that_cannot_be_judged_leaves_a_forced_drain_after_its_deadline() -> None:
    """TRM-49."""
    odd = a_web_pod("odd", do_not_disrupt=7)

    assert [bool(plan_evictions((odd,), None, now, NOW).let_go) for now in (NOW, NOW + 1.0)] == [False, True]


@pytest.mark.parametrize(
    ("blockers", "there", "meant"),
    [
        ([{PDB}], {PDB}, {PDB}),
        ([{PDB, HOOK}], {PDB}, {PDB, HOOK}),
        ([set()], {PDB}, {PDB}),
        ([set()], {HOOK}, set()),
        ([{HOOK}], {HOOK}, {HOOK}),
        ([set()], {VOLUMES}, set()),
        ([{PDB, HOOK}, {PDB, VOLUMES}], {PDB}, {PDB}),
        ([{PDB, HOOK}, set()], {PDB}, {PDB}),
        ([{PDB}, {HOOK}], {PDB}, set()),
    ],
)
def test_it_is_meant_for_what_all_policies_name_or_for_what_holds_the_drain(
    blockers: list[set[Blocker]], there: set[Blocker], meant: set[Blocker]
) -> None:
    """TRM-49."""
    rules = [
        DrainRules(escalation=(Escalation(after=60.0, do=Level.FORCE, blockers=frozenset(each)),)) for each in blockers
    ]

    assert forced_through(rules, DrainHold(blockers=frozenset(there), reason="Drifted")) == meant


def test_what_was_meant_stays_and_so_does_the_earlier_deadline() -> None:
    """TRM-49."""
    first = Forced(deadline=NOW + 600.0, through=frozenset({PDB}))
    claim = forced(a_leaving_claim(), first)
    assert forced_of(claim) == first

    second = forced(claim, Forced(deadline=NOW + 900.0, through=frozenset({HOOK})))
    assert forced_of(second) == Forced(deadline=NOW + 600.0, through=frozenset({PDB, HOOK}))
    for kind in (names.PRE_DRAIN_HOOK, names.PRE_TERMINATE_HOOK):
        assert deadline_of_hooks(second, kind, None) == NOW + 600.0
    assert deadline_of_volumes(second, None) is None
    assert deadline_of_hooks(second, names.PRE_DRAIN_HOOK, NOW + 5.0) == NOW + 5.0
    assert deadline_of(second) is None


def test_hooks_of_the_first_eviction_that_were_meant_stay_so_beside_what_is_meant_later() -> None:
    """TRM-49."""
    first = Forced(deadline=NOW + 600.0, first_eviction=True)
    claim = forced(a_leaving_claim(), first)
    assert forced_of(claim) == first and deadline_of_hooks(claim, names.PRE_TERMINATE_HOOK, None) is None

    second = forced(claim, Forced(deadline=NOW + 900.0, through=frozenset({VOLUMES})))
    assert deadline_of_hooks(second, names.PRE_DRAIN_HOOK, None) == NOW + 600.0
    assert (deadline_of_hooks(second, names.PRE_TERMINATE_HOOK, None), deadline_of_volumes(second, None)) == (
        None,
        NOW + 600.0,
    )


@pytest.mark.parametrize(
    "said", ['{"deadline":"soon"}', '{"through":["PdbBlocks"]}', f'{{"deadline":"{format_time(NOW - 1.0)}"}}', "[]"]
)
def test_what_cannot_be_read_or_is_of_an_earlier_departure_forces_nothing(said: str) -> None:
    """TRM-49."""
    text = f'{{"v":1,"entries":[{{"held":{{"forced":{said}}}}}]}}'
    assert forced_of(a_leaving_claim(**{names.REMEMBERED: text})) is None


def test_a_deadline_that_nobody_forced_stays_the_nodes() -> None:
    """TRM-6."""
    asked = held(NOW + 1.0, PDB, Level.ASK)
    claim = a_leaving_claim(**{names.TERMINATION_DEADLINE: format_time(NOW + 60.0)}, **asked)

    assert (forced_of(claim), deadline_of(claim)) == (None, NOW + 60.0)

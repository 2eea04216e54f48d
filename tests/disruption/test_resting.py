"""What a rest holds, and what it says of why a node is left alone."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.disruption.choose import Decision, NothingToDo, decide
from dovetail.disruption.decision_snapshot import for_disruption
from dovetail.disruption.explain import explain_node
from dovetail.disruption.nodes.resting import read_rest, rest_text
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pools import NodePool
from tests.disruption.test_repair import POLICIES, ill
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_world, condition


@pytest.mark.parametrize(
    ("cancelled", "says"),
    [
        (True, "A person called its last disruption off, it is looked at again later"),
        (False, "Node's last disruption failed, it is tried again later"),
    ],
)
def test_what_a_person_called_off_is_not_said_to_have_failed(cancelled: bool, says: str) -> None:
    pair = a_pair("n1")
    text = rest_text(pair.claim, NOW, "Drifted", cancelled=cancelled)
    resting = a_pair("n1", claim={"annotations": {names.REST: text}})
    rest = read_rest(resting.claim)

    found = explain_node(
        replace(a_world([resting], [a_pod("n1")], pools=[a_pool()]), resting={"n1": rest.until}),
        DisruptionSettings(),
        "n1",
    )

    assert (rest.reason, rest.cancelled, rest.until > NOW) == ("Drifted", cancelled, True)
    assert says in [check.message for check in found.checks]


DRIFTED: Final = {"conditions": (*a_pair("n1").claim.conditions, condition(names.DRIFTED))}
ASKED: Final = {"annotations": {names.REPLACE: "a bad disk"}}
EXPIRED: Final = {"annotations": {names.REPLACE_FIRST: "true"}, "expire_after": 60.0, "created": NOW - 120.0}
REPAIRS: Final = DisruptionSettings(repairs=True)


def begun(pair: Pair, pool: NodePool, reason: str, rest: str, now: float = NOW) -> Decision:
    """What is decided about one empty node whose last disruption, for that reason, failed or was called off."""
    text = rest_text(pair.claim, NOW, reason, cancelled=rest == "cancelled")
    resting = replace(pair.claim, annotations={**pair.claim.annotations, **({names.REST: text} if rest else {})})
    world = replace(a_world([replace(pair, claim=resting)], pools=[pool]), now=now, repair_policies=POLICIES)
    return decide(for_disruption(world, {}, frozenset()), REPAIRS, never)


def reasons(found: Decision) -> list[str]:
    return [command.reason for command in found.choice.commands] if isinstance(found.choice, DisruptionPlan) else []


@pytest.mark.parametrize("pool", [a_pool(replicas=1), a_pool(consolidate_after=None)], ids=["static", "dynamic"])
@pytest.mark.parametrize("rest", ["failed", "cancelled"])
@pytest.mark.parametrize(
    ("reason", "pair"),
    [
        ("Unhealthy", ill("n1")),
        ("Drifted", a_pair("n1", claim=DRIFTED)),
        ("Expired", a_pair("n1", claim=EXPIRED)),
        ("Requested", a_pair("n1", claim=ASKED)),
    ],
    ids=["repair", "drift", "expiry", "request"],
)
def test_an_empty_node_rests_from_what_was_undone(reason: str, pair: Pair, rest: str, pool: NodePool) -> None:
    """Else a static pool, which replaces empty nodes too, makes one replacement after another that cannot start."""
    held = begun(pair, pool, reason, rest)

    assert reasons(begun(pair, pool, reason, "")) == [reason]
    assert reasons(held) == []
    assert isinstance(held.choice, NothingToDo)
    assert held.choice.next_due == (until := NOW + (300.0 if rest == "cancelled" else 30.0))
    assert reasons(begun(pair, pool, reason, rest, now=until)) == [reason]
    told = [notice.message for notice in held.notices if notice.reason == "ReplacementWaits"]
    assert len(told) == (1 if reason == "Requested" else 0)


@pytest.mark.parametrize(("reason", "goes"), [("Drifted", ["Empty"]), ("Empty", [])])
def test_a_node_that_has_become_empty_since_may_go_as_empty(reason: str, goes: list[str]) -> None:
    assert reasons(begun(a_pair("n1", claim=DRIFTED), a_pool(), reason, "failed")) == goes

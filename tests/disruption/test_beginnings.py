"""What keeps a node from beginning to leave: every cause under every rule, against a table that was written by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from dovetail.model.own.openings import Window
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.own.policies import Freeze, Policy
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.snapshot import Snapshot
from dovetail.rules import beginnings
from dovetail.rules.beginnings import changes, hold_of, said_in
from dovetail.rules.pause.hold import by_pause
from dovetail.rules.said import Cause, HeldBy, Said
from worlds.beginnings import CAUSES, RULES
from worlds.disruption import HOUR, NOW, a_pool, a_world
from worlds.time_rules import with_rules

# The columns in this order: Empty, Underutilized, Drifted, Unhealthy, Expired with a replacement first, Requested,
# Requested now, Expired and deleted, a static pool scaled down, repaired as until 1.14, deleted by a person. "H": it
# holds.
TABLE: Final = """
pause                                  H H H H H H H H H - -
Freeze                                 H H H H H H H H H - -
Freeze that is not understood          H H H H H H H H H - -
nodes that are not ready               H H H - H - - - - - -
replacements that failed               H H H H H - - - - - -
closed window                          H H H H H H - - - - -
policy that is not understood          H H H H H H - - - - -
change whose roll-out is not made yet  - - H - - - - - - - -
roll-out that waits                    - - H - - - - - - - -
rate that is reached                   H H H H H - - - - - -
budget of no node                      H H H H H H - - - - -
pod with do-not-disrupt                - H H - H H H - - - -
PDB that allows none                   - H H - H H H - - - -
"""
CELLS: Final = [
    (line[:39].strip(), cause, letter == "H")
    for line in TABLE.strip().splitlines()
    for cause, letter in zip(CAUSES, line[39:].split(), strict=True)
]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_node_of_each_play_leaves_where_no_rule_speaks(cause: str) -> None:
    assert CAUSES[cause](lambda world: world)


@pytest.mark.parametrize(("rule", "cause", "holds"), CELLS)
def test_each_rule_holds_what_the_table_says(rule: str, cause: str, holds: bool) -> None:
    assert CAUSES[cause](RULES[rule]) is not holds


def test_the_table_has_every_rule() -> None:
    assert [rule for rule, *_ in CELLS[:: len(CAUSES)]] == list(RULES)


def test_every_rule_has_a_folder_and_a_place_in_the_order() -> None:
    """A folder that can hold and is asked by nobody would hold nothing."""
    rooms = {path.parent.name for path in Path(beginnings.__file__).parent.glob("*/hold.py")}
    asked = {rule.__module__.split(".")[-2] for rule in beginnings.RULES} | {by_pause.__module__.split(".")[-2]}

    assert rooms == asked
    assert len(HeldBy) == len(rooms) + 1, "a pause and a Freeze are one room"


def test_every_reason_of_a_disruption_is_a_cause() -> None:
    assert {str(Cause.of(reason)) for reason in DisruptionReason} == set(DisruptionReason)
    assert Cause.of("Requested", at_once=True) == Cause.REQUESTED_NOW
    assert Cause.of("Drifted", at_once=True) == Cause.DRIFTED


SHUT: Final = Policy(name="p", allow=(Window(start=23 * 3600, end=5 * 3600),))  # NOW is 22:13:20
FREEZE: Final = Freeze(name="f", until=NOW + HOUR)


def said(*rules: Policy | Freeze) -> Said:
    world: Snapshot = with_rules(a_world(pools=[a_pool()]), *rules)
    return said_in(world, a_pool().name)


def test_the_first_rule_that_holds_is_named_and_says_until_when() -> None:
    frozen = hold_of(said(SHUT, FREEZE), Cause.DRIFTED)
    closed = hold_of(said(SHUT), Cause.DRIFTED)

    assert frozen is not None and (frozen.rule, frozen.until) == (HeldBy.FREEZE, NOW + HOUR)
    assert closed is not None and (closed.rule, closed.until) == (HeldBy.WINDOW, NOW + 2800)
    assert hold_of(said(SHUT).at(NOW + 2800), Cause.DRIFTED) is None
    assert sorted(set(changes(said(SHUT, FREEZE)))) == [NOW + 2800, NOW + HOUR]


def test_a_pause_of_launches_holds_what_needs_a_replacement_first() -> None:
    launches = Pause(pool="", what=frozenset({Activity.LAUNCHES}), until=NOW + HOUR)
    found = replace(said(), pauses=(launches,))

    assert hold_of(found, Cause.DRIFTED) is None
    held = hold_of(found, Cause.DRIFTED, replaced=True)
    assert held is not None and held.rule == HeldBy.PAUSE


def test_what_holds_all_pools_holds_a_claim_whose_pool_is_gone() -> None:
    world = with_rules(a_world(pools=[a_pool()]), FREEZE, SHUT)

    held = hold_of(said_in(world, "gone"), Cause.EXPIRED_HARD)

    assert held is not None and held.rule == HeldBy.FREEZE

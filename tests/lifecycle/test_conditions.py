"""PLM-4 to PLM-7: conditions and the root that follows from them."""

import pytest

from dovetail.lifecycle.conditions import claim_conditions_with, conditions_of_claim, false, true, unknown
from dovetail.model import names
from tests.lifecycle.objects import a_joined_claim, is_now
from worlds.disruption import a_claim


def test_missing_dependents_stand_at_unknown_since_the_creation() -> None:
    """PLM-4: this is what starts the clocks of liveness."""
    found = conditions_of_claim(a_claim(created=1000.0))

    assert {(c.type, c.status, c.reason, c.changed) for c in found.conditions} == {
        (kind, "Unknown", "AwaitingReconciliation", 1000.0)
        for kind in ("Launched", "Registered", "Initialized", "Ready")
    }


def test_a_condition_that_keeps_its_status_keeps_its_time() -> None:
    """PLM-5: reason and message may change, the transition time may not."""
    claim = a_claim(conditions=(is_now(names.LAUNCHED, "Unknown", changed=1000.0),))

    found = conditions_of_claim(claim).set(unknown(names.LAUNCHED, 1200.0, ("LaunchFailed", "no")))

    launched = found.find(names.LAUNCHED)
    assert launched is not None
    assert (launched.changed, launched.reason) == (1000.0, "LaunchFailed")


def test_a_condition_that_changes_its_status_changes_its_time() -> None:
    """PLM-5."""
    found = conditions_of_claim(a_claim()).set(true(names.LAUNCHED, 1200.0))

    launched = found.find(names.LAUNCHED)
    assert launched is not None
    assert (launched.changed, launched.status, launched.reason, launched.message) == (1200.0, "True", "Launched", "")


@pytest.mark.parametrize(
    "kind", [names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, names.DRAINED]
)
def test_what_has_happened_to_a_claim_is_never_taken_back(kind: str) -> None:
    """DUR-30: whatever a late attempt believes; of what is merely so at a moment, the last word counts."""
    claim = a_claim(conditions=(is_now(kind), is_now(names.DRIFTED)), generation=1)

    for late in (unknown(kind, 1200.0, ("NotReady", "n")), false(kind, 1200.0, ("NotReady", "n"))):
        found = claim_conditions_with(claim, late, false(names.DRIFTED, 1200.0, ("NotDrifted", "n")))
        assert found is not None
        status = {each.type: each.status for each in found}
        assert (status[kind], status[names.DRIFTED]) == ("True", "False")


def test_the_claim_is_ready_once_all_dependents_are_true() -> None:
    """PLM-6."""
    found = conditions_of_claim(a_claim())
    for at, kind in enumerate((names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION)):
        found = found.set(true(kind, 1100.0 + at))

    ready = found.find(names.READY)
    assert ready is not None
    assert (ready.status, ready.reason, ready.changed) == ("True", "Ready", 1102.0)


def test_a_dependent_that_is_false_makes_the_claim_not_ready_and_names_it() -> None:
    """PLM-6: the newest transition is named first."""
    found = conditions_of_claim(a_claim()).set(true(names.LAUNCHED, 1100.0))
    found = found.set(false(names.REGISTERED_CONDITION, 1200.0, ("MultipleNodesFound", "two")))

    ready = found.find(names.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "UnhealthyDependents")
    assert ready.message == "Registered=False, Initialized=Unknown"


def test_a_dependent_of_an_older_generation_is_not_healthy() -> None:
    """PLM-6: it has not been judged since the object changed."""
    claim = a_joined_claim(generation=2)

    ready = conditions_of_claim(claim).set(true("ConsistentStateFound", 1300.0)).find(names.READY)

    assert ready is not None
    assert (ready.status, ready.reason) == ("Unknown", "ReconcilingDependents")


def test_the_claim_stays_ready_while_it_terminates() -> None:
    """PLM-5, BEH-68: a deletion raises the generation; setting a condition raises that of all others."""
    claim = a_joined_claim(generation=2, deleting_since=1300.0)

    found = conditions_of_claim(claim).set(true(names.INSTANCE_TERMINATING, 1301.0))

    ready = found.find(names.READY)
    assert ready is not None
    assert (ready.status, ready.changed) == ("True", 1000.0)
    assert {c.generation for c in found.conditions} == {2}


def test_conditions_are_written_in_order_of_their_times_with_the_root_last() -> None:
    """PLM-7."""
    found = conditions_of_claim(a_joined_claim()).set(true(names.DRAINED, 900.0))

    assert [c.type for c in found.conditions] == ["Drained", "Initialized", "Launched", "Registered", "Ready"]


def test_a_later_transition_is_written_after_an_earlier_one_whatever_their_names() -> None:
    """PLM-7: by time first; by name only among equals."""
    found = conditions_of_claim(a_joined_claim()).set(true("ConsistentStateFound", 2000.0))

    kinds = [condition.type for condition in found.conditions]
    assert kinds == ["Initialized", "Launched", "Registered", "ConsistentStateFound", "Ready"]


def test_a_failure_of_an_older_generation_is_not_a_failure_now() -> None:
    """PLM-6: False was said of what the object asked for then; whether it still is, nobody knows yet."""
    failed = is_now(names.REGISTERED_CONDITION, "False", generation=1)
    others = tuple(one for one in a_joined_claim(generation=2).conditions if one.type != failed.type)

    def root(generation: int) -> tuple[str, str]:
        claim = a_joined_claim(generation=generation, conditions=(*others, failed))
        found = conditions_of_claim(claim).set(true(names.LAUNCHED, 1300.0)).find(names.READY)
        assert found is not None
        return found.status, found.reason

    assert root(1) == ("False", "UnhealthyDependents")
    assert root(2) == ("Unknown", "ReconcilingDependents")


def test_the_root_keeps_its_time_while_it_keeps_its_status() -> None:
    """PLM-5, PLM-6: a second dependent that is not healthy changes the root's message and not its time."""
    found = conditions_of_claim(a_joined_claim()).set(unknown(names.INITIALIZED_CONDITION, 1500.0, ("A", "a")))
    found = found.set(unknown(names.REGISTERED_CONDITION, 1600.0, ("B", "b")))

    ready = found.find(names.READY)
    assert ready is not None
    assert (ready.changed, ready.message) == (1500.0, "Registered=Unknown, Initialized=Unknown")


def test_a_condition_whose_message_alone_is_new_is_written() -> None:
    """PLM-5: only a full match is no modification; the others stay as they are."""
    claim = a_joined_claim(conditions=(is_now(names.LAUNCHED, "Unknown", reason="LaunchFailed", message="no"),))

    written = claim_conditions_with(claim, unknown(names.LAUNCHED, 2000.0, ("LaunchFailed", "still no")))

    assert written is not None
    (launched,) = (one for one in written if one.type == names.LAUNCHED)
    assert (launched.message, launched.changed) == ("still no", 1000.0)


def test_what_is_so_already_is_no_change() -> None:
    """PLM-5: fully equal is not a modification, so nothing is written."""
    claim = a_joined_claim()

    assert claim_conditions_with(claim, true(names.LAUNCHED, 2000.0)) is None


def test_clearing_sorts_by_name_and_refuses_dependents() -> None:
    """Clearing a condition leaves the others sorted by name; those on which Ready depends cannot be cleared (PLM-7)."""
    claim = a_joined_claim(conditions=(*a_joined_claim().conditions, is_now(names.DISRUPTION_REASON)))

    found = conditions_of_claim(claim).clear(names.DISRUPTION_REASON)

    assert [c.type for c in found.conditions] == ["Initialized", "Launched", "Ready", "Registered"]
    for kind in (names.LAUNCHED, names.READY):
        with pytest.raises(ValueError, match="cannot be cleared"):
            found.clear(kind)

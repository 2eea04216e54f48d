"""What the Scheduler remembers stays small, however much was written, held or nominated."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, Seen, Target
from dovetail.messages.requests import DisruptionRequest
from dovetail.messages.sizes import HELD_BYTES, PAYLOAD_BYTES, PLAN_BYTES, encoded_bytes
from dovetail.messages.states import MOST_GONE, Held, Remembered, SchedulerState, expiry_of, remembered
from dovetail.messages.writes import Write

NAME = "ip-10-000-000-{:06}.eu-west-1.compute.internal"


def a_write(kind: str, number: int, version: int) -> Write:
    return Write(kind=kind, name=f"{kind}-{number}", uid=f"uid-{number}", version=version)


WRITES = st.lists(
    st.builds(a_write, st.sampled_from(["Node", "NodeClaim"]), st.integers(0, 30), st.integers(0, 50)), max_size=60
).map(tuple)


def asks_for(known: tuple[Remembered, ...], seen: dict[str, int], standing: frozenset[str]) -> bool:
    """Whether a snapshot that has seen those versions must be waited for."""
    return any(
        each.write.uid in standing if each.write.version == 0 else seen[each.write.kind] < each.write.version
        for each in known
    )


@given(writes=WRITES, seen=st.fixed_dictionaries({"Node": st.integers(0, 50), "NodeClaim": st.integers(0, 50)}))
def test_the_newest_of_each_kind_asks_for_the_same_as_all_of_them(
    writes: tuple[Write, ...], seen: dict[str, int]
) -> None:
    standing = frozenset[str]()
    everything = tuple(Remembered(write=write, until=1.0) for write in writes)

    assert asks_for(remembered((), writes, 1.0), seen, standing) == asks_for(everything, seen, standing)


def test_thousands_of_writes_are_one_of_each_kind_and_the_last_that_are_gone() -> None:
    known: tuple[Remembered, ...] = ()
    for number in range(3000):
        written = (a_write("Node", number, number + 1), a_write("NodeClaim", number, 2 * number + 1))
        known = remembered(known, (*written, a_write("NodeClaim", 10_000 + number, 0)), float(number))

    versions = {each.write.kind: each.write.version for each in known if each.write.version}
    gone = [each.write.name for each in known if not each.write.version]
    assert versions == {"Node": 3000, "NodeClaim": 5999}
    assert len(gone) == MOST_GONE and "NodeClaim-12999" in gone
    assert expiry_of(known) == 2999.0


def a_plan(targets: int) -> DisruptionPlan:
    made = tuple(
        Target(
            claim=NAME.format(n), claim_uid="u" * 36, node=NAME.format(n), node_uid="u" * 36, provider_id="", pool="p"
        )
        for n in range(targets)
    )
    command = DisruptionCommand(reason="Empty", method="emptiness", targets=made)
    return DisruptionPlan(seen=Seen(taken_at=0.0), commands=(command,), validate_after=15.0)


def test_nothing_more_is_chosen_once_much_is_held_and_a_full_request_is_a_payload() -> None:
    """Twelve plans of 500 empty nodes were 2.4 MB, more than the server takes."""
    plan = a_plan(500)
    while encoded_bytes(plan) > PLAN_BYTES:
        plan = a_plan(len(plan.commands[0].targets) - 10)
    state, count = SchedulerState(cluster="c"), 0
    while not state.holds_enough:
        state, count = replace(state, held=(*state.held, Held(plan=plan, due=0.0))), count + 1
    nodes = tuple(NAME.format(n) for n in range(20_000))
    for first in range(0, len(nodes), 100):
        state = state.nominate(nodes[first : first + 100], 20.0)
    gone = tuple(a_write("NodeClaim", number, 0) for number in range(5000))
    state = state.remember(gone, 60.0)

    request = DisruptionRequest(
        must_see=tuple(each.write for each in state.must_see), nominations=state.nominations, held=state.held
    )

    assert count > 1 and encoded_bytes(state.held) < HELD_BYTES + PLAN_BYTES
    assert encoded_bytes(request) < PAYLOAD_BYTES


def test_more_nominations_than_a_request_carries_mean_that_nothing_is_disrupted_until_they_end() -> None:
    few = SchedulerState(cluster="c").nominate((NAME.format(1),), 20.0)
    many = few.nominate(tuple(NAME.format(n) for n in range(5000)), 30.0)

    assert (few.quiet_until, few.nominations) == (0.0, ((NAME.format(1), 20.0),))
    assert (many.quiet_until, many.nominations) == (30.0, few.nominations)

"""What must hold of every disruption plan, whatever the cluster."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.karpenter import KARPENTER
from dovetail.disruption.budgets.allowances import allowances
from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.revalidate import Invalid
from dovetail.disruption.rounds import Round, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.model.pools import Budget
from dovetail.model.snapshot import Snapshot
from tests.disruption.second_look import revalidate
from tests.properties.carrying_out import carry_out
from worlds.disruption import NOW, TYPES, Pair, a_pair, a_pdb, a_pod, a_pool, a_world, condition

BUDGETS = st.lists(
    st.builds(
        Budget,
        nodes=st.sampled_from(["0", "1", "2", "5", "10%", "34%", "100%"]),
        reasons=st.sampled_from([None, ("Empty",), ("Drifted",), ("Underutilized",)]),
    ),
    max_size=3,
).map(tuple)


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Some nodes of two pools in all states, with pods and a budget of pods."""
    pools = [
        a_pool(
            name,
            budgets=draw(BUDGETS),
            policy=draw(st.sampled_from(["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])),
            consolidate_after=draw(st.sampled_from([None, 0.0, 30.0])),
            annotations=draw(st.sampled_from([{}, {names.REPLACE_FIRST: "true"}])),
        )
        for name in ("a", "b")
    ]
    pairs: list[Pair] = []
    pods: list[Pod] = []
    taken: set[str] = set()
    for number in range(draw(st.integers(1, 7))):
        name = f"n{number}"
        also = draw(st.sampled_from([(), (condition(names.DRIFTED, changed=NOW - number),)]))
        claim: dict[str, Any] = draw(
            st.sampled_from([{}, {}, {}, {"deleting_since": NOW}, {"expire_after": 60.0}, {"last_pod_event": NOW - 10}])
        )
        node = draw(st.sampled_from([{}, {}, {}, {"conditions": (condition("Ready", status="False"),)}]))
        type_name = draw(st.sampled_from([t.name for t in TYPES]))
        pool = draw(st.sampled_from(["a", "b"]))
        pairs.append(a_pair(name, type_name, pool=pool, also=also, claim=claim, node=node))
        room = {"m2": 1, "m4": 3, "m8": 6, "m16": 10}[type_name]
        marks = draw(st.lists(st.sampled_from([None, None, None, "true"]), max_size=min(3, room)))
        pods.extend(a_pod(name, "1", do_not_disrupt=mark) for mark in marks)
        if draw(st.integers(0, 5)) == 0:
            taken.add(f"claim-{name}")
    pdbs = draw(st.sampled_from([[], [], [a_pdb(allowed=1)]]))
    return a_world(pairs, pods, pools=pools, pdbs=pdbs, disrupting=frozenset(taken))


SETTINGS = st.sampled_from([DisruptionSettings(), DisruptionSettings(spot_to_spot=True, profile=KARPENTER)])


@settings(max_examples=150, deadline=None)
@given(worlds(), SETTINGS)
def test_no_plan_takes_more_than_the_allowance(world: Snapshot, chosen: DisruptionSettings) -> None:
    """Also where a drain was coming to its end when the plan was made: only what the second look leaves is marked."""
    choice = choose(world, chosen, never)
    if isinstance(choice, NothingToDo):
        return
    looked = revalidate(choice, world, chosen)
    if isinstance(looked, Invalid):
        return
    taken = Counter((t.pool, c.reason) for c in looked.plan.commands for t in c.targets)
    found = allowances(world, chosen)
    assert {key: n for key, n in taken.items() if n > found[key].left} == {}


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_plans_one_after_the_other_never_disrupt_more_than_the_budget(world: Snapshot) -> None:
    """Each plan counts all that the plans before it have taken, NotReady and leaving nodes included.

    What is marked is what the second look leaves: a plan that waits may be made while a drain is coming to its end.
    """
    before = allowances(world, DisruptionSettings())
    reasons: set[tuple[str, str]] = set()
    for _ in range(3):
        choice = choose(world, DisruptionSettings(), never)
        if isinstance(choice, NothingToDo):
            break
        looked = revalidate(choice, world, DisruptionSettings())
        if isinstance(looked, Invalid):
            break
        reasons |= {(t.pool, c.reason) for c in looked.plan.commands for t in c.targets}
        taken = frozenset(t.claim for c in looked.plan.commands for t in c.targets)
        assert not taken & world.disrupting
        world = replace(world, disrupting=world.disrupting | taken)
    after = allowances(world, DisruptionSettings())
    exceeded = {key for key in reasons if after[key].consuming > max(after[key].allowed, before[key].consuming)}
    # Another reason's plan may have used the room of this one, never the other way round.
    assert all(after[key].consuming <= max(after[k].allowed for k in reasons if k[0] == key[0]) for key in exceeded)


@settings(max_examples=100, deadline=None)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(world: Snapshot, random: Any) -> None:
    def shuffled(items: Any) -> dict[Any, Any]:
        entries = list(items.items())
        random.shuffle(entries)
        return dict(entries)

    other = replace(
        world,
        nodes=shuffled(world.nodes),
        claims=shuffled(world.claims),
        pods=shuffled(world.pods),
        pools=shuffled(world.pools),
    )
    assert choose(world, DisruptionSettings(), never) == choose(other, DisruptionSettings(), never)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_plans_carried_out_come_to_an_end(world: Snapshot) -> None:
    """Each consolidation makes the cluster cheaper, so there is a last; drift and emptiness leave nothing behind."""
    world = replace(world, disrupting=frozenset())
    for _ in range(40):
        choice = choose(world, DisruptionSettings(), never)
        if isinstance(choice, NothingToDo):
            return
        world = carry_out(world, choice)
    raise AssertionError(f"still something to do: {choice}")


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4))
def test_a_drift_wave_carried_out_leaves_no_drift(nodes: int, pods: int) -> None:
    pairs = [a_pair(f"n{i}", also=[condition(names.DRIFTED)]) for i in range(nodes)]
    load = [a_pod(f"n{i}", "2") for i in range(nodes) for _ in range(pods)]
    world = a_world(pairs, load, pools=[a_pool(consolidate_after=None)])
    first = choose(world, DisruptionSettings(), never)
    assert isinstance(first, DisruptionPlan) and len(first.commands) == nodes
    assert isinstance(choose(carry_out(world, first), DisruptionSettings(), never), NothingToDo)


@settings(max_examples=100, deadline=None)
@given(worlds(), st.sets(st.integers(0, 6), min_size=1))
def test_what_is_ruled_out_could_not_have_been_consolidated(world: Snapshot, picks: set[int]) -> None:
    """The shortcut never hides a command that a simulation would have found."""
    round_ = Round(world, DisruptionSettings())
    chosen = [c for i, c in enumerate(round_.screening.graceful) if i in picks]
    if chosen and round_.simulator.is_hopeless(chosen):
        full = Round(world, DisruptionSettings())
        simulation = full.simulator.simulate(chosen, consolidating=True)
        limit = sum(c.price for c in chosen)
        cheaper = [t for r in simulation.replacements for t in full.prices.below(r.types, r.requirements, limit).types]
        assert simulation.unplaced or len(simulation.replacements) > 1 or (simulation.replacements and not cheaper)

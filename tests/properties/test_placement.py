"""What holds for the placement of any cluster (S-…): rules are obeyed, order does not matter, simulation is a solve."""

import random
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.checker.check import violations
from acceptance.placement_worlds import settings_of, snapshot_of
from acceptance.vectors.kind_placement import answer_of
from dovetail.placement.cluster.index import Index
from dovetail.placement.place_pods import place, place_pods, simulate
from dovetail.placement.search.on_proposed_nodes import Claim, ClaimPlacer
from dovetail.placement.settings import Fixes
from tests.properties.clusters import clusters

Raw = dict[str, Any]
quick = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def _answer(raw: Raw, fixes: Fixes) -> Raw:
    snapshot = snapshot_of(raw)
    unbound = {pod.name for pod in snapshot.pods.values() if not pod.node_name}
    return answer_of(place_pods(snapshot, None, settings_of(raw, fixes)), unbound)


@quick
@given(clusters())
def test_every_placement_obeys_every_rule(raw: Raw) -> None:
    """The checker shares no code with the engine (F-51)."""
    assert violations(raw, _answer(raw, Fixes())) == []


@quick
@given(clusters())
def test_the_answer_of_upstreams_mode_obeys_every_rule_that_it_promises(raw: Raw) -> None:
    """With the fixes off only the skew of relaxed spreads may suffer (Q-26)."""
    found = [fault for fault in violations(raw, _answer(raw, Fixes.none())) if "skew" not in fault]
    assert found == []


@quick
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(raw: Raw, shuffler: random.Random) -> None:
    """F-52: pods, nodes and pools come from maps; with the fixes on, none of them comes first."""
    shuffled = {**raw, **{field: list(raw[field]) for field in ("pods", "nodes", "nodeClaims", "nodePools")}}
    for field in ("pods", "nodes", "nodeClaims", "nodePools"):
        shuffler.shuffle(shuffled[field])
    assert _answer(raw, Fixes()) == _answer(shuffled, Fixes())


def _without_a_witness(claim: Claim, rows: int) -> None:
    claim.rows, claim.room = rows, [-1]


@quick
@given(clusters())
def test_the_short_ways_of_a_try_change_no_answer(raw: Raw) -> None:
    """S-97: the first claim is asked before the masks of all are made, and one row before all rows."""
    with (
        patch.object(ClaimPlacer, "_free", lambda *_: False),
        patch.object(Claim, "settle", _without_a_witness),
    ):
        long_way = _answer(raw, Fixes())
    assert _answer(raw, Fixes()) == long_way


@quick
@given(clusters())
def test_a_pod_that_was_placed_stays_placed_when_asked_again(raw: Raw) -> None:
    """An index is not changed by the passes over it (F-22)."""
    snapshot, chosen = snapshot_of(raw), settings_of(raw, Fixes())
    index = Index(snapshot, chosen)
    assert place(index) == place(index)


@quick
@given(clusters(), st.integers(0, 2))
def test_a_simulation_is_a_fresh_solve_without_the_node(raw: Raw, number: int) -> None:
    """F-22: copy-on-write over a used index gives what a new index gives."""
    snapshot, chosen = snapshot_of(raw), settings_of(raw, Fixes())
    without = frozenset({f"n{number}"})
    used = Index(snapshot, chosen)
    place(used)
    simulate(used, frozenset())
    simulate(used, frozenset({"n0", "n1"}))
    assert simulate(used, without) == simulate(Index(snapshot, chosen), without)


@quick
@given(clusters(), st.integers(0, 2))
def test_a_simulation_is_a_solve_of_the_cluster_that_lacks_the_node(raw: Raw, number: int) -> None:
    """S-216, S-217: the pods of the node need room, and nothing of the node is left."""
    snapshot, chosen, name = snapshot_of(raw), settings_of(raw, Fixes()), f"n{number}"
    index = Index(snapshot, chosen)
    moved = index.reschedulable_on(name)
    lacking = replace(
        snapshot,
        nodes={key: node for key, node in snapshot.nodes.items() if key != name},
        claims={key: claim for key, claim in snapshot.claims.items() if claim.provider_id != f"p://{number}"},
    )

    simulated = simulate(index, frozenset({name}))
    solved = place(Index(lacking, chosen), [*index.waiting().pending, *moved])

    assert (simulated.new, simulated.existing) == (solved.new, solved.existing)

"""What holds for the placement of any cluster: rules are obeyed, order does not matter, a simulation is a pass."""

import random
from dataclasses import replace
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.checker.check import violations
from acceptance.karpenter import KARPENTER_PLACEMENT
from acceptance.placement_worlds import settings_of, snapshot_of
from acceptance.vectors.kind_placement import answer_of
from dovetail.model.values.json import Json
from dovetail.model.values.resources import total
from dovetail.placement.place_pods import Index, place, simulate
from dovetail.placement.search.node_draft import NodeDraft
from dovetail.placement.search.on_proposed_nodes import DraftPlacer
from dovetail.placement.settings import DOVETAIL, Profile
from tests.properties.clusters import clusters

quick = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def _answer(raw: Json, profile: Profile) -> Json:
    snapshot = snapshot_of(raw)
    unbound = {pod.name for pod in snapshot.pods.values() if not pod.node_name}
    return answer_of(place(Index(snapshot, settings_of(raw, profile))), unbound)


@quick
@given(clusters())
def test_every_placement_obeys_every_rule(raw: Json) -> None:
    """The checker shares no code with the engine (PLF-51)."""
    assert violations(raw, _answer(raw, DOVETAIL)) == []


@quick
@given(clusters())
def test_the_answer_under_the_profile_of_karpenter_obeys_every_rule_that_it_promises(raw: Json) -> None:
    """Under the profile of Karpenter only the skew of relaxed spreads may suffer (PLQ-26)."""
    found = [fault for fault in violations(raw, _answer(raw, KARPENTER_PLACEMENT)) if "skew" not in fault]
    assert found == []


@quick
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(raw: Json, shuffler: random.Random) -> None:
    """Pods, nodes and pools come from maps, which have no order (PLF-52)."""
    shuffled = {**raw, **{field: list(raw[field]) for field in ("pods", "nodes", "nodeClaims", "nodePools")}}
    for field in ("pods", "nodes", "nodeClaims", "nodePools"):
        shuffler.shuffle(shuffled[field])
    assert _answer(raw, DOVETAIL) == _answer(shuffled, DOVETAIL)


def _without_a_witness(draft: NodeDraft, rows: int) -> None:
    draft.rows, draft.room = rows, [-1]


@quick
@given(clusters())
def test_the_shortcuts_of_the_search_change_no_answer(raw: Json) -> None:
    """The first draft is tried before the masks of all are made, and one row before all rows (PLC-97)."""
    with (
        patch.object(DraftPlacer, "_free", lambda *_: False),
        patch.object(NodeDraft, "settle", _without_a_witness),
    ):
        long_way = _answer(raw, DOVETAIL)
    assert _answer(raw, DOVETAIL) == long_way


@quick
@given(clusters())
def test_a_pod_that_was_placed_stays_placed_when_asked_again(raw: Json) -> None:
    """An index is not changed by the passes over it (PLF-22)."""
    snapshot, chosen = snapshot_of(raw), settings_of(raw, DOVETAIL)
    index = Index(snapshot, chosen)
    assert place(index) == place(index)


@quick
@given(clusters(), st.integers(0, 2))
def test_a_simulation_is_a_fresh_pass_without_the_node(raw: Json, number: int) -> None:
    """A used index gives the answer of a new one (PLF-22)."""
    snapshot, chosen = snapshot_of(raw), settings_of(raw, DOVETAIL)
    without = frozenset({f"n{number}"})
    used = Index(snapshot, chosen)
    place(used)
    simulate(used)
    simulate(used, frozenset({"n0", "n1"}))
    assert simulate(used, without) == simulate(Index(snapshot, chosen), without)


@quick
@given(clusters(), st.integers(0, 2))
def test_the_pods_that_would_move_are_those_that_need_room_each_asked_alone(raw: Json, number: int) -> None:
    """Where nothing keeps any pod of a node, none is asked alone; the answer is the same (PLC-217)."""
    snapshot, chosen, name = snapshot_of(raw), settings_of(raw, DOVETAIL), f"n{number}"
    index = Index(snapshot, chosen)

    found = index.moving_from(name)

    assert list(found.pods) == [pod for pod in index.on_node.get(name, ()) if index.pdbs.needs_room(pod)]
    assert total(pod.requests for pod in found.pods) == total(r for r, times in found.sizes for _ in range(times))


@quick
@given(clusters(), st.integers(0, 2))
def test_a_simulation_is_a_pass_over_the_cluster_that_lacks_the_node(raw: Json, number: int) -> None:
    """The pods of the node need room, and nothing of the node is left (PLC-216, PLC-217)."""
    snapshot, chosen, name = snapshot_of(raw), settings_of(raw, DOVETAIL), f"n{number}"
    index = Index(snapshot, chosen)
    moved = index.moving_from(name).pods
    lacking = replace(
        snapshot,
        nodes={key: node for key, node in snapshot.nodes.items() if key != name},
        claims={key: claim for key, claim in snapshot.claims.items() if claim.provider_id != f"p://{number}"},
    )

    simulated = simulate(index, frozenset({name}))
    placed = place(Index(lacking, chosen), [*index.waiting().pending, *moved])

    assert (simulated.new, simulated.existing) == (placed.new, placed.existing)

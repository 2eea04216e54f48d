"""Which nodes may go at all (DIS-25 to DIS-48)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.screening import screen
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.objects.pod_rules import is_protected
from dovetail.model.pools import Catalogue
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.notices.decisions import pod_notice
from dovetail.placement.pdbs import PdbIndex
from worlds.disruption import NOW, Pair, a_pair, a_pdb, a_pod, a_world

PROTECTED = {"do_not_disrupt": "true"}


def why(pair: Pair, **world: Any) -> list[str]:
    fleet = Fleet(a_world([pair], **world), DisruptionSettings())
    return [b.message for _, b in screen(fleet).blocked]


def without(pair: Pair, label: str) -> dict[str, Any]:
    return {"labels": {k: v for k, v in pair.node.labels.items() if k != label}}


def test_a_node_that_nothing_holds_is_a_candidate() -> None:
    fleet = Fleet(a_world([a_pair("n1")], [a_pod("n1")]), DisruptionSettings())
    assert [c.name for c in screen(fleet).graceful] == ["n1"]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (a_pair("n1", node=without(a_pair("n1"), names.INITIALIZED)), "Node isn't initialized"),
        (a_pair("n1", claim={"deleting_since": NOW}), "Node is deleting or marked for deletion"),
        (
            a_pair("n1", node={"annotations": {names.DO_NOT_DISRUPT: "true"}}),
            'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        ),
        (
            a_pair("n1", node=without(a_pair("n1"), names.NODE_POOL)),
            "Node doesn't have required label (label=karpenter.sh/nodepool)",
        ),
        (a_pair("n1", pool="b"), "NodePool not found (NodePool=b)"),
    ],
)
def test_a_node_is_refused_in_upstreams_words(pair: Pair, message: str) -> None:
    """DIS-25."""
    assert why(pair) == [message]


EVERYTHING_WRONG: dict[str, dict[str, Any]] = {
    "node": {"labels": {}, "annotations": {names.DO_NOT_DISRUPT: "true"}},
    "claim": {"deleting_since": NOW},
    "world": {"nominations": {"n1": NOW + 1}, "catalogues": {}},
}


def test_a_node_with_several_obstacles_is_refused_by_the_first_in_order() -> None:
    """DIS-25: each is put right in turn, and the next one is named."""
    labels = a_pair("n1").node.labels
    registered = {k: labels[k] for k in (names.REGISTERED, names.INITIALIZED)}
    node, claim, world = (dict(EVERYTHING_WRONG[part]) for part in ("node", "claim", "world"))
    protected = a_pod("n1", name="p", **PROTECTED)
    found: list[str] = []

    def look() -> None:
        found.extend(why(a_pair("n1", node=node, claim=claim), pods=[protected], pdbs=[a_pdb()], **world))

    look()
    for part, mended in (
        (node, {"labels": registered}),
        (claim, {"deleting_since": None}),
        (world, {"nominations": {}}),
        (node, {"annotations": {}}),
        (node, {"labels": dict(labels)}),
    ):
        part.update(mended)
        look()
    world.pop("catalogues")
    look()

    assert found == [
        "Node isn't initialized",
        "Node is deleting or marked for deletion",
        "Node is nominated for a pending pod",
        'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        "Node doesn't have required label (label=karpenter.sh/nodepool)",
        "NodePool not found (NodePool=a)",
        'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/p)',
    ]


@pytest.mark.parametrize("catalogues", [{"a": Catalogue(error="no")}, {"a": Catalogue()}, {}])
def test_a_pool_whose_types_cannot_be_listed_counts_as_not_found(catalogues: dict[str, Catalogue]) -> None:
    """DIS-26: nor where there are none, or none yet."""
    assert why(a_pair("n1"), catalogues=catalogues) == ["NodePool not found (NodePool=a)"]


def test_a_node_without_a_claim_leaves_while_it_is_being_deleted() -> None:
    """DIS-19: and only then, whatever becomes of other claims."""
    nodes = {name: a_pair(name, node=deleted).node for name, deleted in (("n1", {"deleting_since": NOW}), ("n2", {}))}
    fleet = Fleet(a_world(nodes=nodes), DisruptionSettings())
    assert [(m.name, fleet.is_leaving(m)) for m in fleet.members] == [("n1", True), ("n2", False)]


def test_labels_are_the_claims_until_the_node_is_registered() -> None:
    """DIS-21."""
    pair = a_pair("n1")
    joining = replace(pair.node, labels={names.NODE_POOL: "of-the-node"})
    joined = replace(joining, labels={**joining.labels, names.REGISTERED: "true"})
    worlds = [a_world([replace(pair, node=node)]) for node in (joining, joined)]
    assert [Fleet(w, DisruptionSettings()).members[0].pool_name for w in worlds] == ["a", "of-the-node"]


def test_a_nomination_holds_until_its_last_instant() -> None:
    """DIS-20."""
    held = why(a_pair("n1"), nominations={"n1": NOW + 0.1})
    assert (held, why(a_pair("n1"), nominations={"n1": NOW})) == (["Node is nominated for a pending pod"], [])


def test_a_claim_without_a_node_gets_a_notice() -> None:
    """DIS-25."""
    pair = a_pair("n1")
    world = a_world(claims={pair.claim.name: pair.claim})
    blocked = screen(Fleet(world, DisruptionSettings())).blocked
    assert [b.message for _, b in blocked] == ["Nodeclaim does not have an associated node"]


@pytest.mark.parametrize("owner", ["ReplicaSet", "DaemonSet", "Node"])
def test_any_active_protected_pod_blocks(owner: str) -> None:
    """DIS-43, DIT-14."""
    pod = a_pod("n1", name="p", owner=owner, **PROTECTED)
    assert why(a_pair("n1"), pods=[pod]) == ['Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/p)']


@pytest.mark.parametrize("state", [{"phase": "Succeeded"}, {"deleting_since": NOW}])
def test_a_protected_pod_that_has_ended_blocks_nothing(state: dict[str, Any]) -> None:
    """DIT-17."""
    assert why(a_pair("n1"), pods=[a_pod("n1", **PROTECTED, **state)]) == []


def test_a_timed_protection_ends() -> None:
    """A pod that has run for longer than its annotation protects it holds nothing (DIS-41, DIT-47)."""
    young, old = a_pod("n1", do_not_disrupt="2h"), a_pod("n1", do_not_disrupt="1h")
    assert (len(why(a_pair("n1"), pods=[young])), why(a_pair("n1"), pods=[old])) == (1, [])


def test_a_budget_that_allows_nothing_blocks_and_is_named() -> None:
    """DIS-43."""
    message = "Pdb prevents pod evictions (PodDisruptionBudget=[default/b])"
    assert why(a_pair("n1"), pods=[a_pod("n1")], pdbs=[a_pdb()]) == [message]


def test_two_budgets_on_a_pod_block_though_both_would_allow_it() -> None:
    """DIS-43, DIT-19."""
    message = "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[default/b1 default/b2])"
    pdbs = [a_pdb("b2", allowed=1), a_pdb("b1", allowed=1)]
    assert why(a_pair("n1"), pods=[a_pod("n1")], pdbs=pdbs) == [message]


def test_an_unready_pod_may_go_where_the_budget_always_allows_that() -> None:
    """DIS-44."""
    pods = [a_pod("n1", ready=False)]
    assert why(a_pair("n1"), pods=pods, pdbs=[a_pdb(always_allow_unhealthy=True)]) == []


def test_a_second_budget_holds_even_a_pod_that_is_not_ready() -> None:
    """DIS-43, DIS-44: the eviction API refuses a pod of two budgets, whatever they allow."""
    pdbs = [a_pdb("b1", always_allow_unhealthy=True), a_pdb("b2", always_allow_unhealthy=True)]
    assert len(why(a_pair("n1"), pods=[a_pod("n1", ready=False)], pdbs=pdbs)) == 1


@pytest.mark.parametrize(
    ("limits", "for_good"),
    [
        ({"max_unavailable": "0"}, True),
        ({"max_unavailable": "0%"}, True),
        ({"max_unavailable": None, "min_available": "100%"}, True),
        ({"max_unavailable": None, "min_available": "3"}, False),
        ({"max_unavailable": "1%"}, False),
    ],
)
def test_some_budgets_never_let_a_pod_go(limits: dict[str, Any], for_good: bool) -> None:
    """DIS-46, DIS-47: such a pod needs no new room."""
    index, pod = PdbIndex([a_pdb(**limits)], NOW), a_pod("n1")
    assert (index.blocks_for_good(pod), index.needs_room(pod)) == (for_good, not for_good)


def test_budgets_are_judged_pod_by_pod() -> None:
    """DIS-45: three pods under a budget that allows one."""
    assert why(a_pair("n1"), pods=[a_pod("n1") for _ in range(3)], pdbs=[a_pdb(allowed=1)]) == []


def test_a_grace_period_waives_the_pods_block_for_drift_only() -> None:
    """DIS-28, DIT-15."""
    world = a_world([a_pair("n1", claim={"termination_grace": 60.0})], [a_pod("n1", **PROTECTED)])
    found = screen(Fleet(world, DisruptionSettings()))
    assert ([c.name for c in found.graceful], [c.name for c in found.eventual]) == ([], ["n1"])


def test_a_node_whose_replacement_failed_rests() -> None:
    fleet = Fleet(a_world([a_pair("n1"), a_pair("n2")], resting={"n1": NOW + 60}), DisruptionSettings())
    found = screen(fleet)
    assert ([b.why for _, b in found.blocked], [c.name for c in found.graceful]) == ([WhyNot.RESTING], ["n2"])


def test_a_missing_type_zone_or_capacity_type_costs_the_price_and_nothing_else() -> None:
    """DIS-29, DIT-23."""
    pair = a_pair("n1", node=without(a_pair("n1"), names.ZONE))
    found = screen(Fleet(a_world([pair]), DisruptionSettings())).graceful
    assert [(c.name, c.price) for c in found] == [("n1", 0.0)]


def test_a_pod_that_says_false_is_told_that_its_annotation_is_invalid() -> None:
    """DIQ-22: it protects nothing."""
    pod = a_pod("n1", do_not_disrupt="false")

    notice = pod_notice(pod, NOW)

    assert notice is not None
    assert (notice.reason, is_protected(pod, NOW)) == ("InvalidDoNotDisruptAnnotation", False)

"""Neither budgets nor do-not-disrupt hold a repair (GCR-15, BEH-44)."""

from dataclasses import replace

from dovetail.lifecycle.repair import find_repairs
from dovetail.model import names
from dovetail.model.pools import Budget, DisruptionPolicy
from tests.lifecycle.objects import a_new_pool, a_web_pod
from tests.lifecycle.test_gated import SILENT, a_claim_with_node, a_gated_snapshot, silent


def test_a_closed_budget_and_protections_hold_no_repair() -> None:
    claim, node = a_claim_with_node(1, silent(60))
    asks = {names.DO_NOT_DISRUPT: "true"}
    protected, its_claim = replace(node, annotations=asks), replace(claim, annotations=asks)
    closed = a_new_pool(disruption=DisruptionPolicy(budgets=(Budget(nodes="0"),)))
    pod = a_web_pod(node_name=node.name, do_not_disrupt="true")

    found = find_repairs(a_gated_snapshot(closed, its_claim, protected, pod), (SILENT,))

    assert [(order.claim.name, order.at_once) for order in found.orders] == [("claim-1", True)]

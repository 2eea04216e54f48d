"""A NodePool's budgets for what asks no budget here: repair, or what only a later Karpenter knows."""

from typing import Final

from dovetail.model.names import DO_NOT_REPAIR
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason

REPAIR_WORDS: Final = (
    "an unhealthy node is repaired (gate NodeRepair) by its delete, whatever budgets say; the annotation"
    f" {DO_NOT_REPAIR} keeps a node from it"
)


def idle_budgets(pool: NodePool) -> str:
    """Which reasons its budgets name in vain; empty: none."""
    asked = {reason.budget for reason in DisruptionReason}
    idle = sorted({reason for budget in pool.disruption.budgets for reason in budget.reasons or ()} - asked)
    if not idle:
        return ""
    return f"spec.disruption.budgets names the reason {', '.join(idle)}, which limits nothing here"

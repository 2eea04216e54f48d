"""By which policy are a NodePool's new nodes chosen?

Karpenter's unless the setting or the pool's annotation says cost. What cannot be read, or a pool with too few types for
the policy, is named; the default policy holds for that pool, and everybody else goes on.
"""

from collections.abc import Iterable
from math import inf

from dovetail.model import names
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.pools import NodePool
from dovetail.model.values.quoting import shown
from dovetail.model.values.setting_texts import MOST_NODE_COST
from dovetail.placement.facts.templates import Template
from dovetail.placement.index.index import Index
from dovetail.placement.settings import CostSettings


class PolicyError(ValueError):
    """A pool that the policy cannot be used for."""


def _asks_for_cost(pool: NodePool, settings: CostSettings) -> bool:
    text = pool.annotations.get(names.PLACEMENT)
    if text is None:
        return settings.everywhere
    if text not in ("cost", "default"):
        raise PolicyError(
            f"metadata.annotations[{names.PLACEMENT}]: {shown(text)} is no policy; write cost or default. "
            "The default policy is used"
        )
    return text == "cost"


def _node_cost(pool: NodePool, settings: CostSettings) -> float:
    text = pool.annotations.get(names.NODE_COST)
    if text is None:
        return settings.node_cost
    try:
        cost = float(text)
    except ValueError:
        cost = -inf
    if not 0 <= cost <= MOST_NODE_COST:  # a number that is none is neither
        raise PolicyError(
            f"metadata.annotations[{names.NODE_COST}]: {shown(text)} is no cost; write dollars an hour, from 0 to "
            f"{MOST_NODE_COST:,.0f}. The default policy is used"
        )
    return cost


def _judged(template: Template, settings: CostSettings) -> float | None:
    """What a node of the pool costs beside its instance; None: the pool is not under the policy."""
    pool = template.pool
    if not _asks_for_cost(pool, settings):
        return None
    cost = _node_cost(pool, settings)
    types = len(template.table.types_in(template.rows))
    if types < settings.types and pool.annotations.get(names.PLACEMENT) is not None:
        raise PolicyError(
            f"spec.template.spec.requirements: {types} instance types are left, and the policy cost keeps at least "
            f"{settings.types} for each node. The default policy is used"
        )
    return cost if types >= settings.types else None


def node_costs(templates: list[Template], settings: CostSettings, judging: Judging) -> dict[int, float]:
    """The templates under the policy, by number, with what each of their nodes costs beside its instance."""
    found: dict[int, float] = {}
    for template in templates:
        cost = judging.judge(template.pool, "placement policy", _judged, template, settings)
        if cost is not None and not isinstance(cost, Unjudged):
            found[template.number] = cost
    return found


def cost_pools(index: Index) -> dict[str, float]:
    """The pools under the policy, with what each of their nodes costs beside its instance."""
    costs = node_costs(index.templates, index.settings.cost, index.judging)
    return {template.pool.name: costs[template.number] for template in index.templates if template.number in costs}


def is_asked_for(pools: Iterable[NodePool], settings: CostSettings) -> bool:
    """Whether any pool might be under the policy: where none is, nobody needs to compile a cluster to know."""
    return settings.everywhere or any(names.PLACEMENT in pool.annotations for pool in pools)

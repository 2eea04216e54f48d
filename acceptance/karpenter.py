"""Karpenter's answers where Dovetail decides otherwise, as profiles: recorded results are compared under them.

Nothing that runs in a cluster sets them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from dovetail.disruption.profiles import Profile
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod, PodShape, SpreadConstraint
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.requirements import Requirement
from dovetail.placement import profiles as placement_profiles
from dovetail.placement.node_terms import NodeFilter, node_terms
from dovetail.placement.profiles import Draft, TermCursor, domains_of_each


def _exactly_none_left(nodes: int) -> bool:
    """A pool that is beyond its limit already may grow."""
    return nodes == 0


def _loose_identity(constraint: SpreadConstraint, shape: PodShape, _: NodeFilter | None) -> object:
    """Policies, tolerations and keys distinguish filters, their values do not; nor does minDomains (PLC-169)."""
    return (
        constraint.node_affinity_policy,
        constraint.node_taints_policy,
        frozenset(shape.tolerations),
        frozenset(frozenset((item.key, item.min_values) for item in term.values()) for term in node_terms(shape)),
    )


def _domains_named(item: Requirement) -> frozenset[str]:
    """Excluded values count as domains."""
    return item.values


def _rows_of_first_term_left(cursor: TermCursor, suiting: Sequence[int], of_types: Sequence[int]) -> int:
    """A term that does not suit a type is lost for all types and pools that follow."""
    if len(suiting) == 1:
        return suiting[0]
    mask = 0
    for rows in of_types:
        while cursor.first < len(suiting) - 1 and not suiting[cursor.first] & rows:
            cursor.first += 1
        mask |= suiting[cursor.first] & rows
    return mask


def _any_pod(_: Pod) -> bool:
    return True


def _mark_all_of_the_pool(draft: Draft, others: Iterable[Draft]) -> None:
    """All drafts of a pool are marked as its last one is."""
    for other in others:
        if other.template is draft.template:
            other.min_values_relaxed = draft.min_values_relaxed


def _is_marked_quiet(claim: NodeClaim, _pool: NodePool, _now: float) -> bool:
    """As the condition has it."""
    return claim.is_true(names.CONSOLIDATABLE)


KARPENTER_PLACEMENT: Final = placement_profiles.Profile(
    name="karpenter",
    is_node_limit_reached=_exactly_none_left,
    node_limit_charge=0,
    spread_identity=_loose_identity,
    domains_listed=_domains_named,
    daemon_rows=_rows_of_first_term_left,
    spread_choices=domains_of_each,
    unknown_volumes=({},),
    may_get_a_node=_any_pod,
    new_groups_look_back=False,
    inverse_groups_know_nodes=False,
    share_relaxed_mark=_mark_all_of_the_pool,
    minimum_counts_listed=False,
    single_pod_claims=False,
    asks_again=False,
    daemons_are_company=False,
    oversized_daemons_count=True,
)

KARPENTER: Final = Profile(
    name="karpenter",
    is_quiet=_is_marked_quiet,
    taken_nodes_leave=False,
    keeps_waiting_pods_apart=False,
    weighs_every_claim=False,
    replaces_in_waves=False,
    rules_out_by_price=False,
    tries_all_together_first=False,
    widens_the_search=False,
    most_consolidated=101,
    needs_launchable_spot=False,
    announces_probes=True,
    announces_shared_rejections=False,
    slows_what_comes_back=False,
    needs_a_pool=True,
    placement=KARPENTER_PLACEMENT,
)

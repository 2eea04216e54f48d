"""Where does Dovetail decide differently from Karpenter?

For each such place there is a function or a value for either way, and the rule that describes the difference. A profile
is one choice for all of them. `DOVETAIL` is what runs. The one that repeats Karpenter's answers is kept with the
recorded results that it is compared with. The engine asks the profile without knowing which one it was given.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.model.objects.pod_rules import is_active
from dovetail.model.pods import Pod, PodShape, SpreadConstraint
from dovetail.model.scheduling.requirements import Requirement, RequirementSet
from dovetail.placement.node_terms import NodeFilter


class TermCursor(Protocol):
    """Those of a DaemonSet's or-ed node terms that are still considered."""

    first: int


class Draft(Protocol):
    """What the mark of relaxed minimum values needs to know about a node under construction."""

    min_values_relaxed: bool

    @property
    def template(self) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One answer to each question on which Dovetail and Karpenter differ."""

    name: str
    # PLQ-1: whether so many nodes left to add count as none, and how many of them a new node uses up.
    is_node_limit_reached: Callable[[int], bool]
    node_limit_charge: int
    # PLQ-2, PLQ-3: what must be equal, besides key, skew and selector, for two spread constraints to count as one.
    spread_identity: Callable[[SpreadConstraint, PodShape, NodeFilter | None], object]
    # PLQ-4: the topology domains that a requirement of a pool or an instance type makes known.
    domains_listed: Callable[[Requirement], frozenset[str]]
    # PLQ-7: the rows on which a DaemonSet runs, given those that suit each of its or-ed terms and those of each type.
    daemon_rows: Callable[[TermCursor, Sequence[int], Sequence[int]], int]
    # PLQ-8: the domains that the spreads on one key may pick, best first, given the valid domains of each.
    spread_choices: Callable[[Sequence[Mapping[str, int]]], list[str]]
    # PLQ-13: the requirements assumed for volumes that cannot be looked up; None: the pod is refused.
    unknown_volumes: tuple[RequirementSet, ...] | None
    # PLQ-21: whether a pending pod may get a node.
    may_get_a_node: Callable[[Pod], bool]
    # PLQ-26: whether topology groups first seen in mid-pass count earlier placements.
    new_groups_look_back: bool
    # PLQ-37: whether, where pods keep others away, existing nodes are domains too, not only what pools offer.
    inverse_groups_know_nodes: bool
    # PLC-125: copies the mark of a new draft whose pool asks for minimum values to the drafts that share it.
    share_relaxed_mark: Callable[[Draft, Iterable[Draft]], None]
    # PLQ-63, PLC-122: whether a minimum of values is checked against what the claim would list, not only against the
    # types, whose excluded values do not count either.
    minimum_counts_listed: bool
    # PLQ-64: whether only one of the pods that share a ReadWriteOncePod claim may have a node.
    single_pod_claims: bool
    # PLQ-65: whether one claim asks for what was short a while ago if pods have nowhere else to go.
    asks_again: bool
    # PLQ-66: whether a DaemonSet's pod expected on a new node satisfies the affinity of pods that need it there.
    daemons_are_company: bool
    # PLQ-69: whether a DaemonSet counts also where its pod has no room even on an empty node.
    oversized_daemons_count: bool


def _none_left(nodes: int) -> bool:
    return nodes <= 0


def _exact_identity(constraint: SpreadConstraint, _: PodShape, node_filter: NodeFilter | None) -> object:
    """Spreads that differ in filter values or minDomains stay apart."""
    if node_filter is None:
        return constraint.min_domains, None
    tolerations = None if node_filter.tolerations is None else frozenset(node_filter.tolerations)
    return constraint.min_domains, tolerations, frozenset(frozenset(term.values()) for term in node_filter.branches)


def _domains_allowed(item: Requirement) -> frozenset[str]:
    """A value that a requirement excludes is no domain."""
    return frozenset() if item.complement else item.values


def _rows_of_any_term(_: TermCursor, suiting: Sequence[int], _of_types: Sequence[int]) -> int:
    """Every term is judged for every type and pool."""
    mask = 0
    for rows in suiting:
        mask |= rows
    return mask


def _agreed_domains(valid: Sequence[Mapping[str, int]]) -> list[str]:
    """Spreads on one key pick a domain that suits all of them, by counts and then by name."""
    if len(valid) == 1:
        return domains_of_each(valid)
    shared = set.intersection(*(set(counts) for counts in valid))
    return sorted(shared, key=lambda domain: (tuple(counts[domain] for counts in valid), domain))


def _mark_alone(_: Draft, _others: Iterable[Draft]) -> None:
    """Each draft has a mark of its own."""


def domains_of_each(valid: Sequence[Mapping[str, int]]) -> list[str]:
    """Each spread picks among its own domains of the lowest count; all must have picked the same."""
    lowest: list[set[str]] = []
    for counts in valid:
        least = min(counts.values(), default=0)
        lowest.append({domain for domain, count in counts.items() if count == least})
    return sorted(set.intersection(*lowest))


DOVETAIL = Profile(
    name="dovetail",
    is_node_limit_reached=_none_left,
    node_limit_charge=1,
    spread_identity=_exact_identity,
    domains_listed=_domains_allowed,
    daemon_rows=_rows_of_any_term,
    spread_choices=_agreed_domains,
    unknown_volumes=None,
    may_get_a_node=is_active,
    new_groups_look_back=True,
    inverse_groups_know_nodes=True,
    share_relaxed_mark=_mark_alone,
    minimum_counts_listed=True,
    single_pod_claims=True,
    asks_again=True,
    daemons_are_company=True,
    oversized_daemons_count=False,
)

"""What does a pod require about where other pods are?

Each spread constraint and each (anti-)affinity term of a pod's shape defines a *group* (PLC-167 to PLC-170): a key, the
pods that it counts, and the nodes on which it does. Equal groups are one object, shared by all pods that ask for the
same. What "equal" means for the filters of spread constraints is a matter of the profile (PLQ-2, PLQ-3).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from dovetail.model.objects.workloads import Namespace
from dovetail.model.pods import Expression, LabelSelector, PodShape, PodTerm, SpreadConstraint, Toleration
from dovetail.model.scheduling.key_aliases import canonical_key
from dovetail.model.scheduling.selectors import expression_matches, identity, matches
from dovetail.placement.node_terms import NodeFilter, node_terms

GroupKind = Literal["spread", "affinity", "anti", "inverse"]
UNBOUNDED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Term:
    """The definition of one group. Compared by identity: the `TermBook` makes equal terms the same object."""

    kind: GroupKind
    key: str
    namespaces: frozenset[str]
    selector: LabelSelector | None
    max_skew: int = UNBOUNDED
    min_domains: int | None = None
    filter: NodeFilter | None = None  # None: every node
    domain_tolerations: tuple[Toleration, ...] | None = None  # PLC-171: None: all domains of the universe

    def counts(self, shape: PodShape) -> bool:
        """Whether a pod of this shape is counted or, for an inverse group, kept away (PLC-173)."""
        if shape.namespace not in self.namespaces or self.selector is None:
            return False
        for expression in self.selector.expressions:  # noqa: SIM110 - all() takes longer, and this runs for every shape and term
            if not expression_matches(expression, shape.labels):
                return False
        return True

    def lists(self, shape: PodShape) -> bool:
        """Whether the term lists a pod of the cluster, where a missing selector lists everything (PLC-172)."""
        if self.selector is None:
            return shape.namespace in self.namespaces
        return self.counts(shape)


def _with_label_keys(constraint: SpreadConstraint, labels: Mapping[str, str]) -> LabelSelector | None:
    """The selector with the pod's own values of matchLabelKeys (PLC-168)."""
    added = tuple(
        Expression(key=key, operator="In", values=(labels[key],))
        for key in constraint.match_label_keys
        if key in labels
    )
    if not added:
        return constraint.selector
    present = constraint.selector.expressions if constraint.selector is not None else ()
    return LabelSelector(expressions=(*present, *added))


SpreadIdentity = Callable[[SpreadConstraint, PodShape, NodeFilter | None], object]


class TermBook:
    """All terms seen so far, each once."""

    def __init__(self, namespaces: Mapping[str, Namespace], spread_identity: SpreadIdentity) -> None:
        self._namespaces = namespaces
        self._spread_identity = spread_identity
        self._known: dict[object, Term] = {}
        self._repelling: dict[PodShape, list[Term]] = {}

    def _spread(self, constraint: SpreadConstraint, shape: PodShape) -> Term:
        selector = _with_label_keys(constraint, shape.labels)
        branches = node_terms(shape) if constraint.node_affinity_policy == "Honor" else ()
        tolerations = shape.tolerations if constraint.node_taints_policy == "Honor" else None
        node_filter = (
            NodeFilter(branches=branches, tolerations=tolerations) if branches or tolerations is not None else None
        )
        over = canonical_key(constraint.topology_key)
        key = (
            "spread",
            over,
            shape.namespace,
            constraint.max_skew,
            self._spread_identity(constraint, shape, node_filter),
            identity(selector),
        )
        term = self._known.get(key)
        if term is None:
            term = self._known[key] = Term(
                kind="spread",
                key=over,
                namespaces=frozenset((shape.namespace,)),
                selector=selector,
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains,
                filter=node_filter,
                domain_tolerations=tolerations,
            )
        return term

    def _affinity(self, kind: GroupKind, term: PodTerm, shape: PodShape) -> Term:
        namespaces = self._spaces(term, shape.namespace)
        over = canonical_key(term.topology_key)
        key = (kind, over, namespaces, identity(term.selector))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Term(
                kind=kind,
                key=over,
                namespaces=namespaces,
                selector=term.selector,
                domain_tolerations=shape.tolerations,  # PLQ-17: those of the first pod that asks
            )
        return found

    def _spaces(self, term: PodTerm, own: str) -> frozenset[str]:
        """The listed namespaces and those that the selector matches, or the pod's own if neither is given (PLC-167)."""
        if not term.namespaces and term.namespace_selector is None:
            return frozenset((own,))
        selected = (name for name, space in self._namespaces.items() if matches(term.namespace_selector, space.labels))
        return frozenset((*term.namespaces, *selected))

    def owned(self, shape: PodShape, preferences: bool) -> list[Term]:
        """The groups that bind a pod of this shape, in upstream's order (PLC-167)."""
        found = [
            self._spread(constraint, shape)
            for constraint in shape.spread
            if preferences or constraint.when_unsatisfiable == "DoNotSchedule"
        ]
        found += [self._affinity("affinity", term, shape) for term in shape.affinity]
        if preferences:
            found += [self._affinity("affinity", term, shape) for term in shape.preferred_affinity]
        found += [self._affinity("anti", term, shape) for term in shape.anti_affinity]
        if preferences:
            found += [self._affinity("anti", term, shape) for term in shape.preferred_anti_affinity]
        return list(dict.fromkeys(found))

    def repelling(self, shape: PodShape) -> list[Term]:
        """The inverse groups through which such a pod keeps others away; preferred terms never do (PLC-181a)."""
        if not shape.anti_affinity:
            return []
        known = self._repelling.get(shape)
        if known is None:
            found = [self._affinity("inverse", term, shape) for term in shape.anti_affinity]
            known = self._repelling[shape] = list(dict.fromkeys(found))
        return known

"""How many terms of one pod are looked at one by one, and which expressions of a long one?"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeVar

from dovetail.model import names
from dovetail.model.pods import Expression, NodeTerm, PodShape, PodTerm
from dovetail.model.scheduling.key_aliases import canonical_key
from dovetail.model.scheduling.requirements import NEGATIVE, from_expressions
from dovetail.model.snapshot import Snapshot
from dovetail.placement.facts.claim_rules import POD_LABELS, SIMULATION_KEYS

Term = TypeVar("Term", NodeTerm, PodTerm)

MOST: Final = 100  # terms of one kind that are given up one by one; each makes a shape and a try of its own


def within_reason(shape: PodShape) -> PodShape:
    """The shape with at most a hundred terms of each kind that may be given up, the heaviest of them.

    The API server admits thousands of preferences in one pod. Those beyond a hundred are given up together, before the
    pod is tried for the first time; of terms that are or-ed the first hundred are tried.
    """
    soft = [constraint for constraint in shape.spread if constraint.when_unsatisfiable == "ScheduleAnyway"]
    lists = (shape.required_terms, shape.preferred_terms, shape.preferred_affinity, shape.preferred_anti_affinity, soft)
    if all(len(terms) <= MOST for terms in lists):
        return shape
    beyond = frozenset(map(id, soft[MOST:]))
    return replace(
        shape,
        required_terms=shape.required_terms[:MOST],
        preferred_terms=_heaviest(shape.preferred_terms),
        preferred_affinity=_heaviest(shape.preferred_affinity),
        preferred_anti_affinity=_heaviest(shape.preferred_anti_affinity),
        spread=tuple(constraint for constraint in shape.spread if id(constraint) not in beyond),
    )


def _heaviest(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """All terms, or the heaviest hundred; equally heavy ones in their order."""
    return terms if len(terms) <= MOST else tuple(sorted(terms, key=lambda term: -term.weight)[:MOST])


class KnownLabels:
    """The labels that a node has or could have."""

    def __init__(self, snapshot: Snapshot, well_known: frozenset[str]) -> None:
        self._snapshot, self._well_known = snapshot, well_known

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(map(canonical_key, self._listed())) | self._well_known | SIMULATION_KEYS | {names.HOSTNAME}

    def _listed(self) -> Iterator[str]:
        labelled: list[Mapping[str, str]] = [item.labels for item in self._snapshot.nodes.values()]
        labelled += [claim.labels for claim in self._snapshot.claims.values()]
        labelled += [pool.node_labels for pool in self._snapshot.pools.values()]
        for labels in labelled:
            yield from labels
        required = [pool.template.requirements for pool in self._snapshot.pools.values()]
        required += [item.requirements for found in self._snapshot.catalogues.values() for item in found.types]
        for types in (found.types for found in self._snapshot.catalogues.values()):
            required += [offering.requirements for item in types for offering in item.offerings]
        for expressions in {id(each): each for each in required}.values():
            yield from (expression.key for expression in expressions)

    def narrowed(self, shape: PodShape) -> PodShape:
        """The shape with what its long terms say of these labels.

        The API server admits ten thousand expressions in one term, and each would be asked of each node and NodePool.
        What a label must not be holds where the label is unknown; one that must be there is enough to rule all out.
        """
        if max([len(shape.node_selector), *(len(term.expressions) for term in shape.required_terms)]) <= POD_LABELS:
            return shape
        unknown = [item for item in shape.node_selector if canonical_key(item[0]) not in self._keys]
        return replace(
            shape,
            node_selector=tuple(unknown[:1]) or shape.node_selector,
            required_terms=tuple([self._narrowed_term(term) for term in shape.required_terms]),
        )

    def _narrowed_term(self, term: NodeTerm) -> NodeTerm:
        if len(term.expressions) <= POD_LABELS:
            return term
        of_label: dict[str, list[Expression]] = {}
        for expression in term.expressions:
            of_label.setdefault(canonical_key(expression.key), []).append(expression)
        unknown = from_expressions([each for key in of_label.keys() - self._keys for each in of_label[key]])
        missing = min((key for key, item in unknown.items() if item.operator not in NEGATIVE), default=None)
        kept = [missing] if missing is not None else [key for key in of_label if key in self._keys]
        return replace(term, expressions=tuple([each for key in kept for each in of_label[key]]))

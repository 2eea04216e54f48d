"""How many terms of one pod are looked at one by one?"""

from dataclasses import replace
from typing import Final, TypeVar

from dovetail.model.pods import NodeTerm, PodShape, PodTerm

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

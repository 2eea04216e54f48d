"""What does a pod give up next when it finds no place?

A pod that failed gives up one thing at a time, in a fixed order (PLC-101 to PLC-111): other required node terms before
any preference, the heaviest preference first. The pod itself never changes: each step yields another shape.
"""

from dataclasses import replace
from typing import Final, TypeVar

from dovetail.model.pods import NodeTerm, PodShape, PodTerm, Toleration
from dovetail.placement.constraints.pod_needs import by_weight
from dovetail.placement.search.go_sort import unstable_sorted

Term = TypeVar("Term", NodeTerm, PodTerm)

MOST: Final = 100  # terms of one kind that are given up one by one; each makes a shape and a try of its own

PREFER_NO_SCHEDULE = Toleration(operator="Exists", effect="PreferNoSchedule")


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
    """All terms, or the heaviest hundred; equals in their order."""
    return terms if len(terms) <= MOST else tuple(sorted(terms, key=lambda term: -term.weight)[:MOST])


def _without_heaviest(terms: tuple[PodTerm, ...]) -> tuple[PodTerm, ...]:
    return tuple(unstable_sorted(list(terms), lambda term: -term.weight)[1:])


def _without_soft_spread(shape: PodShape) -> PodShape | None:
    """Without the first ScheduleAnyway constraint; the last constraint of the list takes its place (PLC-107)."""
    for index, constraint in enumerate(shape.spread):
        if constraint.when_unsatisfiable == "ScheduleAnyway":
            rest = list(shape.spread)
            rest[index] = rest[-1]
            return replace(shape, spread=tuple(rest[:-1]))
    return None


def relaxed(shape: PodShape, *, prefer_no_schedule: bool) -> PodShape | None:
    """The shape after one step, or None if nothing is left to give up."""
    if len(shape.required_terms) > 1:  # PLC-103
        return replace(shape, required_terms=shape.required_terms[1:])
    if shape.preferred_affinity:  # PLC-104
        return replace(shape, preferred_affinity=_without_heaviest(shape.preferred_affinity))
    if shape.preferred_anti_affinity:  # PLC-105
        return replace(shape, preferred_anti_affinity=_without_heaviest(shape.preferred_anti_affinity))
    if shape.preferred_terms:  # PLC-106
        return replace(shape, preferred_terms=tuple(by_weight(shape.preferred_terms)[1:]))
    if (softer := _without_soft_spread(shape)) is not None:
        return softer
    if prefer_no_schedule and PREFER_NO_SCHEDULE not in shape.tolerations:  # PLC-108
        return replace(shape, tolerations=(*shape.tolerations, PREFER_NO_SCHEDULE))
    return None

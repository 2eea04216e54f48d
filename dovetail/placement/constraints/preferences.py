"""What does a pod give up next when it finds no place?

A pod that failed gives up one thing at a time, in a fixed order (PLC-101 to PLC-111): other required node terms before
any preference, the heaviest preference first. The pod itself never changes: each step yields another shape.
"""

from dataclasses import replace

from dovetail.model.pods import PodShape, PodTerm
from dovetail.placement.facts.overhead import PREFER_NO_SCHEDULE
from dovetail.placement.facts.pod_needs import by_weight
from dovetail.placement.go_sort import unstable_sorted


def _without_heaviest(terms: tuple[PodTerm, ...]) -> tuple[PodTerm, ...]:
    return tuple(unstable_sorted(list(terms), lambda term: -term.weight)[1:])


def _without_soft_spread(shape: PodShape) -> PodShape | None:
    """The shape without its first ScheduleAnyway constraint; the last constraint of the list takes its place
    (PLC-107)."""
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

"""What does a pod require of a node's labels?

Every shape has such requirements, and so has each relaxed form of it (PLC-45). Of several required terms only the first
counts; each later one counts once relaxation has dropped those before it.
"""

from dovetail.model.pods import NodeTerm, PodShape
from dovetail.model.scheduling.requirements import Requirement, from_expression, requirement, requirement_set
from dovetail.placement.go_sort import unstable_sorted


def by_weight(terms: tuple[NodeTerm, ...]) -> list[NodeTerm]:
    """Preferred terms, heaviest first (PLC-45); above twelve, equals are in the order of upstream's unstable sort."""
    return unstable_sorted(list(terms), lambda term: -term.weight)


def pod_requirements(shape: PodShape, *, preferences: bool) -> dict[str, Requirement]:
    """The node selector, the heaviest preferred term if asked for, and the first required term together (PLC-45)."""
    found = [requirement(key, "In", (value,)) for key, value in shape.node_selector]
    if preferences and shape.preferred_terms:
        found += [from_expression(expression) for expression in by_weight(shape.preferred_terms)[0].expressions]
    if shape.required_terms:
        found += [from_expression(expression) for expression in shape.required_terms[0].expressions]
    return requirement_set(found)

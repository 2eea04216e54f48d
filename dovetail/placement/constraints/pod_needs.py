"""What does a pod require of a node's labels?

Asked for every shape, and again for every relaxed form of it (S-45). The trap avoided: only the first required term
counts; the others wait until relaxation has dropped it.
"""

from dovetail.model.pods import NodeTerm, PodShape
from dovetail.model.requirements import Requirement, RequirementSet, from_expression, requirement, requirement_set
from dovetail.placement.search.go_sort import unstable_sorted


def by_weight(terms: tuple[NodeTerm, ...]) -> list[NodeTerm]:
    """S-45: preferred terms, heaviest first; above twelve, ties fall as upstream's unstable sort lets them."""
    return unstable_sorted(list(terms), lambda term: -term.weight)


def pod_requirements(shape: PodShape, *, preferences: bool) -> dict[str, Requirement]:
    """S-45: node selector, the heaviest preferred term if asked for, and the first required term, intersected."""
    found = [requirement(key, "In", (value,)) for key, value in shape.node_selector]
    if preferences and shape.preferred_terms:
        found += [from_expression(expression) for expression in by_weight(shape.preferred_terms)[0].expressions]
    if shape.required_terms:
        found += [from_expression(expression) for expression in shape.required_terms[0].expressions]
    return requirement_set(found)


def node_terms(shape: PodShape) -> tuple[RequirementSet, ...]:
    """The node selector with each required term; a node that meets any of them meets the pod's own demands."""
    selector = [requirement(key, "In", (value,)) for key, value in shape.node_selector]
    if not shape.required_terms:
        return (requirement_set(selector),) if selector else ()
    return tuple(
        requirement_set([*selector, *(from_expression(e) for e in term.expressions)]) for term in shape.required_terms
    )

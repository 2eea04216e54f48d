"""On which nodes may a pod run, by their labels and taints?"""

from dataclasses import dataclass

from dovetail.model.pods import PodShape, Toleration
from dovetail.model.scheduling.requirements import (
    RequirementSet,
    compatible,
    from_expression,
    requirement,
    requirement_set,
)
from dovetail.model.scheduling.taints import Taint, untolerated


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFilter:
    """The nodes whose pods a spread counts (PLC-170)."""

    branches: tuple[RequirementSet, ...]  # node selector and one required term each; any of them suffices
    tolerations: tuple[Toleration, ...] | None  # None: taints do not matter

    def accepts(self, taints: tuple[Taint, ...], have: RequirementSet) -> bool:
        """Whether pods on such a node count; no label may be undefined (PLQ-9)."""
        if self.branches and not any(compatible(have, branch) for branch in self.branches):
            return False
        return self.tolerations is None or untolerated(taints, self.tolerations) is None


def node_terms(shape: PodShape) -> tuple[RequirementSet, ...]:
    """The node selector with each required term; a node that meets one of them meets what the pod itself asks."""
    selector = [requirement(key, "In", (value,)) for key, value in shape.node_selector]
    if not shape.required_terms:
        return (requirement_set(selector),) if selector else ()
    return tuple(
        requirement_set([*selector, *(from_expression(e) for e in term.expressions)]) for term in shape.required_terms
    )

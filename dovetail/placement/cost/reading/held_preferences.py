"""Which preferences of a pod hold on its node although nobody asks for them any more?

A pod asks for its heaviest preference of nodes alone, and gives it up where no node has room for it; the node that it
finds then may have what the pod would like all the same. A move of the pod must keep that.
"""

from dovetail.model.pods import Pod
from dovetail.model.scheduling.requirements import RequirementSet, from_expressions, merge
from dovetail.placement.constraints.demands import ShapeInPass
from dovetail.placement.facts.pod_needs import by_weight
from dovetail.placement.facts.states import Needs, NeedsPool, State


class HeldPreferences:
    """The held preferences of the pods of one pass."""

    def __init__(self) -> None:
        self._pool = NeedsPool()
        self._known: dict[tuple[int, int, int], Needs] = {}

    def of(self, pod: Pod, shape: ShapeInPass, state: State) -> Needs:
        """What the node, whose requirements are `state` now, has of what the pod prefers and does not ask for."""
        if not pod.shape.preferred_terms or not shape.facts.preferences:
            return self._pool.nothing
        key = (id(pod.shape), id(shape.facts), id(state))
        if key not in self._known:
            asked = by_weight(shape.facts.pod_shape.preferred_terms)[:1]
            found: RequirementSet = {}
            for term in pod.shape.preferred_terms:
                wanted = from_expressions(term.expressions)
                if term not in asked and holds(wanted, state):
                    found = merge(found, wanted)
            self._known[key] = self._pool.intern(dict(found))
        return self._known[key]


def holds(wanted: RequirementSet, state: State) -> bool:
    """Whether every node of these requirements has what is wanted."""
    for key, item in wanted.items():
        have = state.requirements.get(key)
        if have is None or have.complement or not have.values or not all(map(item.has, have.values)):
            return False
    return True

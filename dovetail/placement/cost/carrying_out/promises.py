"""Does a pass with cheaper nodes keep what Karpenter's own answer gave its pods?

A proposal is made so that it does. But the pass that carries it out places a pod anywhere where the rules refuse it its
place, and what was to be kept may be lost there. Such an answer is not used, whatever it saves.
"""

from dovetail.model.scheduling.requirements import RequirementSet, from_expressions
from dovetail.placement.cost.reading.held_preferences import holds
from dovetail.placement.facts.states import State
from dovetail.placement.search.solve import Pass


def keeps_promises(run: Pass, before: Pass) -> bool:
    return (
        _places_all(run, before)
        and _keeps_nodes(run, before)
        and _keeps_pools(run, before)
        and _keeps_reservations(run, before)
        and _keeps_preferences(run, before)
    )


def _places_all(run: Pass, before: Pass) -> bool:
    """Whether every pod that had a place has one, and none was left out for want of time."""
    return run.complete and set(run.refused) <= set(before.refused)


def _keeps_nodes(run: Pass, before: Pass) -> bool:
    """Whether pods for existing nodes are on the same ones."""
    found = {pod.uid: bit for bit, pods in run.nodes.placed.items() for pod in pods}
    return all(found.get(pod.uid) == bit for bit, pods in before.nodes.placed.items() for pod in pods)


def _keeps_pools(run: Pass, before: Pass) -> bool:
    """Whether no pod has a lighter pool than before: limits may turn away some that were to stay."""
    if len({template.pool.weight for template in run.index.templates}) < 2:
        return True
    weights = {pod.uid: draft.template.pool.weight for draft in before.drafts.made for pod in draft.pods}
    found = ((draft.template.pool.weight, pod.uid) for draft in run.drafts.made for pod in draft.pods)
    return all(weight >= weights.get(uid, weight) for weight, uid in found)


def _keeps_reservations(run: Pass, before: Pass) -> bool:
    """Whether no fewer nodes are of reserved capacity: new ones may have been promised what others had."""
    return sum(bool(draft.held) for draft in run.drafts.made) >= sum(bool(draft.held) for draft in before.drafts.made)


def _keeps_preferences(run: Pass, before: Pass) -> bool:
    """Whether every preference of nodes that held still holds."""
    if not run.index.settings.respects_preferences:
        return True
    known: dict[tuple[int, State], list[RequirementSet]] = {}
    liked: dict[str, list[RequirementSet]] = {}
    for draft in before.drafts.made:
        for pod in draft.pods:
            if pod.shape.preferred_terms:
                key = (id(pod.shape), draft.state)
                if key not in known:
                    wanted = [from_expressions(term.expressions) for term in pod.shape.preferred_terms]
                    known[key] = [each for each in wanted if holds(each, draft.state)]
                liked[pod.uid] = known[key]
    return all(
        holds(each, draft.state) for draft in run.drafts.made for pod in draft.pods for each in liked.get(pod.uid, ())
    )

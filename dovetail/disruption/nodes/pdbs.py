"""Which PodDisruptionBudgets speak of a pod, and whether they forbid its eviction (D-43 to D-47).

Asked for every pod of every candidate, so a selector is evaluated once per pod shape. The trap avoided: two budgets on
one pod always block, because the eviction API refuses such a pod whatever either allows.
"""

from collections.abc import Iterable

from dovetail.model.pod_rules import is_evictable, is_protected, is_reschedulable
from dovetail.model.pods import Pod, PodShape
from dovetail.model.selectors import matches
from dovetail.model.workloads import PodDisruptionBudget


class PdbIndex:
    """The budgets of a snapshot, by the shape of pod that they speak of."""

    def __init__(self, pdbs: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for pdb in sorted(pdbs, key=lambda b: (b.namespace, b.name)):
            self._by_namespace.setdefault(pdb.namespace, []).append(pdb)
        self._by_shape: dict[int, tuple[PodShape, tuple[PodDisruptionBudget, ...]]] = {}

    def of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The budgets that speak of this pod, by name."""
        local = self._by_namespace.get(pod.shape.namespace)
        if local is None:
            return ()
        # Kept with the shape itself: an id alone may be used again after a shape is gone.
        known = self._by_shape.get(id(pod.shape))
        if known is None:
            matching = tuple(b for b in local if matches(b.selector, pod.shape.labels))
            known = self._by_shape[id(pod.shape)] = (pod.shape, matching)
        return known[1]

    def blocking(self, pod: Pod, now: float) -> tuple[PodDisruptionBudget, ...]:
        """D-43: the budgets that forbid evicting this pod now; several where there is more than one at all."""
        matching = self.of(pod)
        if not matching or not is_evictable(pod, now):
            return ()
        if len(matching) > 1:
            return matching
        only = matching[0]
        if only.always_allow_unhealthy and pod.ready is False:
            return ()
        return matching if only.disruptions_allowed == 0 else ()

    def blocks_for_good(self, pod: Pod, now: float) -> bool:
        """D-46: the budget can never allow it, whatever the other pods do."""
        matching = self.of(pod)
        if not matching or not is_evictable(pod, now):
            return False
        if len(matching) > 1:
            return True
        only = matching[0]
        if only.always_allow_unhealthy and pod.ready is False:
            return False
        return only.max_unavailable in ("0", "0%") or only.min_available == "100%"

    def needs_room(self, pod: Pod, now: float) -> bool:
        """D-47: it will have to go somewhere else when its node goes, and it can be made to."""
        if not is_reschedulable(pod):
            return False
        return not is_protected(pod, now) and not self.blocks_for_good(pod, now)

"""Which PodDisruptionBudgets select a pod, and whether they forbid its eviction, now or for good (DIS-43 to DIS-47,
PLC-32). A pod that is moved by a roll-out is not evicted, so they do not hold it (TRM-44).

This is asked for every pod of every candidate, so a selector is read once and evaluated once per pod shape. Two budgets
on one pod always forbid it: the eviction API refuses such a pod, whatever either of them allows.
"""

from collections.abc import Iterable

from dovetail.model.objects.pod_index import NodePods, asking_to_stay
from dovetail.model.objects.pod_rules import is_evictable, is_protected, is_reschedulable
from dovetail.model.objects.workloads import PodDisruptionBudget
from dovetail.model.places.moved_pods import MovablePods, movable_pods
from dovetail.model.pods import Pod, PodShape
from dovetail.model.scheduling.selectors import SelectorByLabel
from dovetail.model.snapshot import Snapshot


class PdbIndex:
    """The budgets of one moment, by the pod shape that they select."""

    def __init__(self, pdbs: Iterable[PodDisruptionBudget], now: float, moves: MovablePods | None = None) -> None:
        self._now, self.moves = now, moves
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        self._selectors: dict[str, list[SelectorByLabel]] = {}  # of those, by namespace, once they are asked
        for pdb in sorted(pdbs, key=lambda b: (b.namespace, b.name)):
            self._by_namespace.setdefault(pdb.namespace, []).append(pdb)
        self._by_shape: dict[int, tuple[PodShape, tuple[PodDisruptionBudget, ...]]] = {}

    @property
    def any(self) -> bool:
        return bool(self._by_namespace)

    def leave_alone(self, pods: NodePods) -> bool:
        """Whether nothing keeps any of these in place: no annotation, no budget of its namespace, no roll-out."""
        if self.moves is not None or pods.kept(asking_to_stay):
            return False
        return not self._by_namespace or self._by_namespace.keys().isdisjoint(pods.kept(_namespaces))

    def of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The budgets that select this pod, by name."""
        local = self._by_namespace.get(pod.shape.namespace)
        if local is None:
            return ()
        # Kept with the shape itself: an id alone may be used again after a shape is gone.
        known = self._by_shape.get(id(pod.shape))
        if known is None:
            selectors = self._selectors.get(pod.shape.namespace)
            if selectors is None:
                selectors = self._selectors[pod.shape.namespace] = [
                    SelectorByLabel(budget.selector) for budget in local
                ]
            labels = pod.shape.labels
            matching = tuple(b for b, selects in zip(local, selectors, strict=True) if selects.matches(labels))
            known = self._by_shape[id(pod.shape)] = (pod.shape, matching)
        return known[1]

    def _holding(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The budgets that concern this pod's eviction; none if it would not be evicted, or may always leave."""
        matching = self.of(pod)
        if not matching or not is_evictable(pod, self._now) or (self.moves and self.moves.moves(pod)):
            return ()
        unhealthy_may_go = len(matching) == 1 and matching[0].always_allow_unhealthy and pod.ready is False
        return () if unhealthy_may_go else matching

    def blocking(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The budgets that forbid evicting this pod now; all of them if more than one selects it (DIS-43)."""
        if pod.shape.namespace not in self._by_namespace:
            return ()
        holding = self._holding(pod)
        return holding if len(holding) > 1 or any(b.disruptions_allowed == 0 for b in holding) else ()

    def blocks_for_good(self, pod: Pod) -> bool:
        """Whether its eviction can never be granted, whatever the other pods do (DIS-46)."""
        holding = self._holding(pod)
        return len(holding) > 1 or any(b.max_unavailable in ("0", "0%") or b.min_available == "100%" for b in holding)

    def says_of_move(self, pod: Pod) -> str:
        """How a roll-out of its Deployment bears on its staying, in words; empty if it does not."""
        found = self.moves.verdict(pod) if self.moves is not None else None
        if found is None or not found.says:
            return ""
        return f"move of {pod.key}" if found.moves else f"{pod.key}: {found.says}"

    def needs_room(self, pod: Pod, *, ends: bool = False) -> bool:
        """Whether it will need another place when its node leaves, and can be made to leave (PLC-30, DIS-47). `ends`:
        its instance ends soon, and asks neither it nor its budgets."""
        if not is_reschedulable(pod):
            return False
        return ends or (not is_protected(pod, self._now) and not self.blocks_for_good(pod) and not self._is_held(pod))

    def _is_held(self, pod: Pod) -> bool:
        return bool(self.moves and self.moves.why_held(pod))


def _namespaces(pods: NodePods) -> frozenset[str]:
    return frozenset([pod.shape.namespace for pod in pods])


def pdbs_of(snapshot: Snapshot) -> PdbIndex:
    """The budgets of a snapshot, and which pods need none because they are moved by a roll-out."""
    return PdbIndex(snapshot.pdbs.values(), snapshot.now, movable_pods(snapshot))

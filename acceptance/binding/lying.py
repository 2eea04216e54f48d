"""Pods on nodes, as filters and scores count them: those that run there, or those that are nominated."""

import numpy as np

from acceptance.binding.pods import Kind, Term
from acceptance.binding.view import Floats, View


class Lying:
    """How much of each node is taken, and by what pods."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._nodes = len(view.nodes)
        self.pods = 0
        self.taken: Floats = np.zeros((self._nodes, len(view.resources)))
        self.scored: Floats = np.zeros((self._nodes, 2))
        self.counts: dict[Term, Floats] = {term: np.zeros(self._nodes) for term in view.terms()}  # that a term selects
        self.owners: dict[tuple[Term, int], Floats] = {}  # that have a term, by its weight; 0: they keep apart by it
        self.ports: dict[tuple[str, int], Floats] = {}
        self._touched: dict[int, list[Floats]] = {}

    def add(self, kind: Kind, at: int, pods: int = 1) -> None:
        """So many pods are there, or no longer where it is a negative number."""
        size, scored = self._view.size(kind)
        self.pods += pods
        self.taken[at] += pods * size
        self.scored[at] += pods * scored
        for counts in self._counting(kind):
            counts[at] += pods

    def _counting(self, kind: Kind) -> list[Floats]:
        """Everything that counts such a pod."""
        known = self._touched.get(kind.number)
        if known is None:
            asked = [*((t, 0) for t in kind.apart), *((t, 1) for t in kind.affine), *kind.preferred]
            known = [counts for term, counts in self.counts.items() if self._view.selects(term, kind)]
            known += [self.owners.setdefault(each, np.zeros(self._nodes)) for each in asked]
            known += [self.ports.setdefault(port, np.zeros(self._nodes)) for port in kind.ports]
            self._touched[kind.number] = known
        return known

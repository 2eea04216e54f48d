"""How much does the kube-scheduler prefer each node that holds a pod?

By the default weights: taints 3, node affinity 2, spread 2, affinity between pods 2, least allocated 1, balanced
allocation 1. Nominated pods do not count here.
"""

from math import log

import numpy as np

from acceptance.binding.lying import Lying
from acceptance.binding.pods import Kind
from acceptance.binding.view import Flags, Floats, Integers, View


class Scores:
    """All scores, over what runs on the nodes."""

    def __init__(self, view: View, up: Flags, running: Lying) -> None:
        """`up` and `running` change while pods are bound."""
        self._view = view
        self._up = up
        self._running = running

    def of(self, kind: Kind, found: Integers) -> Floats:
        """The score of each of these nodes for such a pod."""
        raw = self._view.of_labels(kind)[1][found]
        total: Floats = 3 * _normal(raw[:, 0], inverted=True) + 2 * _normal(raw[:, 1])
        total += self._resources_score(kind, found)
        total += 2 * self._spread_score(kind, found)
        return total + 2 * self._affinity_score(kind, found)

    def _resources_score(self, kind: Kind, found: Integers) -> Floats:
        whole = np.maximum(self._view.scored_room[found], 1e-9)
        scored = self._view.size(kind)[1]
        after = self._running.scored[found] + scored
        least = np.floor(np.where(after > whole, 0.0, (whole - after) * 100 / whole)).sum(axis=1) // 2
        with_pod, without = _balance(after / whole), _balance(self._running.scored[found] / whole)
        return np.asarray(least + 50 + np.trunc((50 + with_pod - without) / 2), dtype=np.float64)

    def _spread_score(self, kind: Kind, found: Integers) -> Floats:
        soft = [spread for spread in kind.spreads if not spread.required]
        if not soft:
            return np.zeros(len(found))
        total = np.zeros(len(found))
        for spread in soft:
            code, sums = self._view.by_value(self._running.counts[spread.term], spread.term.key, self._up)
            values = code[found]
            weight = log(len(np.unique(values[values >= 0])) + 2)
            total += np.where(values >= 0, sums[values] * weight + spread.skew - 1, 0.0)
        total = np.round(total)
        most, least = float(total.max()), float(total.min())
        return np.full(len(found), 100.0) if most == 0 else np.floor(100 * (most + least - total) / most)

    def _affinity_score(self, kind: Kind, found: Integers) -> Floats:
        total = np.zeros(len(found))
        for term, weight in kind.preferred:
            code, sums = self._view.by_value(self._running.counts[term], term.key)
            total += np.where(code[found] >= 0, sums[code[found]] * weight, 0.0)
        for (term, weight), owners in self._running.owners.items():
            if weight and self._view.selects(term, kind):
                code, sums = self._view.by_value(owners, term.key)
                total += np.where(code[found] >= 0, sums[code[found]] * weight, 0.0)
        most, least = float(total.max()), float(total.min())
        return np.floor(100 * (total - least) / (most - least)) if most > least else np.zeros(len(found))


def _normal(raw: Floats, inverted: bool = False) -> Floats:
    """From 0 to 100 in proportion to the highest."""
    most = float(raw.max())
    scaled: Floats = np.floor(raw * 100 / most) if most else np.zeros(len(raw))
    return 100 - scaled if inverted else scaled


def _balance(share: Floats) -> Floats:
    share = np.minimum(share, 1.0)
    return np.floor((1 - np.abs(share[:, 0] - share[:, 1]) / 2) * 100)

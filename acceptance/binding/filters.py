"""Which nodes hold a pod by every rule: taints, labels, room, host ports, required spread, affinity, anti-affinity."""

from collections.abc import Iterable, Sequence

import numpy as np

from acceptance.binding.lying import Lying
from acceptance.binding.pods import Kind, Spread, Term
from acceptance.binding.view import Flags, Floats, Integers, View


class Filters:
    """All filters, over what runs on the nodes.

    With nominated pods a node must hold the pod twice: beside what runs, and with the pods nominated to it added. Those
    nominated to other nodes count for nothing there, not even in the same zone.
    """

    def __init__(self, view: View, up: Flags, running: Lying) -> None:
        """`up` and `running` change while pods are bound."""
        self._view = view
        self._up = up
        self._running = running

    def holding(self, kind: Kind, nominated: Sequence[Lying] = ()) -> Flags:
        """The nodes that are up and hold such a pod."""
        suits = self._holding(kind, self._up, ())
        if suits.any() and any(each.pods for each in nominated):
            suits = self._holding(kind, suits, nominated)
        return suits

    def _holding(self, kind: Kind, among: Flags, added: Sequence[Lying]) -> Flags:
        size, _ = self._view.size(kind)
        taken = self._running.taken
        for each in added:
            taken = taken + each.taken
        suits: Flags = among & self._view.of_labels(kind)[0]
        suits &= (self._view.room - taken >= size - 1e-6).all(axis=1)
        for lying in (self._running, *added):
            for port in kind.ports:
                suits &= lying.ports.get(port, np.zeros(len(suits))) == 0
        if suits.any():
            suits &= self._apart(kind, added)
        if suits.any() and kind.affine:
            suits &= self._affine(kind, added)
        for spread in kind.spreads:
            if spread.required and suits.any():
                suits &= self._level(kind, spread, added)
        return suits

    def _counted(self, term: Term, added: Sequence[Lying]) -> Floats:
        """Per node the pods that a term selects: of its domain, and those added to the node itself."""
        code, sums = self._view.by_value(self._running.counts[term], term.key)
        return np.where(code < 0, 0.0, sums[code] + _on_nodes(term, added))

    def _apart(self, kind: Kind, added: Sequence[Lying]) -> Flags:
        fine: Flags = np.ones(len(self._view.nodes), dtype=bool)
        for term in kind.apart:
            fine &= self._counted(term, added) == 0
        for lying in (self._running, *added):
            for (term, weight), owners in lying.owners.items():
                if weight == 0 and self._view.selects(term, kind):
                    code, sums = self._view.by_value(owners, term.key)
                    counted = sums[code] if lying is self._running else owners
                    fine &= (code < 0) | (counted == 0)
        return fine

    def _affine(self, kind: Kind, added: Sequence[Lying]) -> Flags:
        fine: Flags = np.ones(len(self._view.nodes), dtype=bool)
        there: Floats = np.zeros(len(self._view.nodes))
        for term in kind.affine:
            counted = self._counted(term, added)
            code = self._view.code(term.key)
            fine &= (code >= 0) & (counted > 0)
            running = self._running.counts[term][code >= 0].sum()
            there += running + np.where(code >= 0, _on_nodes(term, added), 0.0)
        if all(self._view.selects(term, kind) for term in kind.affine):  # it may be the first of its like
            fine |= (there == 0) & self._have_all(kind.affine)
        return fine

    def _have_all(self, terms: Iterable[Term]) -> Flags:
        found: Flags = np.ones(len(self._view.nodes), dtype=bool)
        for term in terms:
            found &= self._view.code(term.key) >= 0
        return found

    def _level(self, kind: Kind, spread: Spread, added: Sequence[Lying]) -> Flags:
        term = spread.term
        counted = self._up & self._view.by_labels_alone(kind)
        code, sums = self._view.by_value(np.where(counted, self._running.counts[term], 0.0), term.key)
        present = np.zeros(len(sums), dtype=bool)
        present[code[counted & (code >= 0)]] = True
        more = np.where(counted, _on_nodes(term, added), 0.0)
        least = _least_with(sums, present, code, more) if present.sum() >= spread.least else np.zeros(len(code))
        own = float(self._view.selects(term, kind))
        level: Flags = (code >= 0) & present[code] & (sums[code] + more + own - least <= spread.skew)
        return level


def _on_nodes(term: Term, added: Sequence[Lying]) -> Floats | float:
    return sum((each.counts[term] for each in added), start=0.0)


def _least_with(sums: Floats, present: Flags, code: Integers, more: Floats) -> Floats:
    """Per node the lowest of all sums, once its own domain has so many more."""
    among = np.where(present, sums, np.inf)
    first = int(among.argmin())
    second = float(np.delete(among, first).min(initial=np.inf))
    others = np.where(code == first, second, among[first])
    found: Floats = np.minimum(others, among[code] + more)
    return found

"""A model of the kube-scheduler's default profile (1.36): which node does a pod get, if any?

Filters: taints, node selector and affinity, room, host ports, required spread, affinity and anti-affinity of the pod
and of those that run. Scores with their default weights: taints 3, node affinity 2, spread 2, affinity between pods 2,
least allocated 1, balanced allocation 1. Of the best nodes one is drawn. From 100 nodes on only a share of those that
fit is scored, beginning where the pod before ended. Volumes, images, preemption and the cluster's default spread are
left out.
"""

from collections.abc import Iterable, Sequence
from math import log

import numpy as np

from acceptance.binding.nodes import Node, matches, runs_on
from acceptance.binding.pods import Kind, Kinds, Raw, Term
from acceptance.checker.values import tolerated

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
_SCORED = ("cpu", "memory")
_FEW = 100  # so many nodes are always looked at


class Cluster:
    """Nodes that come up, and the pods that are bound to them."""

    def __init__(self, nodes: Sequence[Node], kinds: Kinds, chance: np.random.Generator) -> None:
        self.nodes = list(nodes)
        self.kinds = kinds
        self.up = np.zeros(len(nodes), dtype=bool)
        self.bound: dict[str, int] = {}
        self._chance = chance
        self._resources = sorted({name for kind in kinds.all for name in kind.requests} | set(_SCORED) | {"pods"})
        room = [[float(node.room.get(name, 0)) for name in self._resources] for node in nodes]
        self.free = np.array(room, dtype=np.float64).reshape(len(nodes), len(self._resources))
        self._whole = np.array([[float(node.room.get(n, 0)) for n in _SCORED] for node in nodes]).reshape(-1, 2)
        self._used = np.zeros((len(nodes), 2))
        self._codes: dict[str, Integers] = {}
        self._counts: dict[Term, Floats] = {}  # pods that a term selects, per node
        self._owners: dict[tuple[Term, int], Floats] = {}  # pods that have a term, by its weight; 0: kept apart
        self._selected: dict[tuple[Term, int], bool] = {}
        self._static: dict[int, tuple[Flags, Floats]] = {}
        self._sizes: dict[int, tuple[Floats, Floats]] = {}
        self._ports: dict[tuple[str, int], Flags] = {}
        self._next = 0
        for kind in kinds.all:
            for term in [*kind.affine, *kind.apart, *(s.term for s in kind.spreads), *(t for t, _ in kind.preferred)]:
                self._counts.setdefault(term, np.zeros(len(nodes)))

    # --- what is known of a kind

    def _size(self, kind: Kind) -> tuple[Floats, Floats]:
        known = self._sizes.get(kind.number)
        if known is None:
            asked = {**kind.requests, "pods": 1}
            known = self._sizes[kind.number] = (
                np.array([float(asked.get(name, 0)) for name in self._resources]),
                np.array([float(kind.scored[name]) for name in _SCORED]),
            )
        return known

    def _selects(self, term: Term, kind: Kind) -> bool:
        known = self._selected.get((term, kind.number))
        if known is None:
            known = self._selected[term, kind.number] = term.selects(kind.namespace, kind.labels)
        return known

    def _of_labels(self, kind: Kind) -> tuple[Flags, Floats]:
        """Which nodes suit by taints and labels, and how well: taints three times, node affinity twice, raw."""
        known = self._static.get(kind.number)
        if known is None:
            suits = np.array([runs_on(kind.spec, node.labels, node.taints) for node in self.nodes], dtype=bool)
            raw = np.array([_raw_scores(kind, node) for node in self.nodes], dtype=np.float64).reshape(-1, 2)
            known = self._static[kind.number] = (suits, raw)
        return known

    def _code(self, key: str) -> Integers:
        """Per node the number of its value of a label; -1: it has none."""
        known = self._codes.get(key)
        if known is None:
            numbers: dict[str, int] = {}
            values = [node.labels.get(key) for node in self.nodes]
            found = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
            known = self._codes[key] = np.array(found, dtype=np.int64)
        return known

    def _by_value(self, counts: Floats, key: str, among: Flags | None = None) -> tuple[Integers, Floats]:
        """The label's codes, and the sum for each value."""
        code = self._code(key)
        chosen = (code >= 0) if among is None else (code >= 0) & among
        most = max(1, int(code.max(initial=0)) + 1)
        sums: Floats = np.bincount(code[chosen], weights=counts[chosen], minlength=most).astype(np.float64)
        return code, sums

    # --- filters

    def feasible(self, kind: Kind) -> Flags:
        """The nodes that are up and hold such a pod by every rule."""
        size, _ = self._size(kind)
        suits: Flags = self.up & self._of_labels(kind)[0] & (self.free >= size - 1e-6).all(axis=1)
        for port in kind.ports:
            if port in self._ports:
                suits &= ~self._ports[port]
        if suits.any():
            suits &= self._apart(kind)
        if suits.any() and kind.affine:
            suits &= self._affine(kind)
        for spread in kind.spreads:
            if spread.required and suits.any():
                suits &= self._level(kind, spread.term, spread.skew, spread.least)
        return suits

    def _apart(self, kind: Kind) -> Flags:
        fine: Flags = np.ones(len(self.nodes), dtype=bool)
        for term in kind.apart:
            code, sums = self._by_value(self._counts[term], term.key)
            fine &= (code < 0) | (sums[code] == 0)
        for (term, weight), owners in self._owners.items():
            if weight == 0 and self._selects(term, kind):
                code, sums = self._by_value(owners, term.key)
                fine &= (code < 0) | (sums[code] == 0)
        return fine

    def _affine(self, kind: Kind) -> Flags:
        fine: Flags = np.ones(len(self.nodes), dtype=bool)
        there = 0.0
        for term in kind.affine:
            code, sums = self._by_value(self._counts[term], term.key)
            there += float(sums.sum())
            fine &= (code >= 0) & (sums[code] > 0)
        if not there and all(self._selects(term, kind) for term in kind.affine):  # the first of its like
            return self._have_all(kind.affine)
        return fine

    def _have_all(self, terms: Iterable[Term]) -> Flags:
        found: Flags = np.ones(len(self.nodes), dtype=bool)
        for term in terms:
            found &= self._code(term.key) >= 0
        return found

    def _level(self, kind: Kind, term: Term, skew: int, least: int) -> Flags:
        counted = self.up & self._by_labels_alone(kind)
        code, sums = self._by_value(np.where(counted, self._counts[term], 0.0), term.key)
        present = np.zeros(len(sums), dtype=bool)
        present[code[counted & (code >= 0)]] = True
        lowest = float(sums[present].min(initial=np.inf)) if present.sum() >= least else 0.0
        own = float(self._selects(term, kind))
        level: Flags = (code >= 0) & present[code] & (sums[code] + own - lowest <= skew)
        return level

    def _by_labels_alone(self, kind: Kind) -> Flags:
        """The nodes whose pods count for a spread: taints play no part there unless the constraint says so."""
        spec = {key: kind.spec[key] for key in ("nodeSelector", "affinity") if key in kind.spec}
        if not spec:
            return np.ones(len(self.nodes), dtype=bool)
        found: Flags = np.array([runs_on(spec, node.labels, ()) for node in self.nodes], dtype=bool)
        return found

    # --- scores

    def place(self, kind: Kind) -> int:
        """The node that such a pod gets; -1: none."""
        suits = self.feasible(kind)
        if not suits.any():
            return -1
        found = self._looked_at(np.flatnonzero(suits).astype(np.int64))
        if len(found) == 1:
            return int(found[0])
        scores = self._scores(kind, found)
        best = found[scores >= scores.max() - 1e-9]
        return int(self._chance.choice(best))

    def _looked_at(self, found: Integers) -> Integers:
        up = int(self.up.sum())
        enough = up if up < _FEW else max(_FEW, up * max(5, 50 - up // 125) // 100)
        if len(found) > enough:
            at = int(np.searchsorted(found, self._next))
            found = np.roll(found, -at)[:enough]
            self._next = (int(found[-1]) + 1) % len(self.nodes)
        return found

    def _scores(self, kind: Kind, found: Integers) -> Floats:
        raw = self._of_labels(kind)[1][found]
        total: Floats = 3 * _normal(raw[:, 0], inverted=True) + 2 * _normal(raw[:, 1])
        total += self._resources_score(kind, found)
        total += 2 * self._spread_score(kind, found)
        return total + 2 * self._affinity_score(kind, found)

    def _resources_score(self, kind: Kind, found: Integers) -> Floats:
        whole = np.maximum(self._whole[found], 1e-9)
        scored = self._size(kind)[1]
        after = self._used[found] + scored
        least = np.floor(np.where(after > whole, 0.0, (whole - after) * 100 / whole)).sum(axis=1) // 2
        with_pod, without = _balance(after / whole), _balance(self._used[found] / whole)
        return np.asarray(least + 50 + np.trunc((50 + with_pod - without) / 2), dtype=np.float64)

    def _spread_score(self, kind: Kind, found: Integers) -> Floats:
        soft = [spread for spread in kind.spreads if not spread.required]
        if not soft:
            return np.zeros(len(found))
        total = np.zeros(len(found))
        for spread in soft:
            code, sums = self._by_value(self._counts[spread.term], spread.term.key, self.up)
            values = code[found]
            weight = log(len(np.unique(values[values >= 0])) + 2)
            total += np.where(values >= 0, sums[values] * weight + spread.skew - 1, 0.0)
        total = np.round(total)
        most, least = float(total.max()), float(total.min())
        return np.full(len(found), 100.0) if most == 0 else np.floor(100 * (most + least - total) / most)

    def _affinity_score(self, kind: Kind, found: Integers) -> Floats:
        total = np.zeros(len(found))
        for term, weight in kind.preferred:
            code, sums = self._by_value(self._counts[term], term.key)
            total += np.where(code[found] >= 0, sums[code[found]] * weight, 0.0)
        for (term, weight), owners in self._owners.items():
            if weight and self._selects(term, kind):
                code, sums = self._by_value(owners, term.key)
                total += np.where(code[found] >= 0, sums[code[found]] * weight, 0.0)
        most, least = float(total.max()), float(total.min())
        return np.floor(100 * (total - least) / (most - least)) if most > least else np.zeros(len(found))

    # --- binding

    def bind(self, name: str, kind: Kind, at: int) -> None:
        """The pod runs there from now on."""
        size, scored = self._size(kind)
        self.bound[name] = at
        self.free[at] -= size
        self._used[at] += scored
        for term, counts in self._counts.items():
            if self._selects(term, kind):
                counts[at] += 1
        asked = [*((t, 0) for t in kind.apart), *((t, 1) for t in kind.affine), *kind.preferred]
        for term, weight in asked:
            self._owners.setdefault((term, weight), np.zeros(len(self.nodes)))[at] += 1
        for port in kind.ports:
            self._ports.setdefault(port, np.zeros(len(self.nodes), dtype=bool))[at] = True

    def release(self, name: str, kind: Kind) -> None:
        """The pod is gone. What its host ports were is not known any more: such pods must not be released."""
        assert not kind.ports
        size, scored = self._size(kind)
        at = self.bound.pop(name)
        self.free[at] += size
        self._used[at] -= scored
        for term, counts in self._counts.items():
            if self._selects(term, kind):
                counts[at] -= 1
        asked = [*((t, 0) for t in kind.apart), *((t, 1) for t in kind.affine), *kind.preferred]
        for term, weight in asked:
            self._owners[term, weight][at] -= 1

    def bind_what_fits(self, waiting: Iterable[Raw]) -> list[Raw]:
        """Each pod in turn; those that wait on. A kind that found nothing is tried again when something was bound."""
        failed: dict[int, int] = {}
        left: list[Raw] = []
        for pod in waiting:
            kind = self.kinds.of(pod)
            before = failed.get(kind.number)
            at = -1 if before is not None and (kind.plain or before == len(self.bound)) else self.place(kind)
            if at < 0:
                failed[kind.number] = len(self.bound)
                left.append(pod)
            else:
                self.bind(pod["metadata"]["name"], kind, at)
        return left


def _raw_scores(kind: Kind, node: Node) -> tuple[float, float]:
    tolerations = kind.spec.get("tolerations") or ()
    soft = [taint for taint in node.taints if taint.get("effect") == "PreferNoSchedule"]
    intolerable = sum(not tolerated(taint, tolerations) for taint in soft)
    affinity = (kind.spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return intolerable, sum(each["weight"] for each in preferred if matches(each["preference"], node.labels))


def _normal(raw: Floats, inverted: bool = False) -> Floats:
    """From 0 to 100 in proportion to the highest."""
    most = float(raw.max())
    scaled: Floats = np.floor(raw * 100 / most) if most else np.zeros(len(raw))
    return 100 - scaled if inverted else scaled


def _balance(share: Floats) -> Floats:
    share = np.minimum(share, 1.0)
    return np.floor((1 - np.abs(share[:, 0] - share[:, 1]) / 2) * 100)


def bound(nodes: Sequence[Node], pods: Sequence[Raw], seed: int = 1) -> dict[str, str]:
    """All nodes up, the pods in turn: pod to node, of those that fit."""
    kinds = Kinds()
    for pod in pods:
        kinds.of(pod)
    cluster = Cluster(nodes, kinds, np.random.default_rng(seed))
    cluster.up[:] = True
    cluster.bind_what_fits(pods)
    return {name: nodes[number].name for name, number in cluster.bound.items()}

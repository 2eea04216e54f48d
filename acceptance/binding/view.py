"""Nodes as pods of each kind see them, whatever runs there: their room, which suit by their labels, and how well."""

from collections.abc import Sequence

import numpy as np

from acceptance.binding.nodes import Node, matches, runs_on
from acceptance.binding.pods import Kind, Kinds, Term
from acceptance.checker.values import tolerated

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
SCORED = ("cpu", "memory")


class View:
    """What does not change while pods are bound."""

    def __init__(self, nodes: Sequence[Node], kinds: Kinds) -> None:
        self.nodes = list(nodes)
        self.kinds = kinds
        self.resources = sorted({name for kind in kinds.all for name in kind.requests} | set(SCORED) | {"pods"})
        room = [[float(node.room.get(name, 0)) for name in self.resources] for node in nodes]
        self.room: Floats = np.array(room, dtype=np.float64).reshape(len(nodes), len(self.resources))
        self.scored_room: Floats = np.array([[float(n.room.get(r, 0)) for r in SCORED] for n in nodes]).reshape(-1, 2)
        self._codes: dict[str, Integers] = {}
        self._selected: dict[tuple[Term, int], bool] = {}
        self._suiting: dict[int, tuple[Flags, Floats]] = {}
        self._by_labels: dict[int, Flags] = {}
        self._sizes: dict[int, tuple[Floats, Floats]] = {}

    def terms(self) -> set[Term]:
        """All terms by which pods count others."""
        found: set[Term] = set()
        for kind in self.kinds.all:
            found |= {*kind.affine, *kind.apart, *(s.term for s in kind.spreads), *(t for t, _ in kind.preferred)}
        return found

    def size(self, kind: Kind) -> tuple[Floats, Floats]:
        """What such a pod takes of each resource, and what scores take it for."""
        known = self._sizes.get(kind.number)
        if known is None:
            asked = {**kind.requests, "pods": 1}
            known = self._sizes[kind.number] = (
                np.array([float(asked.get(name, 0)) for name in self.resources]),
                np.array([float(kind.scored[name]) for name in SCORED]),
            )
        return known

    def selects(self, term: Term, kind: Kind) -> bool:
        """Whether the term counts such pods."""
        known = self._selected.get((term, kind.number))
        if known is None:
            known = self._selected[term, kind.number] = term.selects(kind.namespace, kind.labels)
        return known

    def of_labels(self, kind: Kind) -> tuple[Flags, Floats]:
        """Which nodes suit by taints and labels, and how well: taints and node affinity, raw."""
        known = self._suiting.get(kind.number)
        if known is None:
            suits = np.array([runs_on(kind.spec, node.labels, node.taints) for node in self.nodes], dtype=bool)
            raw = np.array([_raw_scores(kind, node) for node in self.nodes], dtype=np.float64).reshape(-1, 2)
            known = self._suiting[kind.number] = (suits, raw)
        return known

    def by_labels_alone(self, kind: Kind) -> Flags:
        """The nodes whose pods count for a spread: taints play no part there unless the constraint says so."""
        known = self._by_labels.get(kind.number)
        if known is None:
            spec = {key: kind.spec[key] for key in ("nodeSelector", "affinity") if key in kind.spec}
            suits = [not spec or runs_on(spec, node.labels, ()) for node in self.nodes]
            known = self._by_labels[kind.number] = np.array(suits, dtype=bool)
        return known

    def code(self, key: str) -> Integers:
        """Per node the number of its value of a label; -1: it has none."""
        known = self._codes.get(key)
        if known is None:
            numbers: dict[str, int] = {}
            values = [node.labels.get(key) for node in self.nodes]
            found = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
            known = self._codes[key] = np.array(found, dtype=np.int64)
        return known

    def by_value(self, counts: Floats, key: str, among: Flags | None = None) -> tuple[Integers, Floats]:
        """The label's codes, and the sum for each value."""
        code = self.code(key)
        chosen = (code >= 0) if among is None else (code >= 0) & among
        most = max(1, int(code.max(initial=0)) + 1)
        sums: Floats = np.bincount(code[chosen], weights=counts[chosen], minlength=most).astype(np.float64)
        return code, sums


def _raw_scores(kind: Kind, node: Node) -> tuple[float, float]:
    tolerations = kind.spec.get("tolerations") or ()
    soft = [taint for taint in node.taints if taint.get("effect") == "PreferNoSchedule"]
    intolerable = sum(not tolerated(taint, tolerations) for taint in soft)
    affinity = (kind.spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return intolerable, sum(each["weight"] for each in preferred if matches(each["preference"], node.labels))

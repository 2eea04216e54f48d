"""Required pod affinity, anti-affinity and topology spread, for the small scheduler.

Asked per pod and node. Terms select namespaces by name only; a namespaceSelector is refused, because a guess would bind
pods where a real scheduler does not. Slow and plain: this world is small.
"""

from collections import Counter
from typing import Any

from dovetail.adapters.simulator.api_server.selecting import selected
from dovetail.model.values.json import Json, ReadOnlyJson

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Neighbours:
    """The pods on each node, as they are bound one after the other."""

    def __init__(self, nodes: dict[str, Json], bound: dict[str, list[Json]]) -> None:
        self._labels = {name: node["metadata"].get("labels") or {} for name, node in nodes.items()}
        self._bound = {name: list(pods) for name, pods in bound.items()}
        self._repelling = [(name, p) for name, pods in bound.items() for p in pods if _terms(p, "podAntiAffinity")]

    def add(self, pod: Json, node: str) -> None:
        self._bound[node].append(pod)
        if _terms(pod, "podAntiAffinity"):
            self._repelling.append((node, pod))

    def concern(self, pod: Json) -> bool:
        """Whether other pods bear on where this one can go."""
        spread = any(_is_hard(c) for c in pod["spec"].get("topologySpreadConstraints") or [])
        return bool(spread or self._repelling or _terms(pod, "podAffinity") or _terms(pod, "podAntiAffinity"))

    def obstacle(self, pod: Json, node: str) -> str:
        """Why other pods keep this one off the node; empty where they do not."""
        affinity, anti = _terms(pod, "podAffinity"), _terms(pod, "podAntiAffinity")
        spread = [c for c in pod["spec"].get("topologySpreadConstraints") or [] if _is_hard(c)]
        if any("namespaceSelector" in term for term in (*affinity, *anti)):
            return "were not judged: this scheduler knows no namespaceSelector"
        if any(self._any_match(pod, term, node) for term in anti) or self._is_repelled(pod, node):
            return "didn't match pod anti-affinity rules"
        if not all(self._any_match(pod, t, node) or self._is_first(pod, t, node) for t in affinity):
            return "didn't match pod affinity rules"
        if not all(self._spreads(pod, constraint, node) for constraint in spread):
            return "didn't match pod topology spread constraints"
        return ""

    def _domain(self, node: str, key: str) -> list[Json]:
        """The pods on every node of that node's domain."""
        value = self._labels[node].get(key)
        if value is None:
            return []
        return [p for name, pods in self._bound.items() if self._labels[name].get(key) == value for p in pods]

    def _any_match(self, pod: Json, term: ReadOnlyJson, node: str) -> bool:
        return any(_matches(term, pod, other) for other in self._domain(node, term["topologyKey"]))

    def _is_first(self, pod: Json, term: ReadOnlyJson, node: str) -> bool:
        """Whether no pod matches anywhere but this one its own term; otherwise the first pod could never start."""
        everyone = [other for pods in self._bound.values() for other in pods]
        unmatched = not any(_matches(term, pod, other) for other in everyone)
        return unmatched and _matches(term, pod, pod) and term["topologyKey"] in self._labels[node]

    def _is_repelled(self, pod: Json, node: str) -> bool:
        """Whether the anti-affinity of another pod keeps this one away."""
        return any(
            self._same_domain(name, node, term["topologyKey"]) and _matches(term, other, pod)
            for name, other in self._repelling
            for term in _terms(other, "podAntiAffinity")
        )

    def _same_domain(self, one: str, other: str, key: str) -> bool:
        value = self._labels[one].get(key)
        return value is not None and value == self._labels[other].get(key)

    def _spreads(self, pod: Json, constraint: ReadOnlyJson, node: str) -> bool:
        key = constraint["topologyKey"]
        here = self._labels[node].get(key)
        if here is None:
            return False
        counts: Counter[str] = Counter({labels[key]: 0 for labels in self._labels.values() if key in labels})
        for name, pods in self._bound.items():
            if key in self._labels[name]:
                counts[self._labels[name][key]] += sum(_counts(constraint, pod, other) for other in pods)
        least = min(counts.values()) if len(counts) >= constraint.get("minDomains", 1) else 0
        return bool(counts[here] + _counts(constraint, pod, pod) - least <= constraint["maxSkew"])


def _terms(pod: Json, kind: str) -> list[dict[str, Any]]:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or []


def _is_hard(constraint: ReadOnlyJson) -> bool:
    return bool(constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule")


def _matches(term: ReadOnlyJson, pod: Json, other: Json) -> bool:
    namespaces = term.get("namespaces") or [pod["metadata"]["namespace"]]
    labels = other["metadata"].get("labels") or {}
    near: bool = other["metadata"]["namespace"] in namespaces
    return near and selected(term.get("labelSelector"), labels)


def _counts(constraint: ReadOnlyJson, pod: Json, other: Json) -> int:
    same = other["metadata"]["namespace"] == pod["metadata"]["namespace"]
    going = "deletionTimestamp" in other["metadata"]
    return int(same and not going and selected(constraint.get("labelSelector"), other["metadata"].get("labels") or {}))

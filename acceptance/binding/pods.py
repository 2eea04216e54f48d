"""What the kube-scheduler reads in a pod. Pods that are alike in it share one kind, and are judged once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import orjson

from acceptance.checker.values import pod_amounts, selects

Raw = Mapping[str, Any]
_LEAST = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 2**20)}  # what scores take a pod for that asks for nothing
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


@dataclass(frozen=True)
class Term:
    """Pods that a selector selects in some namespaces, counted by the values of a node label."""

    key: str
    namespaces: frozenset[str]
    selector: bytes  # as JSON

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of them."""
        return namespace in self.namespaces and selects(orjson.loads(self.selector), labels)


@dataclass(frozen=True)
class Spread:
    """A topology spread constraint."""

    term: Term
    skew: int
    least: int  # minDomains
    required: bool


@dataclass(eq=False)
class Kind:
    """Pods that the kube-scheduler cannot tell apart."""

    number: int
    spec: Raw
    namespace: str
    labels: Mapping[str, str]
    requests: dict[str, Fraction]
    scored: dict[str, Fraction]  # cpu and memory, for the scores
    affine: list[Term] = field(default_factory=list)
    apart: list[Term] = field(default_factory=list)
    preferred: list[tuple[Term, int]] = field(default_factory=list)  # weights below zero keep apart
    spreads: list[Spread] = field(default_factory=list)
    ports: frozenset[tuple[str, int]] = frozenset()
    priority: int = 0

    @property
    def plain(self) -> bool:
        """Whether other pods matter to it by the room they take alone."""
        return not (self.affine or self.apart or self.spreads or self.ports)


class Kinds:
    """All kinds of an input."""

    def __init__(self) -> None:
        self.all: list[Kind] = []
        self._known: dict[bytes, Kind] = {}

    def of(self, pod: Raw) -> Kind:
        """The kind of a pod."""
        metadata, spec = pod["metadata"], pod["spec"]
        told = {key: value for key, value in spec.items() if key != "nodeName"}
        namespace, labels = metadata.get("namespace") or "default", metadata.get("labels") or {}
        text = orjson.dumps([told, namespace, labels], option=orjson.OPT_SORT_KEYS)
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = _read(len(self.all), told, namespace, labels)
            self.all.append(known)
        return known


def _read(number: int, spec: Raw, namespace: str, labels: Mapping[str, str]) -> Kind:
    requests = pod_amounts(spec)
    kind = Kind(number, spec, namespace, labels, requests, {n: requests.get(n) or _LEAST[n] for n in _LEAST})
    affinity = spec.get("affinity") or {}
    for name, terms, sign in (("podAffinity", kind.affine, 1), ("podAntiAffinity", kind.apart, -1)):
        asked = affinity.get(name) or {}
        terms += [_term(raw, namespace) for raw in asked.get(_REQUIRED) or ()]
        kind.preferred += [
            (_term(raw["podAffinityTerm"], namespace), sign * raw["weight"]) for raw in asked.get(_PREFERRED) or ()
        ]
    for raw in spec.get("topologySpreadConstraints") or ():
        selector = {**(raw.get("labelSelector") or {})}
        same = {key: labels[key] for key in raw.get("matchLabelKeys") or () if key in labels}
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **same}
        term = Term(raw["topologyKey"], frozenset((namespace,)), orjson.dumps(selector))
        required = raw["whenUnsatisfiable"] == "DoNotSchedule"
        kind.spreads.append(Spread(term, raw["maxSkew"], raw.get("minDomains") or 1, required))
    kind.ports = frozenset(_ports(spec.get("containers") or ()))
    kind.priority = spec.get("priority") or 0
    return kind


def _term(raw: Raw, namespace: str) -> Term:
    namespaces = frozenset(raw.get("namespaces") or (namespace,))
    return Term(raw["topologyKey"], namespaces, orjson.dumps(raw.get("labelSelector") or {}))


def _ports(containers: Iterable[Raw]) -> Iterable[tuple[str, int]]:
    for container in containers:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("protocol") or "TCP", port["hostPort"]

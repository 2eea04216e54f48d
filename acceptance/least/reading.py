"""What of an input decides the least that it costs: kinds of pods, what may be bought, which pods keep apart.

Preferences, zones of groups, limits and minimum values are left out: leaving a rule out can only make the least less.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from acceptance.checker.check import WELL_KNOWN, allocatable, terms_of
from acceptance.checker.places import World
from acceptance.checker.topology import labels_of, required_of
from acceptance.checker.values import Allowed, by_key, canonical, pod_amounts, selects, tolerated
from dovetail.model.values.json import ReadOnlyJson

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
_HOSTNAME = "kubernetes.io/hostname"


class NotBounded(Exception):
    """Nothing can be said of this input, and why."""


@dataclass(frozen=True)
class Question:
    """Kinds of pods that differ in nothing that counts here, and choices: a type at the price of an offering."""

    sizes: Floats  # (kinds, resources)
    stock: Floats  # (kinds,)
    room: Floats  # (choices, resources)
    price: Floats  # (choices,)
    suits: Flags  # (choices, kinds)
    apart: Floats  # (rules, kinds): 1 where the rule counts pods of the kind
    most: Floats  # (rules,): so many of the counted pods may share a node


@dataclass(frozen=True, order=True)
class _Kind:
    requests: tuple[tuple[str, Fraction], ...]
    asks: str  # terms and tolerations, as text
    rules: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Choice:
    room: Mapping[str, Fraction]
    price: float
    labels: Mapping[str, Allowed]
    taints: tuple[ReadOnlyJson, ...]


def question_of(given: ReadOnlyJson) -> Question:
    """An input without standing nodes, in numbers."""
    world = World(given)
    if world.nodes or world.claims or given.get("daemonSets"):
        raise NotBounded("it has nodes that stand, or DaemonSets")
    examples: dict[_Kind, ReadOnlyJson] = {}
    stock: Counter[_Kind] = Counter()
    for pod in world.pods.values():
        kind = _kind(pod)
        examples.setdefault(kind, pod)
        stock[kind] += 1
    kinds = sorted(stock)
    choices = list(_choices(world))
    resources = sorted({name for kind in kinds for name, _ in kind.requests})
    rules = sorted({rule for kind in kinds for rule in kind.rules})
    asks = {kind.asks: examples[kind] for kind in kinds}
    suits = {text: [_suits(choice, pod) for choice in choices] for text, pod in asks.items()}
    whole = Question(
        sizes=np.array([[float(dict(kind.requests).get(name, 0)) for name in resources] for kind in kinds]),
        stock=np.array([float(stock[kind]) for kind in kinds]),
        room=np.array([[float(choice.room.get(name, 0)) for name in resources] for choice in choices]),
        price=np.array([choice.price for choice in choices]),
        suits=np.array([suits[kind.asks] for kind in kinds]).T,
        apart=np.array([[float(rule in kind.rules) for kind in kinds] for rule in rules]).reshape(
            len(rules), len(kinds)
        ),
        most=np.array([float(most) for _, most in rules]),
    )
    return _without_needless_choices(_scaled(whole))


def _kind(pod: ReadOnlyJson) -> _Kind:
    spec = pod["spec"]
    asks = [spec.get("nodeSelector"), (spec.get("affinity") or {}).get("nodeAffinity"), spec.get("tolerations")]
    requests = pod_amounts(spec)
    return _Kind(
        tuple(sorted((name, amount) for name, amount in requests.items() if amount)),
        json.dumps(asks, sort_keys=True),
        tuple(sorted(set(_rules(pod)))),
    )


def _rules(pod: ReadOnlyJson) -> Iterator[tuple[str, int]]:
    """The rules by which the pod keeps others of its rule off its node, as text, and how many may share one."""
    space, labels = pod["metadata"].get("namespace") or "default", labels_of(pod)
    for term in required_of(pod, "podAntiAffinity"):
        own = not term.get("namespaces") and term.get("namespaceSelector") is None
        if term["topologyKey"] == _HOSTNAME and own and selects(term.get("labelSelector"), labels):
            yield json.dumps([space, term.get("labelSelector")], sort_keys=True), 1
    for spread in pod["spec"].get("topologySpreadConstraints") or ():
        plain = spread["topologyKey"] == _HOSTNAME and not spread.get("matchLabelKeys")
        hard = spread.get("whenUnsatisfiable") == "DoNotSchedule"
        if plain and hard and selects(spread.get("labelSelector"), labels):
            yield json.dumps([space, spread.get("labelSelector")], sort_keys=True), int(spread["maxSkew"])


def _choices(world: World) -> Iterator[_Choice]:
    for name, pool in world.pools.items():
        template = pool["spec"]["template"]
        labels = {**(template.get("metadata", {}).get("labels") or {}), "karpenter.sh/nodepool": name}
        wanted = by_key(
            [
                *(template["spec"].get("requirements") or ()),
                *({"key": key, "operator": "In", "values": [value]} for key, value in labels.items()),
            ]
        )
        for entry in world.types[name].values():
            yield from _offered(entry, wanted, tuple(template["spec"].get("taints") or ()))


def _offered(entry: ReadOnlyJson, wanted: Mapping[str, Allowed], taints: tuple[ReadOnlyJson, ...]) -> Iterator[_Choice]:
    """A choice for each offering that the pool takes, reserved ones too: they only make the least less."""
    own = by_key(entry["requirements"])
    for offering in entry["offerings"]:
        if not offering.get("available", True):
            continue
        placed = by_key(
            {"key": key, "operator": "In", "values": [value]} for key, value in offering["requirements"].items()
        )
        labels = {**own, **placed}
        if all(key not in labels or labels[key].meets(item) for key, item in wanted.items()):
            narrowed = {key: item.both(wanted[key]) if key in wanted else item for key, item in labels.items()}
            room = allocatable(entry, {})
            yield _Choice(room, float(offering["price"]), {**wanted, **narrowed}, taints)


def _suits(choice: _Choice, pod: ReadOnlyJson) -> bool:
    """Whether the choice may hold such a pod, as far as labels and taints say; in doubt it may."""
    tolerations = pod["spec"].get("tolerations") or ()
    hard = [taint for taint in choice.taints if taint.get("effect") != "PreferNoSchedule"]
    if not all(tolerated(taint, tolerations) for taint in hard):
        return False
    return any(all(_may(choice, key, item) for key, item in term.items()) for term in terms_of(pod))


def _may(choice: _Choice, key: str, wanted: Allowed) -> bool:
    have = choice.labels.get(canonical(key))
    if have is not None:
        return have.meets(wanted) or (wanted.inverted and have.finite() == frozenset())
    negative = bool(wanted.inverted and wanted.listed) or (not wanted.inverted and not wanted.listed)
    return key in WELL_KNOWN or negative or key == _HOSTNAME


def _scaled(given: Question) -> Question:
    """Resources in units of the largest room, so that numbers are alike for the solver."""
    scale = np.where(given.room.max(axis=0) > 0, given.room.max(axis=0), 1.0)
    return _with(given, given.room / scale, given.sizes / scale, np.ones(len(given.price), dtype=bool))


def _without_needless_choices(given: Question) -> Question:
    """Without choices beside which a cheaper one has as much room for as many kinds."""
    kept: list[int] = []
    for at in np.lexsort((-given.room.sum(axis=1), given.price)).tolist():
        better = (
            (given.room[other] >= given.room[at] - 1e-12).all() and (given.suits[other] >= given.suits[at]).all()
            for other in kept
        )
        if not any(better):
            kept.append(at)
    chosen = np.zeros(len(given.price), dtype=bool)
    chosen[kept] = True
    return _with(given, given.room, given.sizes, chosen)


def _with(given: Question, room: Floats, sizes: Floats, chosen: Flags) -> Question:
    return Question(
        sizes=sizes,
        stock=given.stock,
        room=room[chosen],
        price=given.price[chosen],
        suits=given.suits[chosen],
        apart=given.apart,
        most=given.most,
    )

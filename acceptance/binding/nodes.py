"""The nodes that an answer leads to, each launched as the cheapest offering of its claim, and what they cost."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from acceptance.checker.values import Allowed, amounts, by_key, plus, pod_amounts, tolerated

Raw = Mapping[str, Any]
HOSTNAME = "kubernetes.io/hostname"
TYPE = "node.kubernetes.io/instance-type"


@dataclass(frozen=True, eq=False)
class Node:
    """A node as the kube-scheduler sees it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Raw, ...]
    room: Mapping[str, Fraction]  # next to DaemonSets
    price: float = 0.0


class Catalogue:
    """The instance types of an input, and which one a claim is launched as."""

    def __init__(self, given: Raw) -> None:
        self._given = given
        lists = given.get("instanceTypes") or {}
        self._pools = {p["metadata"]["name"]: p for p in given.get("nodePools") or ()}
        self._types = {name: {t["name"]: t for t in lists.get(name, lists.get("*", ()))} for name in self._pools}
        self._requirements: dict[int, dict[str, Allowed]] = {}

    def node(self, claim: Raw, name: str) -> Node:
        """The node of a claim, at the lowest price."""
        wanted = by_key(claim["requirements"])
        price, kind, offering = min(
            self._offered(claim["nodePool"], claim["instanceTypes"], wanted), key=lambda found: found[0]
        )
        template = self._pools[claim["nodePool"]]["spec"]["template"]
        labels = {**(template.get("metadata", {}).get("labels") or {}), "karpenter.sh/nodepool": claim["nodePool"]}
        for requirements in (wanted, self._of(kind)):
            for key, item in requirements.items():
                values = item.finite()
                if values is not None and len(values) == 1:
                    labels[key] = next(iter(values))
        labels |= {**offering["requirements"], TYPE: kind["name"], HOSTNAME: name}
        taints = tuple(template["spec"].get("taints") or ())
        return Node(name, labels, taints, self._room(kind, offering, labels, taints), price)

    def _of(self, kind: Raw) -> dict[str, Allowed]:
        return self._requirements.setdefault(id(kind), by_key(kind["requirements"]))

    def _offered(
        self, pool: str, names: Iterable[str], wanted: Mapping[str, Allowed]
    ) -> Iterator[tuple[float, Raw, Raw]]:
        types = self._types[pool]
        for name in names:
            for offering in types[name]["offerings"]:
                if offering.get("available", True) and all(
                    key not in wanted or wanted[key].holds(value) for key, value in offering["requirements"].items()
                ):
                    yield offering["price"], types[name], offering

    def _room(
        self, kind: Raw, offering: Raw, labels: Mapping[str, str], taints: tuple[Raw, ...]
    ) -> dict[str, Fraction]:
        room = {**amounts(kind["capacity"]), **amounts(offering.get("capacityOverride"))}
        for field in ("kubeReserved", "systemReserved", "evictionThreshold"):
            for name, amount in amounts(kind.get(field)).items():
                room[name] = room.get(name, Fraction(0)) - amount
        for item in self._given.get("daemonSets") or ():
            spec = item["spec"]["template"]["spec"]
            if runs_on(spec, labels, taints):
                for name, amount in plus([pod_amounts(spec)]).items():
                    room[name] = room.get(name, Fraction(0)) - amount
        return room


def runs_on(spec: Raw, labels: Mapping[str, str], taints: Iterable[Raw]) -> bool:
    """Whether a pod may run on a node with these labels and taints, its room and the other pods apart."""
    tolerations = spec.get("tolerations") or ()
    hard = (taint for taint in taints if taint.get("effect") != "PreferNoSchedule")
    if not all(tolerated(taint, tolerations) for taint in hard):
        return False
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(matches(term, labels) for term in required.get("nodeSelectorTerms") or ())


def matches(term: Raw, labels: Mapping[str, str]) -> bool:
    """Whether labels match a node selector term; an empty one matches nothing."""
    expressions = term.get("matchExpressions") or ()
    return bool(expressions) and all(_matches(entry, labels.get(entry["key"])) for entry in expressions)


def _matches(entry: Raw, value: str | None) -> bool:
    operator, values = str(entry["operator"]), [str(each) for each in entry.get("values") or ()]
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (value in values) == (operator == "In")
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])

"""Quantities and sets of label values, read anew from the JSON.

The checker repeats on purpose, and by other means (exact fractions, sets given by a membership test), what the product
knows, so that a mistake there is not repeated here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dovetail.model.values.json import ReadOnlyJson

_SUFFIX = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000) ** (power + 1) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Fraction(1024) ** (power + 1) for power, letter in enumerate("KMGTPE")},
}
_INTEGER = re.compile(r"-?[0-9]+\Z")
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)\Z")
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "topology.ebs.csi.aws.com/zone": "topology.kubernetes.io/zone",
}


def canonical(key: str) -> str:
    """The key that a label has in the cluster's catalogue, whatever it is called in a manifest."""
    return ALIASES.get(key, key)


def quantity(text: object) -> Fraction:
    """A Kubernetes quantity as an exact number."""
    match = _QUANTITY.match(str(text))
    if match is None:
        raise ValueError(f"not a quantity: {text!r}")
    return Fraction(match.group(1)) * _SUFFIX[match.group(2)]


def amounts(raw: Mapping[str, Any] | None) -> dict[str, Fraction]:
    """A resource list."""
    return {name: quantity(text) for name, text in (raw or {}).items()}


def plus(lists: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    """The sum of resource lists."""
    result: dict[str, Fraction] = {}
    for entry in lists:
        for name, amount in entry.items():
            result[name] = result.get(name, Fraction(0)) + amount
    return result


def largest(a: Mapping[str, Fraction], b: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The larger of two amounts, resource by resource."""
    return {name: max(a.get(name, Fraction(0)), b.get(name, Fraction(0))) for name in {*a, *b}}


def lacking(want: Mapping[str, Fraction], have: Mapping[str, Fraction]) -> str:
    """The first resource of which there is too little; empty without one."""
    return next((name for name, amount in sorted(want.items()) if amount > have.get(name, Fraction(0))), "")


def pod_amounts(spec: ReadOnlyJson) -> dict[str, Fraction]:
    """What a pod asks for: sidecars run beside everything after them, other init containers run alone."""
    together = plus(amounts((c.get("resources") or {}).get("requests")) for c in spec.get("containers") or ())
    sidecars: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        own = amounts((container.get("resources") or {}).get("requests"))
        if container.get("restartPolicy") == "Always":
            sidecars = plus([sidecars, own])
            peak = largest(peak, sidecars)
        else:
            peak = largest(peak, plus([sidecars, own]))
    needed = largest(plus([together, sidecars]), peak)
    for name, amount in amounts((spec.get("resources") or {}).get("requests")).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            needed[name] = amount
    return plus([needed, amounts(spec.get("overhead")), {"pods": Fraction(1)}])


@dataclass(frozen=True)
class Allowed:
    """A set of label values: those listed, or all but those listed, and within integer bounds."""

    listed: frozenset[str]
    inverted: bool
    low: int | None = None
    high: int | None = None

    def holds(self, value: str) -> bool:
        """Whether a value is in the set."""
        if (value in self.listed) == self.inverted:
            return False
        if self.low is None and self.high is None:
            return True
        if not re.match(r"[+-]?[0-9]+\Z", value):
            return False
        return (self.low is None or int(value) >= self.low) and (self.high is None or int(value) <= self.high)

    def finite(self) -> frozenset[str] | None:
        """The values, if they can be listed."""
        return None if self.inverted else frozenset(value for value in self.listed if self.holds(value))

    def within(self, other: "Allowed") -> bool:
        """Whether every value is in the other set, as far as that can be known."""
        values = self.finite()
        if values is not None:
            return all(other.holds(value) for value in values)
        if not other.inverted:
            return False
        if self.low is not None or self.high is not None:
            return (other.low is None or (self.low is not None and self.low >= other.low)) and (
                other.high is None or (self.high is not None and self.high <= other.high)
            )
        return other.low is None and other.high is None and other.listed <= self.listed

    def both(self, other: "Allowed") -> "Allowed":
        """The values in both sets."""
        low = max((x for x in (self.low, other.low) if x is not None), default=None)
        high = min((x for x in (self.high, other.high) if x is not None), default=None)
        if self.inverted and other.inverted:
            return Allowed(self.listed | other.listed, True, low, high)
        finite, rest = (other, self) if self.inverted else (self, other)
        return Allowed(frozenset(v for v in finite.listed if finite.holds(v) and rest.holds(v)), False)

    def meets(self, other: "Allowed") -> bool:
        """Whether some value may be in both."""
        both = self.both(other)
        return both.inverted or bool(both.finite())


ANYTHING = Allowed(frozenset(), True)


def allowed(entry: ReadOnlyJson) -> Allowed:
    """What one requirement allows."""
    values = [str(value) for value in entry.get("values") or ()]
    match entry["operator"]:
        case "In":
            return Allowed(frozenset(values), False)
        case "NotIn":
            return Allowed(frozenset(values), True)
        case "Exists":
            return ANYTHING
        case "Gt":
            return Allowed(frozenset(), True, int(values[0]) + 1)
        case "Gte":
            return Allowed(frozenset(), True, int(values[0]))
        case "Lt":
            return Allowed(frozenset(), True, None, int(values[0]) - 1)
        case "Lte":
            return Allowed(frozenset(), True, None, int(values[0]))
    return Allowed(frozenset(), False)


def by_key(entries: Iterable[ReadOnlyJson]) -> dict[str, Allowed]:
    """Requirements by key, those of one key taken together."""
    result: dict[str, Allowed] = {}
    for entry in entries:
        key = canonical(str(entry["key"]))
        result[key] = result[key].both(allowed(entry)) if key in result else allowed(entry)
    return result


def selects(selector: ReadOnlyJson | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; an absent one matches nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for entry in selector.get("matchExpressions") or ():
        value, values = labels.get(entry["key"]), entry.get("values") or ()
        ok = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[entry["operator"]]
        if not ok:
            return False
    return True


def tolerated(taint: ReadOnlyJson, tolerations: Iterable[ReadOnlyJson]) -> bool:
    """Whether some toleration accepts a taint."""
    for entry in tolerations:
        if entry.get("effect") and entry["effect"] != taint.get("effect"):
            continue
        if entry.get("key") and entry["key"] != taint["key"]:
            continue
        operator, value = entry.get("operator") or "Equal", taint.get("value") or ""
        if operator == "Exists" or (operator == "Equal" and (entry.get("value") or "") == value):
            return True
        if operator in ("Gt", "Lt") and _INTEGER.match(value) and _INTEGER.match(entry.get("value") or ""):
            number, bound = int(value), int(entry["value"])
            if number > bound if operator == "Gt" else number < bound:
                return True
    return False

"""The declared world: what this cloud holds, offers and refuses, read at every call.

It is one JSON document (the default is `world.json`), changed while the server runs by merging: maps deep, lists
replaced, null removes. A rule with `times` counts down across calls, so what is left of it lives beside the document
and starts anew only when its list is declared again.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from testbed.cloud.json_object import Json
from testbed.cloud.state.notation import check_world

DEFAULT = Path(__file__).with_name("world.json")
# Spot costs these shares of the on-demand price, by the zone's place in the alphabet (the recorded traffic's rule).
SPOT_SHARES = (0.40, 0.42, 0.44, 0.46, 0.48, 0.50)
# What the recorded world took for granted, and switches of ours that it did not know.
UNSAID: Json = {
    "types": [],
    "zones": {},
    "prices": {},
    "subnets": [],
    "securityGroups": [],
    "roles": [],
    "images": [],
    "ssm": {},
    "spotPrices": {},
    "offerings": {},
    "reservations": [],
    "placementGroups": [],
    "zonalShift": None,
    "instanceStatus": [],
    "ice": [],
    "fail": [],
    "rateLimits": {},
    "fleetMax": None,
    "runSeconds": 0.5,
    "bootSeconds": 0,
    "shutdownSeconds": 1,
    "visibleAfter": 0,
    "pageSize": None,
    "mostTemplates": 5000,
    "profilesAfter": 0,
    "clockAhead": 0,
    "neverJoin": False,
    "checkInstanceProfiles": True,
    "unknownIds": "error",
    "fleetOrder": "strategy",
    "memoryOverhead": 0.075,
    "eks": {"serviceIpv4Cidr": "10.0.0.0/24", "ipFamily": "ipv4"},
    "kubernetesVersion": "1.36",
}


def merged(old: Any, change: Any) -> Any:
    """Merge a change into a document: maps deep, everything else replaced, null removes."""
    if not isinstance(old, Mapping) or not isinstance(change, Mapping):
        return change
    result = dict(old)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key, {}), value) if isinstance(value, Mapping) else value
    return result


def default_world() -> Json:
    """The world that a server holds when nothing else is declared."""
    declared: Json = json.loads(DEFAULT.read_text(encoding="utf-8"))
    return {**UNSAID, **declared}


class World:
    """The document, its prices, and what is left of its rules."""

    def __init__(self, change: Json | None = None) -> None:
        self.lock = threading.RLock()
        check_world(change or {})
        self._initial = merged(default_world(), change or {})
        self._left: dict[str, list[float]] = {}
        self._watchers: list[Callable[[Json], None]] = []
        self.document: Json = {}
        self.reset()

    def __getitem__(self, key: str) -> Any:
        return self.document.get(key, UNSAID.get(key))

    def on_change(self, watcher: Callable[[Json], None]) -> None:
        """Call back after each change, with what was changed."""
        self._watchers.append(watcher)

    def reset(self) -> None:
        """Back to the world that the server was started with."""
        self._become(deepcopy(self._initial), self._initial)  # callers tag what it declares, in place

    def patch(self, change: Json) -> None:
        """Merge a change; rules that it declares start counting anew. ValueError for what has no meaning."""
        check_world(change)
        self._become(merged(self.document, change), change)

    def add(self, key: str, rules: list[Json]) -> None:
        """Append rules to a list, leaving the counts of the others alone."""
        check_world({key: rules})
        with self.lock:
            before = self[key] if isinstance(self[key], list) else []
            self.document = {**self.document, key: [*before, *rules]}
            self._left[key] += [float(rule.get("times", "inf")) for rule in rules]

    def _become(self, document: Json, changed: Json) -> None:
        with self.lock:
            self.document = document
            for key in ("ice", "fail", "neverJoin", "bootSeconds"):
                if key in changed or key not in self._left:
                    rules = self[key] if isinstance(self[key], list) else []
                    self._left[key] = [float(rule.get("times", "inf")) for rule in rules]
        for watcher in self._watchers:
            watcher(changed)

    def rules_left(self, key: str) -> Iterator[tuple[int, Json]]:
        """The rules of a list that still apply, with their places."""
        for index, rule in enumerate(self[key]):
            if self._left[key][index] > 0:
                yield index, rule

    def use(self, key: str, index: int) -> None:
        """Count one use of a rule."""
        self._left[key][index] -= 1

    def pool_rule(self, key: str, pool: Mapping[str, tuple[str, ...]]) -> Json | None:
        """The first rule of the list that names this pool (absent keys match anything), counted as used."""
        with self.lock:
            for index, rule in self.rules_left(key):
                if all(rule[part] in values for part, values in pool.items() if part in rule):
                    self.use(key, index)
                    return rule
        return None

    # ---- prices and offerings -----------------------------------------------------------------------------

    def zones_of(self, instance_type: str) -> list[str]:
        """The zones that offer a type."""
        zones: list[str] = self["offerings"].get(instance_type, list(self["zones"]))
        return sorted(zones)

    def on_demand_price(self, instance_type: str) -> float | None:
        """One price per type for the region."""
        price: float | None = self["prices"].get(instance_type)
        return price

    def spot_price(self, instance_type: str, zone: str) -> float | None:
        """The declared spot price, else the zone's share of the on-demand price."""
        declared = self["spotPrices"].get(instance_type, {}).get(zone)
        on_demand = self.on_demand_price(instance_type)
        if declared is not None or on_demand is None:
            return None if declared is None else float(declared)
        return round(on_demand * SPOT_SHARES[sorted(self["zones"]).index(zone) % len(SPOT_SHARES)], 6)

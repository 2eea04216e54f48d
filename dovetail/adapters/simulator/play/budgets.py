"""The statuses of PodDisruptionBudgets: how many of the selected pods may be evicted now.

What the disruption controller does. The eviction subresource takes from `disruptionsAllowed`; here it is counted again.
An evicted pod is remembered in `disruptedPods`, so that it does not count as healthy until it is gone.
"""

import math
from typing import Any

from dovetail.adapters.simulator.api_server.eviction import is_ready
from dovetail.adapters.simulator.api_server.selecting import selected
from dovetail.adapters.simulator.play.tick import Tick, controller_of, is_deleting, is_over
from dovetail.adapters.simulator.play.workloads import cluster_status
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time

DISRUPTION = "disruption-controller"

# An eviction that was granted and not carried out is forgotten after this.
_GRANT_SECONDS = 120.0


def count_budgets(tick: Tick) -> None:
    """Every budget's status as of now."""
    pods = tick.mirror.every("Pod") if tick.mirror.every("PodDisruptionBudget") else []
    for pdb in tick.mirror.every("PodDisruptionBudget"):
        chosen = [p for p in pods if _selects(pdb, p) and not is_over(p)]
        cluster_status(tick, DISRUPTION, pdb, _status(tick, pdb, chosen))


def _selects(pdb: Json, pod: Json) -> bool:
    same = pod["metadata"]["namespace"] == pdb["metadata"]["namespace"]
    return same and selected(pdb["spec"].get("selector"), pod["metadata"].get("labels") or {})


def _status(tick: Tick, pdb: Json, pods: list[Json]) -> Json:
    granted = _still_granted(tick, pdb, pods)
    healthy = [p for p in pods if is_ready(p) and not is_deleting(p) and p["metadata"]["name"] not in granted]
    expected, desired = _expectation(tick, pdb["spec"], pods)
    allowed = max(0, len(healthy) - desired) if expected > 0 else 0
    status: dict[str, Any] = {
        "disruptionsAllowed": allowed,
        "currentHealthy": len(healthy),
        "desiredHealthy": desired,
        "expectedPods": expected,
        "observedGeneration": pdb["metadata"].get("generation", 1),
    }
    gone = {name: None for name in (pdb.get("status") or {}).get("disruptedPods") or {} if name not in granted}
    return {**status, "disruptedPods": gone} if gone else status


def _still_granted(tick: Tick, pdb: Json, pods: list[Json]) -> set[str]:
    """The pods whose eviction was granted and that are not deleting yet."""
    names = {p["metadata"]["name"] for p in pods if not is_deleting(p)}
    granted = (pdb.get("status") or {}).get("disruptedPods") or {}
    return {n for n, at in granted.items() if n in names and tick.now - parse_time(at) < _GRANT_SECONDS}


def _expectation(tick: Tick, spec: Json, pods: list[Json]) -> tuple[int, int]:
    """How many pods there should be, and how many of them must be healthy."""
    if "maxUnavailable" in spec:
        expected = _scale(tick, pods)
        return expected, max(0, expected - _share(spec["maxUnavailable"], expected))
    least = spec.get("minAvailable", 1)
    if isinstance(least, int):
        return len(pods), least
    expected = _scale(tick, pods)
    return expected, _share(least, expected)


def _scale(tick: Tick, pods: list[Json]) -> int:
    """The replicas that the pods' controllers ask for; a pod without a controller counts for itself."""
    controllers = {controller_of(p) for p in pods}
    sizes = {
        body["metadata"]["uid"]: body["spec"].get("replicas", 1)
        for kind in ("ReplicaSet", "StatefulSet", "ReplicationController")
        for body in tick.mirror.every(kind)
        if body["metadata"]["uid"] in controllers
    }
    alone = sum(controller_of(p) not in sizes for p in pods)
    return alone + sum(int(size) for size in sizes.values())


def _share(amount: int | str, whole: int) -> int:
    """An int, or a percentage, rounded up as the disruption controller does."""
    if isinstance(amount, int):
        return amount
    return math.ceil(int(amount.rstrip("%")) * whole / 100)

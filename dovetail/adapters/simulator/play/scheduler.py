"""A small scheduler: binds pending pods to nodes that accept them, and marks those that no node accepts.

What kube-scheduler does. Filters by room, selectors, required affinity, taints and other pods; prefers the node with
most room left. The node that a pod is nominated for comes first, and others leave the pod its room there; a failed
attempt removes the nomination, as a preemption that finds nothing does. A pod with an unknown rule is not bound, with a
reason: binding it where a real scheduler would not could make a wrong plan look right.
"""

from collections import Counter
from typing import Any, Final

import orjson

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.play.fitting import obstacle, requests_of, shortage
from dovetail.adapters.simulator.play.neighbours import Neighbours
from dovetail.adapters.simulator.play.tick import Tick, condition_of, is_deleting, is_over
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_resources, subtract, total
from dovetail.model.values.time import format_time

SCHEDULER = "kube-scheduler"


# A tick is one transaction, and no other process writes while it lasts: the rest is left for the next one.
MOST_WRITES: Final = 200

# Of pods that are still refused for another number of nodes: in life their next try comes seconds later.
MOST_MARKED_AGAIN: Final = 20


def bind_pods(tick: Tick) -> None:
    """Bind what can be bound, highest priority first, and mark the rest."""
    pods = tick.mirror.every("Pod")
    waiting = [p for p in pods if _waits(p)]
    if not waiting:
        return
    room, writes, again = Room(tick, pods, waiting), 0, 0
    for pod in sorted(waiting, key=_urgency):
        node, why = room.best_node(pod)
        if node:
            _bind(tick, pod, node)
            room.take(pod, node)
        elif (_is_marked(pod) and again == MOST_MARKED_AGAIN) or not _mark(tick, pod, why):
            continue
        else:
            again += _is_marked(pod)
        writes += 1
        if writes == MOST_WRITES:
            return


class Room:
    """What is free on each node, as pods are bound one after the other.

    Replicas are judged once: what selectors and taints say is remembered by the text of the pod's spec. A pod like one
    that found no node finds none either, because room only shrinks here.
    """

    def __init__(self, tick: Tick, pods: list[Json], waiting: list[Json]) -> None:
        self._nodes = {node["metadata"]["name"]: node for node in tick.mirror.every("Node")}
        bound: dict[str, list[Json]] = {name: [] for name in self._nodes}
        for pod in pods:
            if pod["spec"].get("nodeName") in bound and not is_over(pod):
                bound[pod["spec"]["nodeName"]].append(pod)
        self._whole = {name: _allocatable(node) for name, node in self._nodes.items()}
        self._free: dict[str, dict[str, int]] = {}
        self._share: dict[str, float] = {}
        for name in self._nodes:
            self._set_free(name, subtract(self._whole[name], total(requests_of(p) for p in bound[name])))
        self._promised: dict[str, list[Json]] = {}
        for pod in waiting:
            if nominated_for(pod):
                self._promised.setdefault(nominated_for(pod), []).append(pod)
        self._neighbours = Neighbours(self._nodes, bound)
        self._obstacles: dict[bytes, dict[str, str]] = {}
        self._hopeless: dict[bytes, str] = {}

    def best_node(self, pod: Json) -> tuple[str, str]:
        """The node with most room among those that accept the pod; or an empty name, and why."""
        lonely = not self._neighbours.concern(pod)
        likeness = orjson.dumps([pod["spec"], nominated_for(pod)], option=orjson.OPT_SORT_KEYS)
        if lonely and likeness in self._hopeless:
            return "", self._hopeless[likeness]
        reasons: Counter[str] = Counter()
        takers = []
        requests, obstacles = requests_of(pod), self._obstacles_of(pod, likeness)
        for name in self._nodes:
            why = obstacles[name] or shortage(requests, self._left_for(pod, name))
            why = why or ("" if lonely else self._neighbours.obstacle(pod, name))
            if why:
                reasons[why] += 1
            else:
                takers.append(name)
        if nominated_for(pod) in takers:
            return nominated_for(pod), ""
        if takers:
            return max(takers, key=lambda name: (self._share[name], name)), ""
        words = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        sentence = f"0/{len(self._nodes)} nodes are available" + (f": {words}." if words else ".")
        if lonely:
            self._hopeless[likeness] = sentence
        return "", sentence

    def _left_for(self, pod: Json, node: str) -> dict[str, int]:
        """The free room there for this pod: nominated pods that are at least as urgent count as running on the node."""
        others = [
            other
            for other in self._promised.get(node, ())
            if other["metadata"]["uid"] != pod["metadata"]["uid"] and _priority(other) >= _priority(pod)
        ]
        return subtract(self._free[node], total(requests_of(p) for p in others)) if others else self._free[node]

    def take(self, pod: Json, node: str) -> None:
        held = self._promised.get(nominated_for(pod), [])
        if pod in held:
            held.remove(pod)
        self._set_free(node, subtract(self._free[node], requests_of(pod)))
        self._neighbours.add(pod, node)

    def _obstacles_of(self, pod: Json, likeness: bytes) -> dict[str, str]:
        if likeness not in self._obstacles:
            self._obstacles[likeness] = {name: obstacle(pod, node) for name, node in self._nodes.items()}
        return self._obstacles[likeness]

    def _set_free(self, name: str, free: dict[str, int]) -> None:
        whole = self._whole[name]
        shares = [free.get(r, 0) / whole[r] for r in ("cpu", "memory") if whole.get(r)]
        self._free[name] = free
        self._share[name] = sum(shares) / len(shares) if shares else 0.0


def _waits(pod: Json) -> bool:
    spec = pod.get("spec") or {}
    return not spec.get("nodeName") and not is_deleting(pod) and not is_over(pod) and not spec.get("schedulingGates")


def nominated_for(pod: Json) -> str:
    """The node that its status names; empty where it names none."""
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")


def _priority(pod: Json) -> int:
    return int(pod["spec"].get("priority") or 0)


def _urgency(pod: Json) -> tuple[int, str, str]:
    return -_priority(pod), pod["metadata"]["creationTimestamp"], objects.key_of(pod)


def _allocatable(node: Json) -> dict[str, int]:
    return parse_resources((node.get("status") or {}).get("allocatable"))


def _bind(tick: Tick, pod: Json, node: str) -> None:
    """One write, as the binding subresource does it: the node, and the condition that says so."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(tick.now)}
    bound = {
        **pod,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**(pod.get("status") or {}), "conditions": [condition, *_others(pod)]},
    }
    cluster = tick.cluster(SCHEDULER)
    with cluster.recorded("bind", pod, {"node": node}):
        objects.put(tick.connection, bound)


def _is_marked(pod: Json) -> bool:
    """Whether it is known already that it finds no node, and none is kept for it."""
    return (condition_of(pod, "PodScheduled") or {}).get("status") == "False" and not nominated_for(pod)


def _mark(tick: Tick, pod: Json, why: str) -> bool:
    """Write that the pod finds no node; whether that was new."""
    before = condition_of(pod, "PodScheduled") or {}
    if before.get("message") == why and not nominated_for(pod):
        return False
    changed = before.get("lastTransitionTime") if before.get("status") == "False" else None
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why,
        "lastTransitionTime": changed or format_time(tick.now),
    }
    status = {"status": {"conditions": [condition, *_others(pod)], "nominatedNodeName": None}}
    tick.cluster(SCHEDULER).patch("Pod", objects.key_of(pod), status, "status")
    return True


def _others(pod: Json) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = (pod.get("status") or {}).get("conditions") or []
    return [c for c in conditions if c.get("type") != "PodScheduled"]

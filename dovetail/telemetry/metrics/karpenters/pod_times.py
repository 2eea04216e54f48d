"""How long pods wait to be bound and to run (MET-1, MET-6).

The cache reports each change of a pod, and the provisioning planner its decisions; each scrape reads the gauges. Only
pods seen pending are remembered, until they are ready or have ended, so a change of a running pod costs one look-up and
nothing ever reads all pods. A new process starts empty: pods that it never saw pending are never counted.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dovetail.model.objects.pod_rules import is_terminal
from dovetail.model.pods import Pod
from dovetail.telemetry.metrics.duties import PROVISIONING, UPKEEP, Duties
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.karpenters.catalogue import observe


@dataclass(slots=True)
class _Wait:
    name: str
    namespace: str
    created: float
    bound: bool
    devices: str  # "true" if it asks for devices by resource claims, as upstream's label
    acknowledged: float | None = None  # first seen by the planner
    decided: bool = False  # whatever that first decision was
    placed: float | None = None  # since when room has been found


class PodTimes:
    """The pods seen pending that are not ready yet."""

    def __init__(self, now: Callable[[], float] = time.time, *, duties: Duties) -> None:
        """`duties`: every worker follows all pods, but only one counts and publishes."""
        self._now, self.duties = now, duties
        self._pass: tuple[int, float] | None = None  # pods in the current pass, and when it began
        self._waits: dict[str, _Wait] = {}
        self._lock = threading.Lock()  # watch, planner and scrape run in different threads

    def heard(self, old: Pod | None, new: Pod | None) -> None:
        """A pod was created, has changed or is gone."""
        pod = new or old
        if pod is None or (pod.uid not in self._waits and pod.phase != "Pending"):
            return
        with self._lock:
            if new is None or is_terminal(new):
                self._waits.pop(pod.uid, None)
            else:
                self._follow(new, self._now())

    def _follow(self, pod: Pod, now: float) -> None:
        wait = self._waits.get(pod.uid)
        if wait is None:
            devices = str(pod.shape.uses_resource_claims).lower()
            wait = _Wait(pod.name, pod.namespace, pod.created, bool(pod.node_name), devices)
            self._waits[pod.uid] = wait
        if pod.node_name and not wait.bound:
            wait.bound = True
            self._observe("bound", wait, now)
        if pod.ready:
            del self._waits[pod.uid]
            self._observe("startup", wait, now)

    def acknowledged(self, uid: str, now: float) -> None:
        """The planner has seen it among the pending pods."""
        with self._lock:
            wait = self._waits.get(uid)
            if wait is not None and wait.acknowledged is None:
                wait.acknowledged = now

    def decided(self, uid: str, now: float, *, placed: bool) -> None:
        """PLC-236: the time of the first success is kept, until a round finds no room."""
        with self._lock:
            wait = self._waits.get(uid)
            if wait is not None:
                wait.decided = True
                wait.placed = (wait.placed or now) if placed else None

    def since(self, uid: str) -> float | None:
        """Since when the pod has been waiting; None if it is not, or was not seen pending."""
        with self._lock:
            wait = self._waits.get(uid)
        return None if wait is None else wait.created

    def pass_began(self, pods: int) -> None:
        """The planner begins to place so many pods."""
        self._pass = pods, self._now()

    def pass_ended(self) -> None:
        """The planner has placed what it could."""
        self._pass = None

    def pass_samples(self) -> Iterator[Sample]:
        if self.duties.has(PROVISIONING):
            now = self._now()
            pods, began = self._pass or (0, now)
            labels = (("controller", "provisioner"),)
            yield Sample(name="scheduler_queue_depth", labels=labels, value=float(pods))
            yield Sample(name="scheduler_unfinished_work_seconds", labels=labels, value=now - began)

    def samples(self) -> Iterator[Sample]:
        if not self.duties.has(UPKEEP):
            return
        now = self._now()
        with self._lock:
            waits = list(self._waits.values())
        for wait in waits:
            labels = (("name", wait.name), ("namespace", wait.namespace))
            for name, since in _waiting_since(wait):
                own = (*labels, ("dynamic_resources", wait.devices)) if "unbound" in name else labels
                yield Sample(name=name, labels=own, value=max(0.0, now - since))

    def _observe(self, what: str, wait: _Wait, now: float) -> None:
        if not self.duties.has(UPKEEP):
            return
        labels = {"dynamic_resources": wait.devices} if what == "bound" else {}
        observe(f"pods_{what}_duration_seconds", now - wait.created, labels)
        if wait.placed is not None:
            observe(f"pods_provisioning_{what}_duration_seconds", now - wait.placed, labels)


def _waiting_since(wait: _Wait) -> Iterator[tuple[str, float]]:
    yield "pods_unstarted_time_seconds", wait.created
    if not wait.bound:
        yield "pods_unbound_time_seconds", wait.created
    if wait.placed is not None:
        yield "pods_provisioning_unstarted_time_seconds", wait.placed
        if not wait.bound:
            yield "pods_provisioning_unbound_time_seconds", wait.placed
    if wait.acknowledged is not None and not wait.decided and not wait.bound:
        yield "pods_provisioning_scheduling_undecided_time_seconds", wait.acknowledged

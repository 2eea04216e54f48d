"""Metrics of a pass: how long it took, how long pods waited for a decision, how many found no place.

A pod's wait begins when it is first seen pending and is counted once, at the first decision about it, whatever that is:
a pod that stays pending gets a decision every ten seconds.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from dovetail.model.places.placements import Placement
from dovetail.telemetry.metrics.duties import PROVISIONING
from dovetail.telemetry.metrics.karpenters.catalogue import gauge, observe
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.telemetry.metrics.karpenters.reconciles import round_ended
from dovetail.telemetry.metrics.ours.faults import Faults
from dovetail.telemetry.metrics.ours.launch_brake import without_further_claims

CONTROLLER: Final = {"controller": "provisioner"}


class Decisions:
    """The pods that wait for their first decision, as seen by this process."""

    def __init__(self, times: PodTimes, faults: Faults) -> None:
        self.times, self.faults = times, faults
        self._since: dict[str, float] = {}
        self._decided: set[str] = set()
        self._zones: set[str] = set()

    def acknowledge(self, pending: Iterable[str], now: float) -> None:
        """PLC-2: these are pending now; those that no longer are, are forgotten."""
        present = set(pending)
        for uid in present - self._since.keys():
            self.times.acknowledged(uid, now)
        self._decided &= present
        self._since = {uid: self._since.get(uid, now) for uid in present}

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """For as long as waiting pods are being placed."""
        self.times.pass_began(len(self._since))
        try:
            yield
        finally:
            self.times.pass_ended()

    def record(self, placement: Placement, took: float, now: float) -> None:
        """PLC-228, PLC-231, PLC-232, PLC-236: one pass has ended."""
        observe("scheduler_scheduling_duration_seconds", took, CONTROLLER)
        round_ended(PROVISIONING, took)
        self.faults.judged("provisioning", placement.unjudged)
        waiting = sum(refused.waits_for_reservation for refused in placement.refused)
        gauge("scheduler_unschedulable_pods_count").set(len(placement.refused) - waiting, CONTROLLER)
        gauge("scheduler_ignored_pods_count").set(sum(not ignored.earlier_claim for ignored in placement.ignored))
        without_further_claims(sum(ignored.earlier_claim == "exhausted" for ignored in placement.ignored))
        self._zones |= placement.by_zone.keys()
        for zone in sorted(self._zones):  # a zone that no pod waits for now is set to zero
            waits = placement.by_zone.get(zone, 0)
            gauge("scheduler_pending_pods_by_effective_zone_count").set(waits, {**CONTROLLER, "zone": zone})
        for uid, placed in _decided(placement):
            self.times.decided(uid, now, placed=placed)
            if uid in self._since and uid not in self._decided:
                self._decided.add(uid)
                observe("pods_scheduling_decision_duration_seconds", now - self._since[uid], {})


def _decided(placement: Placement) -> Iterable[tuple[str, bool]]:
    """Each pod of the pass, and whether there is room for it."""
    for node in placement.new:
        yield from ((pod.uid, True) for pod in node.pods)
    for pods in placement.existing.values():
        yield from ((pod.uid, True) for pod in pods)
    yield from ((refused.pod.uid, False) for refused in placement.refused)
    yield from ((ignored.pod.uid, False) for ignored in placement.ignored)

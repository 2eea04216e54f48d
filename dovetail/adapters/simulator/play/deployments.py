"""Deployments roll from one template to the next as under the real controller.

A ReplicaSet per template, found again by the template itself. The new one grows by as many extra pods as maxSurge
allows, the old ones shrink by as many missing pods as maxUnavailable allows, unavailable pods first; Recreate removes
the old pods before it makes new ones. Left out: proportional scaling during a roll-out, and revisions.
"""

import hashlib
import math
from dataclasses import dataclass

import orjson

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.play.tick import Tick, condition_of, controller_of, is_deleting
from dovetail.adapters.simulator.play.workloads import cluster_status, reference_to
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time, parse_time

DEPLOYMENTS = "deployment-controller"

_HASH = "pod-template-hash"
_COUNTS = ("replicas", "readyReplicas", "availableReplicas")


def keep_deployments(tick: Tick) -> None:
    """One step of each roll-out, and its Deployment's status."""
    for deployment in tick.mirror.every("Deployment"):
        if is_deleting(deployment):
            continue
        mine = [r for r in tick.mirror.every("ReplicaSet") if controller_of(r) == deployment["metadata"]["uid"]]
        mine.sort(key=lambda each: each["metadata"]["creationTimestamp"])
        template = _unhashed(deployment["spec"]["template"])
        current = next((each for each in mine if _unhashed(each["spec"]["template"]) == template), None)
        rolling = _Rolling(tick, deployment, mine, current)
        rolling.step()
        cluster_status(tick, DEPLOYMENTS, deployment, rolling.status())


@dataclass(slots=True)
class _Rolling:
    """A Deployment and its ReplicaSets, the oldest first."""

    tick: Tick
    deployment: Json
    mine: list[Json]
    current: Json | None  # the one of the template as it is now

    @property
    def wanted(self) -> int:
        return int(self.deployment["spec"].get("replicas", 1))

    @property
    def old(self) -> list[Json]:
        return [each for each in self.mine if each is not self.current]

    @property
    def asked(self) -> int:
        """How many pods the ReplicaSets are asked for."""
        return sum(_replicas(each) for each in self.mine)

    def step(self) -> None:
        """One step of the controller: grow the new one, or else shrink the old ones."""
        spec = self.deployment["spec"]
        if spec.get("paused"):
            self._scale_paused()
        elif (spec.get("strategy") or {}).get("type") == "Recreate":
            self._recreate()
        else:
            size = _replicas(self.current) if self.current is not None else 0
            room = max(0, self.wanted + self._surge() - self.asked)
            if not self._grow(min(self.wanted, size + room)):
                self._shrink()

    def _recreate(self) -> None:
        if any(_replicas(each) for each in self.old):
            for each in self.old:
                self._scale(each, 0)
            return
        old = {each["metadata"]["uid"] for each in self.old}
        if not any(controller_of(pod) in old for pod in self.tick.mirror.every("Pod")):  # those that stop count as well
            self._grow(self.wanted)

    def _scale_paused(self) -> None:
        """Nothing rolls; the number of replicas is still maintained."""
        active = [each for each in self.mine if _replicas(each)] or self.mine[-1:]
        if len(active) == 1:
            self._scale(active[0], self.wanted)

    def _grow(self, replicas: int) -> bool:
        """Whether the ReplicaSet of the template had to change."""
        if self.current is None:
            self.tick.cluster(DEPLOYMENTS).create(_replica_set_of(self.deployment, replicas))
            return True
        return self._scale(self.current, replicas)

    def _shrink(self) -> None:
        """Unavailable old pods first, then as many as may be missing."""
        if self.current is None:
            return
        least = self.wanted - self._unavailable()
        room = self.asked - least - _broken(self.current)
        spare = max(0, sum(_count(each, "availableReplicas") for each in self.mine) - least)
        for each in self.old:
            useless = min(_broken(each), max(0, room))
            fewer = min(_replicas(each) - useless, spare, max(0, room - useless))
            room, spare = room - useless - fewer, spare - fewer
            self._scale(each, _replicas(each) - useless - fewer)

    def _scale(self, replica_set: Json, replicas: int) -> bool:
        if _replicas(replica_set) == replicas:
            return False
        key = objects.key_of(replica_set)
        self.tick.cluster(DEPLOYMENTS).patch("ReplicaSet", key, {"spec": {"replicas": replicas}})
        return True

    def _surge(self) -> int:
        return math.ceil(_share(self._update().get("maxSurge"), self.wanted))

    def _unavailable(self) -> int:
        """At least one if no extra pods are allowed: otherwise nothing would ever move."""
        return math.floor(_share(self._update().get("maxUnavailable"), self.wanted)) or int(not self._surge())

    def _update(self) -> Json:
        return (self.deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}

    def status(self) -> Json:
        counts = {name: sum(_count(each, name) for each in self.mine) for name in _COUNTS}
        updated = _count(self.current, "replicas") if self.current is not None else 0
        found = {
            **counts,
            "updatedReplicas": updated,
            "observedGeneration": self.deployment["metadata"].get("generation", 1),
        }
        return {**found, "conditions": [self._progressing(found)]}

    def _progressing(self, found: Json) -> Json:
        """Whether the roll-out makes progress, by its results since the last look."""
        before, known = self.deployment.get("status") or {}, condition_of(self.deployment, "Progressing")
        if {found["replicas"], found["updatedReplicas"], found["availableReplicas"]} == {self.wanted}:
            return self._condition(known, "NewReplicaSetAvailable")
        forward = (
            known is None
            or found["updatedReplicas"] > before.get("updatedReplicas", 0)
            or found["availableReplicas"] > before.get("availableReplicas", 0)
            or _outdated(found) < _outdated(before)
            or known["reason"] == "NewReplicaSetAvailable"
        )
        if forward:
            return self._condition(None, "ReplicaSetUpdated")
        assert known is not None  # else it has just begun
        deadline = self.deployment["spec"].get("progressDeadlineSeconds", 600)
        if self.deployment["spec"].get("paused") or known["reason"] == "ProgressDeadlineExceeded":
            return known
        if self.tick.reached(parse_time(known["lastUpdateTime"]) + deadline):
            return self._condition(None, "ProgressDeadlineExceeded")
        return known

    def _condition(self, known: Json | None, reason: str) -> Json:
        if known is not None and known["reason"] == reason:
            return known
        now, failed = format_time(self.tick.now), reason == "ProgressDeadlineExceeded"
        moments = {"lastUpdateTime": now, "lastTransitionTime": now}
        return {"type": "Progressing", "status": "False" if failed else "True", "reason": reason, **moments}


def _outdated(status: Json) -> int:
    return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))


def _replicas(replica_set: Json) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def _count(replica_set: Json, name: str) -> int:
    return int((replica_set.get("status") or {}).get(name, 0))


def _broken(replica_set: Json) -> int:
    """How many of its requested pods are not available."""
    return max(0, _replicas(replica_set) - _count(replica_set, "availableReplicas"))


def _share(value: object, replicas: int) -> float:
    """A number, or a percentage of the replicas; a quarter by default."""
    given = "25%" if value is None else value
    return float(given.removesuffix("%")) * replicas / 100 if isinstance(given, str) else float(str(given))


def _unhashed(template: Json) -> Json:
    """A template without the label that its ReplicaSet added: how the real controller recognises its own, whatever
    the algorithm of the hash was."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != _HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _replica_set_of(deployment: Json, replicas: int) -> Json:
    spec, metadata = deployment["spec"], deployment["metadata"]
    template, selector = spec["template"], spec.get("selector") or {}
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), _HASH: digest}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [reference_to(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), _HASH: digest}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }

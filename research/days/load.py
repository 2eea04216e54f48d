"""Who comes and goes in a day: services that follow the sun, jobs by night, deploys in working hours."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from math import cos, pi
from typing import Any, Final

import numpy as np

from acceptance.placement_worlds import RECORDED_AT
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.model import names
from dovetail.model.pods import Owner, Pod, PodShape
from dovetail.model.values.resources import Resources

Raw = dict[str, Any]
MINUTE: Final = 60.0
HOUR: Final = 3600.0
_SERVICES: Final = 24
_JOBS: Final = 6
_CPU_OF_NODE: Final = 15.0  # for pods, on a node of 16: the measure of a load
_LEAST: Final = 0.35  # of a service's pods, at two in the night
_DEPLOYS: Final = 6
_BATCH: Final = 4  # parts in which a deploy replaces a service's pods


@dataclass(eq=False)
class App:
    """A service, or a kind of job."""

    name: str
    spec: Raw
    shape: PodShape
    requests: Resources
    owner: Owner
    peak: float  # pods of a service at its highest; started jobs an hour in the night
    is_job: bool
    held: bool  # nobody may disrupt its pods
    pods: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)  # that a deploy has still to replace

    def raw(self, name: str) -> Raw:
        """One of its pods as the kube-scheduler sees it."""
        return {"metadata": {"name": name, "namespace": "default", "labels": {"app": self.name}}, "spec": self.spec}

    def pod(self, name: str, now: float) -> Pod:
        """One of its pods, just made, for which there is no room yet."""
        return Pod(
            name=name,
            uid=name,
            shape=self.shape,
            requests=self.requests,
            created=now,
            unschedulable=True,
            owners=(self.owner,),
            do_not_disrupt="true" if self.held else None,
        )


def an_app(name: str, cpu: float, memory: float, asks: Raw, held: bool | None = None) -> App:
    """A service whose pods ask for so many cpus and GiB, and for what `asks` adds to their specs. A job where it is
    said whether somebody holds its pods."""
    labels, is_job = {"app": name}, held is not None
    requests = {"cpu": f"{cpu * 1000:.0f}m", "memory": f"{memory * 1024:.0f}Mi"}
    spec: Raw = {"containers": [{"name": "c", "resources": {"requests": requests}}], **asks}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    parsed = parse_pod({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    kind, version = ("Job", "batch/v1") if is_job else ("ReplicaSet", "apps/v1")
    owner = Owner(api_version=version, kind=kind, name=name, uid=name, controller=True)
    return App(name, spec, parsed.shape, parsed.requests, owner, 0.0, is_job, bool(held))


@dataclass(frozen=True)
class Change:
    """Pods that come, with their app, and the names of those that go."""

    come: tuple[tuple[str, App], ...]
    go: tuple[str, ...]


class Load:
    """The apps, and what changes from minute to minute."""

    def __init__(self, nodes: float, chance: np.random.Generator) -> None:
        """`nodes`: how many of 16 cpus the load fills at its peak."""
        self._chance = chance
        self._numbers = count()
        self.app_of: dict[str, App] = {}
        self._ends: dict[str, float] = {}
        self.apps = [self._made(n, is_job=False) for n in range(_SERVICES)]
        self.apps += [self._made(_SERVICES + n, is_job=True) for n in range(_JOBS)]
        cpu = nodes * _CPU_OF_NODE
        for app in self.apps:
            each = app.requests["cpu"] / 10**9
            app.peak = cpu * 0.9 / _SERVICES / each if not app.is_job else cpu * 0.4 / _JOBS / each
        self._deploys = {
            int(chance.integers(9 * 60, 17 * 60)): int(chance.integers(_SERVICES)) for _ in range(_DEPLOYS)
        }

    def _made(self, number: int, is_job: bool) -> App:
        chance = self._chance
        cpu = float(chance.choice((1.0, 2.0, 4.0) if is_job else (0.5, 1.0, 1.0, 2.0, 3.0)))
        memory = cpu * float(chance.choice((2.0, 4.0, 6.0) if is_job else (1.0, 2.0, 4.0, 7.0)))
        if is_job:
            return an_app(f"job-{number:02d}", cpu, memory, {}, held=bool(chance.random() < 0.5))
        name, asks = f"web-{number:02d}", Raw()
        if chance.random() < 0.6:
            asks["nodeSelector"] = {names.CAPACITY_TYPE: names.CAPACITY_ON_DEMAND}
        if chance.random() < 0.3:
            spread = {"maxSkew": 2, "topologyKey": names.ZONE, "whenUnsatisfiable": "DoNotSchedule"}
            asks["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"app": name}}}]
        return an_app(name, cpu, memory, asks)

    def wanted(self, app: App, minute: int) -> int:
        """How many pods a service has at that minute of the day."""
        share = (1 + cos(2 * pi * (minute / 60 - 14) / 24)) / 2
        return max(1, round(app.peak * (_LEAST + (1 - _LEAST) * share)))

    def pass_a_minute(self, minute: int, now: float) -> Change:
        """What comes and goes at that minute."""
        come: list[tuple[str, App]] = []
        go = [name for name, end in self._ends.items() if end <= now and name in self.app_of]
        deployed = self._deploys.get(minute % 1440)
        if deployed is not None:
            self.apps[deployed].old = list(self.apps[deployed].pods)
        for app in self.apps:
            if app.is_job:
                come += [(self._new(app), app) for _ in range(self._started(app, minute))]
                continue
            wanted, batch = self.wanted(app, minute), -(-len(app.pods) // _BATCH)
            replaced = [name for name in app.old[:batch] if name in self.app_of]
            app.old = app.old[batch:]
            more = wanted - len(app.pods)
            come += [(self._new(app), app) for _ in range(max(0, more) + len(replaced))]
            go += [*replaced, *[name for name in app.pods if name not in replaced][: max(0, -more)]]
        for name, app in come:
            self.add(name, app)
            if app.is_job:
                self._ends[name] = now + float(self._chance.uniform(20, 90)) * MINUTE
        for name in go:
            self.remove(name)
        return Change(tuple(come), tuple(dict.fromkeys(go)))

    def _started(self, app: App, minute: int) -> int:
        by_night = minute % 1440 >= 20 * 60 or minute % 1440 < 6 * 60
        return int(self._chance.poisson(app.peak / 60)) if by_night else 0

    def _new(self, app: App) -> str:
        return f"{app.name}-{next(self._numbers):06d}"

    def add(self, name: str, app: App) -> None:
        """The pod is there."""
        self.app_of[name] = app
        app.pods.append(name)

    def remove(self, name: str) -> None:
        """The pod is gone."""
        app = self.app_of.pop(name, None)
        if app is not None:
            app.pods.remove(name)
        self._ends.pop(name, None)

    def again(self, name: str) -> tuple[str, App]:
        """The pod that its owner makes in place of an evicted one; a job has as much left to do as it had."""
        app, end = self.newest(self.app_of[name]), self._ends.get(name)
        self.remove(name)
        made = self._new(app)
        self.add(made, app)
        if end is not None:
            self._ends[made] = end
        return made, app

    def newest(self, app: App) -> App:
        """By what its owner makes pods now."""
        return app

    def groups(self) -> Iterable[tuple[App, int]]:
        """The apps, and how many pods each has."""
        return ((app, len(app.pods)) for app in self.apps if app.pods)


START: Final = RECORDED_AT

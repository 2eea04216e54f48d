"""A week beside one that a vendor has published: what is known of it rebuilt, the rest ours and said so.

Cast AI, May 2026: a cluster under Karpenter for $703 a week, under their product for $401 (0.57). Known are the types
(c, m and r of generation 5 and later, 2 to 32 vCPU), spot capacity first, 15 to 20 nodes at peak and 8 to 10 off peak,
spread constraints, tight PodDisruptionBudgets, and requests that change every 30 minutes. Ours are the pods: which
sizes, how many, how often a service is among those whose requests change.

Every service is spread over the zones with a skew of one, some over hosts as well, and has a PodDisruptionBudget of
one. Every half an hour some services get other requests, and their pods are replaced in parts. A fifth must be on
demand.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from acceptance.least.bound import least_of
from acceptance.least.reading import Question
from dovetail.model import names
from dovetail.model.objects.workloads import PodDisruptionBudget
from dovetail.model.pods import Expression, LabelSelector
from dovetail.model.snapshot import Snapshot
from research.days.fleet import Fleet
from research.days.load import App, Change, Load, an_app
from research.days.market import Market
from research.days.play import Play, Running

RESIZE_MINUTES: Final = 30
RESIZED: Final = 4  # services whose requests change each time
_FACTORS: Final = (0.8, 0.9, 1.0, 1.15, 1.3)  # of what a service asked for at first
_ON_DEMAND: Final = 0.2  # of the services
_OVER_HOSTS: Final = 0.25
_JOBS: Final = 0.3  # of the jobs of the other day
_RESOURCES: Final = ("cpu", "memory", "pods")


class VendorLoad(Load):
    """Services that follow the sun, some jobs by night, and requests that change."""

    def __init__(self, nodes: float, chance: np.random.Generator) -> None:
        self._sizes: dict[str, tuple[float, float]] = {}
        self._versions: dict[tuple[str, float], App] = {}
        super().__init__(nodes, chance)
        self._deploys.clear()
        self._resizing = np.random.default_rng(int(chance.integers(2**31)))

    def _made(self, number: int, is_job: bool) -> App:
        if is_job:
            return super()._made(number, is_job)
        chance = self._chance
        cpu = float(chance.choice((0.5, 1.0, 2.0, 2.0, 4.0)))
        name, memory = f"web-{number:02d}", cpu * float(chance.choice((1.0, 2.0, 4.0, 7.0)))
        spread = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": name}}}
        spreads: list[dict[str, Any]] = [{**spread, "maxSkew": 1, "topologyKey": names.ZONE}]
        if chance.random() < _OVER_HOSTS:
            spreads.append({**spread, "maxSkew": 3, "topologyKey": names.HOSTNAME})
        asks: dict[str, Any] = {"topologySpreadConstraints": spreads}
        if chance.random() < _ON_DEMAND:
            asks["nodeSelector"] = {names.CAPACITY_TYPE: names.CAPACITY_ON_DEMAND}
        self._sizes[name] = (cpu, memory)
        self._versions[name, 1.0] = found = an_app(name, cpu, memory, asks)
        return found

    def pass_a_minute(self, minute: int, now: float) -> Change:
        """Every half an hour some services are deployed anew with other requests."""
        if minute % RESIZE_MINUTES == 0:
            services = [at for at, app in enumerate(self.apps) if not app.is_job]
            for at in self._resizing.choice(services, RESIZED, replace=False):
                self._resize(int(at), float(self._resizing.choice(_FACTORS)))
        return super().pass_a_minute(minute, now)

    def _resize(self, at: int, factor: float) -> None:
        before = self.apps[at]
        cpu, memory = self._sizes[before.name]
        made = self._versions.get((before.name, factor))
        if made is None:
            asks = {key: value for key, value in before.spec.items() if key != "containers"}
            made = self._versions[before.name, factor] = an_app(before.name, cpu * factor, memory * factor, asks)
            made.owner = replace(made.owner, name=f"{before.name}-{factor}", uid=f"{before.name}-{factor}")
        if made is before:
            return
        made.peak, made.pods, made.old = before.peak, before.pods, list(before.pods)
        self.apps[at] = made

    def newest(self, app: App) -> App:
        """An owner makes pods by the newest requests, whatever those of the evicted pod were."""
        return next(each for each in self.apps if each.name == app.name)

    def _started(self, app: App, minute: int) -> int:
        return int(self._chance.binomial(super()._started(app, minute), _JOBS))

    def groups(self) -> Iterable[tuple[App, int]]:
        """By requests, and how many pods there are of each."""
        found: Counter[App] = Counter(self.app_of.values())
        return sorted(found.items(), key=lambda each: (each[0].name, each[0].requests["cpu"]))


class VendorFleet(Fleet):
    """Services have PodDisruptionBudgets of one pod."""

    def allowed(self) -> dict[str, int]:
        """By service, how many of its pods may be evicted now: one where all run, else none."""
        found: dict[str, int] = {}
        for name, app in self.app_of.items():
            if not app.is_job:
                found[app.name] = min(found.get(app.name, 1), 0 if name in self.pending else 1)
        return found

    def snapshot(self, now: float, taken: frozenset[str] = frozenset()) -> Snapshot:
        """With the budgets, as they are at this moment."""
        budgets = (
            PodDisruptionBudget(
                name=name,
                namespace="default",
                selector=LabelSelector(expressions=(Expression(key="app", operator="In", values=(name,)),)),
                disruptions_allowed=allowed,
                max_unavailable="1",
            )
            for name, allowed in self.allowed().items()
        )
        return replace(super().snapshot(now, taken), pdbs={f"default/{each.name}": each for each in budgets})


class VendorPlay(Play):
    """A drain evicts no more pods in a minute than the budgets permit."""

    LOAD: ClassVar[type[Load]] = VendorLoad
    FLEET: ClassVar[type[Fleet]] = VendorFleet

    def _lowest(self) -> float:
        return poured(self.load.groups(), self.market)

    def _drain(self, now: float) -> None:
        fleet = self.fleet
        assert isinstance(fleet, VendorFleet)
        allowed = fleet.allowed()
        waiting: list[Running] = []
        for each in self._running:
            nodes = [t.node for t in each.command.targets if t.node in fleet.nodes]
            if self._is_up(each):
                for name in nodes:
                    self.figures.moved += self._make_anew(self._permitted(name, allowed), now)
                    if not fleet.nodes[name].pods:
                        self._end(name, now)
            if not self._is_up(each) or any(name in fleet.nodes for name in nodes):
                waiting.append(each)
        self._running = waiting

    def _permitted(self, node: str, allowed: dict[str, int]) -> list[str]:
        """The pods of the node that may be evicted now; they are taken from what is allowed."""
        found: list[str] = []
        for name in sorted(self.fleet.nodes[node].pods):
            app = self.fleet.app_of[name]
            if not app.is_job:
                if not allowed[app.name]:
                    continue
                allowed[app.name] -= 1
            found.append(name)
        return found


def poured(groups: Iterable[tuple[App, int]], market: Market) -> float:
    """The linear program of one moment: pods may be poured over nodes, spreads are left out."""
    found = list(groups)
    if not found:
        return 0.0
    cheapest: dict[tuple[str, str], float] = {}
    for (kind, _, capacity_type), price in market.prices.items():
        key = kind, capacity_type
        cheapest[key] = min(price, cheapest.get(key, price))
    rooms = [[float(market.allocatable(kind)[name]) for name in _RESOURCES] for kind, _ in cheapest]
    sizes = [[float({**app.requests, "pods": 1}[name]) for name in _RESOURCES] for app, _ in found]
    scale = np.array(rooms).max(axis=0)
    bound = [app.spec.get("nodeSelector") is not None for app, _ in found]
    question = Question(
        sizes=np.array(sizes) / scale,
        stock=np.array([float(pods) for _, pods in found]),
        room=np.array(rooms) / scale,
        price=np.array(list(cheapest.values())),
        suits=np.array([[kind == names.CAPACITY_ON_DEMAND or not only for only in bound] for _, kind in cheapest]),
        apart=np.zeros((0, len(found))),
        most=np.zeros(0),
    )
    return least_of(question, 0.0).dollars

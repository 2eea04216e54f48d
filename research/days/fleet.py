"""The nodes of the played cluster and the pods on them, as the product sees them and as the kube-scheduler does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

import numpy as np

from acceptance.binding.pods import Kinds
from acceptance.binding.scheduler import Cluster
from dovetail.messages.plans import ProposedNode
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.pods import Expression, Pod
from dovetail.model.pools import Budget, ClaimTemplate, DisruptionPolicy, NodePool
from dovetail.model.snapshot import Snapshot
from research.days.load import App
from research.days.market import Key, Market, as_bound

START_SECONDS: Final = 60.0  # from a claim to a node that takes pods
CLASS: Final = NodeClassRef(group="bench.dovetail.sh", kind="BenchNodeClass", name="default")
_UP: Final = (names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION)


@dataclass(slots=True)
class Standing:
    """One node, from its launch to its end."""

    claim: NodeClaim
    key: Key
    ready_at: float
    node: Node | None = None
    pods: set[str] = field(default_factory=set)


def a_pool() -> NodePool:
    """The one pool: spot and on demand, a tenth of its nodes at a time, five minutes of quiet."""
    both = (names.CAPACITY_ON_DEMAND, names.CAPACITY_SPOT)
    requirements = (Expression(key=names.CAPACITY_TYPE, operator="In", values=both),)
    return NodePool(
        name="default",
        uid="default",
        template=ClaimTemplate(node_class=CLASS, requirements=requirements, expire_after=None),
        disruption=DisruptionPolicy(
            policy="WhenEmptyOrUnderutilized", consolidate_after=300.0, budgets=(Budget(nodes="10%"),)
        ),
        conditions=tuple(_condition(kind, 0.0) for kind in ("Ready", "ValidationSucceeded", "NodeClassReady")),
    )


def _condition(kind: str, at: float) -> Condition:
    return Condition(type=kind, status="True", reason=kind, changed=at)


class Fleet:
    """All nodes and pods at one moment."""

    def __init__(self, market: Market, chance: np.random.Generator) -> None:
        self.market = market
        self._chance = chance
        # By pod, the new node planned for it, to which it is nominated once both are there.
        self.nominated: dict[str, str] = {}
        self._numbers = count()
        self.pools = {pool.name: pool for pool in (a_pool(),)}
        self.nodes: dict[str, Standing] = {}
        self.pods: dict[str, Pod] = {}
        self.pending: dict[str, tuple[App, float]] = {}  # since when
        self.app_of: dict[str, App] = {}
        self._kinds = Kinds()
        self._cluster = Cluster((), self._kinds, chance)
        self._at: dict[str, int] = {}
        self._events: dict[str, float] = {}

    # --- pods

    def come(self, pods: Iterable[tuple[str, App]], now: float) -> None:
        """Pods that nobody has a place for yet."""
        for name, app in pods:
            self.pods[name] = app.pod(name, now)
            self.pending[name] = (app, now)
            self.app_of[name] = app

    def go(self, pods: Iterable[str], now: float) -> None:
        """They are gone, wherever they were."""
        for name in pods:
            pod = self.pods.pop(name)
            self.pending.pop(name, None)
            self.nominated.pop(name, None)
            app = self.app_of.pop(name)
            if pod.node_name:
                self.nodes[pod.node_name].pods.discard(name)
                self._cluster.release(name, self._kinds.of(app.raw(name)))
                self._events[pod.node_name] = now

    def bind(self, now: float) -> list[tuple[str, float]]:
        """What the kube-scheduler binds now: which pods, and how long each has waited."""
        if not self.pending or not self._cluster.up.any():
            return []
        for name, (app, _) in self.pending.items():
            self._known(name, app)
        waiting = [app.raw(name) for name, (app, _) in self.pending.items()]
        wanted = {name: self._at[node] for name, node in self.nominated.items() if node in self._at}
        left = {raw["metadata"]["name"] for raw in self._cluster.bind_what_fits(waiting, wanted)}
        found = [(name, now - since) for name, (_, since) in self.pending.items() if name not in left]
        for name, _ in found:
            del self.pending[name]
            self.nominated.pop(name, None)
            node = self._cluster.nodes[self._cluster.bound[name]].name
            pod = self.pods[name]
            self.pods[name] = replace(
                pod, node_name=node, phase="Running", started=now, ready=True, unschedulable=False
            )
            self.nodes[node].pods.add(name)
            self._events[node] = now
        return found

    def _known(self, name: str, app: App) -> None:
        """A kind with terms of its own that the model has not counted yet makes it count anew."""
        before = len(self._kinds.all)
        self._kinds.of(app.raw(name))
        if len(self._kinds.all) > before:
            self._count_anew()

    def _count_anew(self) -> None:
        standing = [(name, each) for name, each in self.nodes.items() if each.node is not None]
        nodes = [as_bound(name, each.key, self.market) for name, each in standing]
        self._cluster = Cluster(nodes, self._kinds, self._chance)
        self._at = {name: number for number, (name, _) in enumerate(standing)}
        for name, each in standing:
            self._cluster.up[self._at[name]] = names.OWNER not in each.claim.annotations
            for pod in each.pods:
                self._cluster.bind(pod, self._kinds.of(self.app_of[pod].raw(pod)), self._at[name])

    # --- nodes

    def launch(self, proposed: Sequence[tuple[ProposedNode, tuple[str, ...]]], plan: str, now: float) -> list[str]:
        """Claims for these nodes, with their types in price order; each becomes what the market makes of its claim."""
        return [self._launched(node, types, f"{plan}/{n}", now) for n, (node, types) in enumerate(proposed)]

    def _launched(self, proposed: ProposedNode, types: tuple[str, ...], plan: str, now: float) -> str:
        allowed = {e.key: e.values for e in proposed.requirements if e.operator == "In"}
        key = self.market.launched_as(types or allowed[names.INSTANCE_TYPE], allowed)
        name = f"node-{next(self._numbers):05d}"
        labels = {
            names.NODE_POOL: proposed.pool,
            names.INSTANCE_TYPE: key[0],
            names.ZONE: key[1],
            names.CAPACITY_TYPE: key[2],
            names.HOSTNAME: name,
            names.ARCH: "amd64",
            names.OS: "linux",
        }
        planned = ",".join(sorted(pod.uid for pod in proposed.pods))
        claim = NodeClaim(
            name=name,
            uid=name,
            created=now,
            labels=labels,
            annotations={**dict(proposed.annotations), names.PLAN: plan, names.PLANNED_PODS: planned},
            node_class=CLASS,
            requests=dict(proposed.requests),
            provider_id=f"bench://{name}",
            capacity=self.market.capacity(key[0]),
            allocatable=self.market.allocatable(key[0]),
            conditions=(_condition(names.LAUNCHED, now),),
        )
        self.nodes[name] = Standing(claim, key, now + START_SECONDS)
        return name

    def come_up(self, now: float) -> None:
        """The nodes that take pods from now on."""
        found = [each for each in self.nodes.values() if each.node is None and each.ready_at <= now]
        for each in found:
            claim = each.claim
            each.node = Node(
                name=claim.name,
                uid=claim.name,
                provider_id=claim.provider_id,
                created=now,
                labels={**claim.labels, names.REGISTERED: "true", names.INITIALIZED: "true"},
                capacity=claim.capacity,
                allocatable=claim.allocatable,
                conditions=(_condition("Ready", now),),
            )
            conditions = (*claim.conditions, *(_condition(kind, now) for kind in _UP))
            each.claim = replace(claim, node_name=claim.name, conditions=conditions)
        if found:
            self._count_anew()

    def close(self, nodes: Iterable[str], plan: str) -> None:
        """They are tainted and marked: no pod is bound there any more."""
        for name in nodes:
            each = self.nodes[name]
            each.claim = replace(each.claim, annotations={**each.claim.annotations, names.OWNER: f"disrupt/{plan}"})
            self._cluster.up[self._at[name]] = False

    def reopen(self, nodes: Iterable[str]) -> None:
        """Their disruption was called off: pods are bound there again."""
        for name in nodes:
            each = self.nodes[name]
            kept = {key: value for key, value in each.claim.annotations.items() if key != names.OWNER}
            each.claim = replace(each.claim, annotations=kept)
            self._cluster.up[self._at[name]] = True

    def end(self, name: str) -> Standing:
        """The node is gone; nothing runs on it any more."""
        assert not self.nodes[name].pods
        if name in self._at:
            self._cluster.up[self._at[name]] = False
        return self.nodes.pop(name)

    def dollars(self) -> float:
        """What all of them cost an hour now."""
        return sum(self.market.prices[each.key] for each in self.nodes.values())

    def snapshot(self, now: float, taken: frozenset[str] = frozenset()) -> Snapshot:
        """The cluster as a decision reads it."""
        for name, at in self._events.items():
            each = self.nodes.get(name)
            if each is not None:
                each.claim = replace(each.claim, last_pod_event=at)
        self._events.clear()
        return Snapshot(
            now=now,
            pods=dict(self.pods),
            nodes={name: each.node for name, each in self.nodes.items() if each.node is not None},
            claims={name: each.claim for name, each in self.nodes.items()},
            pools=dict(self.pools),
            catalogues=dict.fromkeys(self.pools, self.market.catalogue),
            disrupting=taken,
        )

"""A cluster whose facts are wrong, played by a clock of its own: what provisioning plans, and what comes of it.

The decisions are the product's. The rest is what a cloud, kubelets and the kube-scheduler do in a world in which types
have less memory than they say, DaemonSets appear that no plan knows of, nodes come with other labels or with taints
that nobody takes off, stay unready, or never register. Nodes that stand empty are removed, as emptiness removes them,
and a node that never registers is given up after fifteen minutes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.activities.provisioning.create_node_claims import new_claim
from dovetail.lifecycle.unplanned_claims import with_unplanned_as_nodes
from dovetail.messages.plans import ProvisioningPlan
from dovetail.messages.requests import CreateRequest
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.objects.pod_rules import is_daemon
from dovetail.model.pods import Owner, Pod
from dovetail.model.pools import Catalogue, InstanceType
from dovetail.model.scheduling.taints import Taint, untolerated
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import Resources, fits, subtract, total
from dovetail.placement.earlier_claims import launch_in_vain
from dovetail.placement.launch_brake import pools_to_stop
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import BrakeSettings, PlacementSettings
from dovetail.rules.brake.unused_launches import stop_text, with_unused_launch
from tests.placement.builders import TYPES, a_general_pool
from worlds.disruption import NOW

STEP: Final = 5.0
LIVENESS: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """How far the world is from what plans believe. Empty: an honest world."""

    memory: float = 1.0  # the share of what a type says that an instance has
    claim_knows: bool = True  # whether the claim's status shows what the instance has, or what the plan believed
    daemon: int = 0  # bytes that a DaemonSet takes on each node, unknown to the plan
    zone: str = ""  # the label that each node comes with instead of its own
    taint: str = ""  # stays on each node; `startup` keeps it from being initialised
    registers: bool = True
    boot: float = 20.0
    empties_after: float = 30.0
    taken_after: float = 0.0  # an instance is taken away so long after it was bought; 0: none is
    takes: int = 1000  # how many of them


@dataclass(slots=True)
class WrongWorld:
    """Everything that exists."""

    wrong: Wrong
    pods: dict[str, Pod]
    now: float = NOW
    claims: dict[str, NodeClaim] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pool_annotations: dict[str, str] = field(default_factory=dict)
    launches: int = 0
    named: dict[str, list[str]] = field(default_factory=dict)  # pod -> the claims that were made for it
    lent: set[str] = field(default_factory=set)  # claims on whose nodes pods of other claims have run
    empty_since: dict[str, float] = field(default_factory=dict)
    types: tuple[InstanceType, ...] = TYPES
    taken: int = 0

    def play(self, seconds: float) -> None:
        """One pass of everybody each five seconds."""
        for _ in range(int(seconds / STEP)):
            self._plan()
            self._boot()
            self._bind()
            self._remove()
            self.now += STEP

    def snapshot(self) -> Snapshot:
        pool = replace(a_general_pool(), annotations=self.pool_annotations)
        return Snapshot(
            now=self.now,
            pods=dict(self.pods),
            nodes=dict(self.nodes),
            claims=dict(self.claims),
            pools={"default": pool},
            catalogues={"default": Catalogue(types=self.types)},
        )

    def in_vain(self) -> int:
        """The most claims that were made for one pod, and whose room nobody else has taken."""
        return max((sum(name not in self.lent for name in made) for made in self.named.values()), default=0)

    def pending(self) -> list[str]:
        return sorted(pod.name for pod in self.pods.values() if not pod.node_name)

    def _plan(self) -> None:
        snapshot = with_unplanned_as_nodes(self.snapshot())
        for stop in pools_to_stop(snapshot, BrakeSettings(), names.WELL_KNOWN_LABELS):
            self.pool_annotations[names.LAUNCHES_STOPPED] = stop_text(self.now, stop.why)
        plan, _ = plan_provisioning(with_unplanned_as_nodes(self.snapshot()), PlacementSettings(), lambda: False)
        self._create(plan)

    def _create(self, plan: ProvisioningPlan) -> None:
        request = CreateRequest(plan_id=f"p{self.now:.0f}", proposed=plan.proposed, type_lists=plan.type_lists)
        for index, proposed in enumerate(plan.proposed):
            made = new_claim(request, index)
            self.launches += 1
            chosen = next(t for t in self.types if t.name == request.type_lists[proposed.type_list][0])
            name = f"c{self.launches:05}"
            for pod in proposed.pods:
                self.named.setdefault(pod.uid, []).append(name)
            believed = dict(chosen.capacity)
            labels = {**made.labels, names.INSTANCE_TYPE: chosen.name, **_place(proposed.requirements)}
            self.claims[name] = NodeClaim(
                name=name,
                uid=name,
                created=self.now,
                labels=labels,
                annotations=made.annotations,
                node_class=made.node_class,
                requests=made.requests,
                provider_id=f"p://{name}",
                capacity=self._real(believed) if self.wrong.claim_knows else believed,
                allocatable=self._real(believed) if self.wrong.claim_knows else believed,
                conditions=(Condition(type=names.LAUNCHED, status="True", changed=self.now),),
            )

    def _real(self, believed: Resources) -> dict[str, int]:
        return {**believed, "memory": int(believed["memory"] * self.wrong.memory)}

    def _boot(self) -> None:
        for claim in list(self.claims.values()):
            if self.wrong.registers and not claim.node_name and self.now - claim.created >= self.wrong.boot:
                self._join(claim)

    def _join(self, claim: NodeClaim) -> None:
        chosen = next(t for t in self.types if t.name == claim.labels[names.INSTANCE_TYPE])
        real = self._real(chosen.capacity)
        initialized = self.wrong.taint != "startup"
        labels = {**claim.labels, names.HOSTNAME: claim.name, names.REGISTERED: "true"}
        labels |= {names.INITIALIZED: "true"} if initialized else {}
        labels |= {names.ZONE: self.wrong.zone} if self.wrong.zone else {}
        taints = (Taint(key=self.wrong.taint, effect="NoSchedule"),) if self.wrong.taint else ()
        self.nodes[claim.name] = Node(
            name=claim.name,
            provider_id=claim.provider_id,
            labels=labels,
            taints=taints,
            capacity=real,
            allocatable=real,
        )
        kinds = (names.REGISTERED_CONDITION, *((names.INITIALIZED_CONDITION,) if initialized else ()))
        joined = tuple(Condition(type=kind, status="True", changed=self.now) for kind in kinds)
        self.claims[claim.name] = replace(claim, node_name=claim.name, conditions=(*claim.conditions, *joined))
        if self.wrong.daemon:
            owner = Owner(api_version="apps/v1", kind="DaemonSet", name="d", uid="d", controller=True)
            some = next(iter(self.pods.values()))
            daemon = replace(some, name=f"d-{claim.name}", uid=f"d-{claim.name}", owners=(owner,), unschedulable=False)
            asked = {"cpu": 0, "memory": self.wrong.daemon, "pods": 1}
            self.pods[daemon.uid] = replace(daemon, requests=asked, node_name=claim.name, phase="Running")

    def _bind(self) -> None:
        """The largest free node first, which is seldom the one of the plan."""
        for uid, pod in sorted(self.pods.items()):
            if not pod.node_name:
                name = next(self._takers(pod), "")
                if name:
                    self.lent |= {name} - set(self.named.get(uid, ()))
                    self.pods[uid] = replace(pod, node_name=name, unschedulable=False, phase="Running")

    def _takers(self, pod: Pod) -> Iterator[str]:
        free = {
            name: subtract(n.allocatable, total(p.requests for p in self._on(name))) for name, n in self.nodes.items()
        }
        for name in sorted(free, key=lambda n: (-free[n].get("memory", 0), n)):
            node = self.nodes[name]
            selected = all(node.labels.get(key) == value for key, value in pod.shape.node_selector)
            if selected and untolerated(node.taints, pod.shape.tolerations) is None and fits(pod.requests, free[name]):
                yield name

    def _on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node_name == node]

    def _remove(self) -> None:
        for name, claim in list(self.claims.items()):
            used = any(not is_daemon(pod) for pod in self._on(name))
            if used:
                self.empty_since.pop(name, None)
                continue
            since = self.empty_since.setdefault(name, self.now)
            empty = claim.is_true(names.INITIALIZED_CONDITION) and self.now - since > self.wrong.empties_after
            if empty:
                self._end(replace(claim, annotations={**claim.annotations, names.OWNER: "dovetail/disruption/empty"}))
            elif not claim.node_name and self.now - claim.created > LIVENESS:
                self._end(claim)
            elif 0 < self.wrong.taken_after <= self.now - claim.created and self.wrong.takes > self.taken:
                self.taken += 1
                self._end(claim)

    def _end(self, claim: NodeClaim) -> None:
        """As release_claim does: the pool remembers what was of no use."""
        claim = replace(claim, deleting_since=self.now)
        if launch := launch_in_vain(claim, self.pods, self.now):
            pool = replace(a_general_pool(), annotations=self.pool_annotations)
            self.pool_annotations = dict(with_unused_launch(pool, launch, self.now).annotations)
        del self.claims[claim.name]
        self.nodes.pop(claim.name, None)
        self.pods = {uid: pod for uid, pod in self.pods.items() if not (pod.node_name == claim.name and is_daemon(pod))}


def _place(requirements: object) -> dict[str, str]:
    """Where the cloud launches: the first zone that is allowed, on-demand."""
    zones = next((e.values for e in requirements if e.key == names.ZONE and e.operator == "In"), ())  # type: ignore[attr-defined]
    return {names.ZONE: min(zones, default="z1"), names.CAPACITY_TYPE: "on-demand"}

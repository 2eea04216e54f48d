"""The life of a NodePool: what workers do in it, through the product's own looks, marks, creations and launches.

Nothing is typed by hand that the product makes: claims come from its plans, marks from the step that marks, drift from
its upkeep. Cloud, kubelets and controllers are played here, and what is true of them is kept beside the objects.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.activities.upkeep.rollouts import RolloutUpkeep
from dovetail.activities.upkeep.time_rules import TimeRuleUpkeep
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.adapters.kubernetes_json.rendering.policies import render_new_rollout
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.lifecycle.conditions import claim_conditions_with, true
from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, Target
from dovetail.messages.requests import CreateRequest, DeletesRequest, MarkRequest, UnmarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.objects.workloads import SelectorSource
from dovetail.model.own.claim_memory import images_of
from dovetail.model.own.policies import Freeze, Policy, PolicyStatus, TimeRules
from dovetail.model.own.rollouts import NewRollout, Rollout, RolloutStatus
from dovetail.model.pods import Owner, Pod
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.model.values.time import format_time
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import PlacementSettings
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, NodeClassState, Prepared
from dovetail.ports.failures import Conflict
from worlds.disruption import TYPES, a_pod, a_pool, condition
from worlds.fakes import (
    FakeClaims,
    FakeCloud,
    FakeLookups,
    FakeNotices,
    FakePools,
    FakeRules,
    World,
    create_ties,
    deleting,
    live_pauses,
    mark_ports,
    unasked,
)
from worlds.fakes.ports import FakeCatalogues
from worlds.kept_rollouts import kept

POOL: Final = "a"
SINGLE: Final = "single-"  # how names of services of one replica begin
BOOTS, STARTS, LEAVES = 60.0, 30.0, 60.0
BORN: Final = 1_700_000_000.0
SETTINGS: Final = DisruptionSettings()
TYPE: Final = TYPES[2]


def a_template(number: int) -> NodePool:
    """The NodePool with that template."""
    own = {names.NODE_POOL_HASH: str(number), names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM}
    return a_pool(POOL, consolidate_after=None, hash=str(number), annotations=own)


@dataclass
class Flight:
    """A disruption under way. `ready`: its targets are deleted."""

    plan: str
    command: DisruptionCommand
    begun: float
    new: tuple[ClaimRef, ...] = ()
    deleted: bool = False

    @property
    def owner(self) -> str:
        return f"c/disrupt/{self.plan}"


class Seen(FakeLookups):
    """The cache, with what people declare and what is on offer."""

    def snapshot(self, reads: Kinds | None = None) -> Snapshot:
        world = self.world
        found = super().snapshot(reads)
        return replace(
            found,
            catalogues={POOL: Catalogue(types=TYPES)},
            rollouts=world.rules.rollouts,
            policies=world.rules.policies,
            freezes=world.rules.freezes,
            selector_sources=self.wanted(),
        )

    def wanted(self) -> dict[str, SelectorSource]:
        """The ReplicaSets, each of which wants the pods that it was given."""
        wants = Counter(pod.owners[0].name for pod in self.world.pods.values())
        return {
            f"ReplicaSet/default/{name}": SelectorSource(
                kind="ReplicaSet", name=name, namespace="default", uid=name, replicas=number
            )
            for name, number in wants.items()
        }


class Offers(FakeCatalogues):
    """One NodeClass. `odd`: claims that have drifted for a reason of their own, which is nobody's change."""

    def __init__(self, life: "Life") -> None:
        self.life = life

    async def node_class(self, _: NodeClassRef) -> NodeClassState:
        if self.life.blind:
            return NodeClassState(found=True)
        return NodeClassState(found=True, version=self.life.image, makes=f"c/{self.life.image}")

    async def drift(self, claim: NodeClaim) -> str:
        if claim.uid in self.life.odd:
            return self.life.odd[claim.uid]
        return "AMIDrift" if self.life.image_of[claim.uid] != self.life.image else ""


class OneCloud(FakeCloud):
    """It launches the images that a claim names, else that of the NodeClass of that moment."""

    def __init__(self, world: World, life: "Life") -> None:
        super().__init__(world)
        self.life = life

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        older = images_of(claim.annotations)
        return Prepared(request=older[0].id if older else self.life.image)

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        found = await super().launch(claim, request, token, share)
        assert isinstance(found, Instance)
        self.life.image_of[claim.uid] = request
        own = {
            names.INSTANCE_TYPE: TYPE.name,
            names.ZONE: "z1",
            names.CAPACITY_TYPE: names.CAPACITY_ON_DEMAND,
            names.ARCH: "amd64",
            names.OS: "linux",
        }
        amounts = TYPE.capacity
        return replace(found, image_id=request, labels=own, annotations={}, capacity=amounts, allocatable=amounts)


class Objects(FakeRules):
    """NodeRollouts as the API server keeps them, with the versions of a write."""

    def __init__(self, world: World, life: "Life") -> None:
        super().__init__(world)
        self.life = life

    def put(self, rollout: Rollout) -> None:
        found = kept(replace(rollout, resource_version=self.world.version()))
        rules = self.world.rules
        self.world.rules = replace(rules, rollouts={**rules.rollouts, rollout.name: found})

    async def patch_rollout(self, rollout: Rollout, status: RolloutStatus) -> Rollout | None:
        live = self.world.rules.rollouts.get(rollout.name)
        if live is None or live.resource_version != rollout.resource_version:
            raise Conflict(rollout.name, "the object has been modified")
        self.life.wrote(live, status)
        self.put(replace(live, status=status))
        return self.world.rules.rollouts[rollout.name]

    async def create_rollout(self, new: NewRollout) -> None:
        if new.name not in self.world.rules.rollouts:
            made = render_new_rollout(new)
            own = {"uid": f"uid-{new.name}", "generation": 1, "creationTimestamp": format_time(self.world.clock)}
            self.put(parse_rollout({**made, "metadata": {**made["metadata"], **own}}))

    async def delete_rollout(self, rollout: Rollout) -> None:
        rules = self.world.rules
        left = {name: each for name, each in rules.rollouts.items() if name != rollout.name}
        self.world.rules = replace(rules, rollouts=left)

    async def patch_policy(self, policy: Policy, status: PolicyStatus) -> Policy | None:
        found, rules = replace(policy, status=status), self.world.rules
        self.world.rules = replace(rules, policies={**rules.policies, policy.name: found})
        return found

    async def patch_freeze(self, freeze: Freeze, conditions: tuple[Condition, ...]) -> Freeze | None:
        found, rules = replace(freeze, conditions=conditions), self.world.rules
        self.world.rules = replace(rules, freezes={**rules.freezes, freeze.name: found})
        return found


@dataclass
class Life:
    """One pool, its workloads and its workers."""

    chosen: random.Random
    rules: TimeRules
    image: str = "image-1"
    template: int = 1
    blind: bool = False  # what the NodeClass makes cannot be read
    away: bool = False  # no worker looks; Schedulers decide all the same, by what is written
    odd: dict[str, str] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)  # images on which pods crash
    mild: set[str] = field(default_factory=set)  # those of them on which only services of one replica do
    broken: set[str] = field(
        default_factory=set
    )  # UIDs of pods that crash wherever they are, and did before any change
    unready: set[str] = field(default_factory=set)  # claims whose nodes are not ready
    held: dict[str, float] = field(default_factory=dict)  # node -> until when something holds its drain
    image_of: dict[str, str] = field(default_factory=dict)  # claim UID -> the image of its instance
    flights: list[Flight] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))
    written: list[tuple[Rollout, RolloutStatus]] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = self.world = World(clock=BORN, rules=self.rules)
        world.pools[POOL] = replace(a_template(self.template), resource_version=world.version())
        self.lookups, self.objects, self.cloud = Seen(world), Objects(world, self), OneCloud(world, self)
        self.claims, pools, notices = FakeClaims(world), FakePools(world), FakeNotices(world)
        offers: Any = Offers(self)
        pauses = live_pauses(world, rules=self.objects, fleet=self.lookups.snapshot)
        self.marks = MarkAndUnmarkNodes(mark_ports(world, pauses=pauses, claims=self.claims), world.now)
        ties = create_ties(world, pauses=pauses)
        self.creating = CreateNodeClaims(self.claims, pools, notices, world.now, ties)
        known = KnownClaims(self.lookups, self.claims)
        self.launching = LaunchInstance(known, self.cloud, notices, world.now, offers)
        self.deleting = deleting(world, claims=self.claims)
        self.of_claims = ClaimUpkeep(self.claims, offers, world.now, names.WELL_KNOWN_LABELS, frozenset())
        times: Any = self.objects
        self.of_rollouts = RolloutUpkeep(times, notices)
        self.of_times = TimeRuleUpkeep(times, world.now, offers, notices, unasked())

    @property
    def now(self) -> float:
        return self.world.clock

    @property
    def rollout(self) -> Rollout | None:
        """The roll-out of now: one that is not complete before those that are."""
        found = sorted(self.world.rules.rollouts.values(), key=lambda each: (each.is_over, -each.created))
        return next(iter(found), None)

    def image_on(self, node: str) -> str:
        return self.image_of.get(self.world.claims[node].uid, "") if node in self.world.claims else ""

    def tell(self, what: str) -> None:
        rollout = self.rollout
        place = "" if rollout is None else f"{rollout.status.step} {rollout.status.state}"
        self.story.append(f"+{(self.now - BORN) / 60:.0f} min {what} [{place}]")

    def wrote(self, rollout: Rollout, status: RolloutStatus) -> None:
        """A worker writes a status."""
        self.written.append((rollout, status))
        if (rollout.status.step, rollout.status.state) != (status.step, status.state):
            self.tell(f"{rollout.name} becomes {status.step} {status.state}")

    @staticmethod
    async def run(step: Callable[[Any], Awaitable[Any]], given: Any, owner: str = "") -> Any:
        """A step of a workflow, by its id where it owns something."""
        stage = ActivityEnvironment()
        stage.info = replace(stage.info, workflow_id=owner or stage.info.workflow_id)
        return await stage.run(step, given)

    # Workers.

    async def look(self) -> None:
        """Everything that upkeep finds, until there is nothing more to write at that moment."""
        for _ in range(12):
            wrote = False
            for upkeep in (self.of_claims, self.of_rollouts, self.of_times):
                for write in (await upkeep.look(self.lookups.snapshot())).due:
                    wrote = True
                    if self.chosen.random() > 0.03:  # else the worker dies, and another looks
                        await write()
            if not wrote:
                return
        raise AssertionError("the same moment has writes for ever")

    async def decide(self) -> None:
        """The Scheduler, and the workflows of what it decides. It is asked where a node has drifted or goes back."""
        rollout = self.rollout
        goes_back = rollout is not None and rollout.goes_back
        if not goes_back and not any(claim.is_true(names.DRIFTED) for claim in self.world.claims.values()):
            return
        taken = frozenset(each.claim for flight in self.flights for each in flight.command.targets)
        seen = replace(self.lookups.snapshot(), disrupting=taken)
        choice = choose(seen, SETTINGS, never)
        if not isinstance(choice, DisruptionPlan):
            return
        await self.between()
        for command in choice.commands:
            flight = Flight(f"{next(self.numbers):010}", command, self.now)
            marked = await self.run(
                self.marks.mark_nodes, MarkRequest(owner=flight.owner, command=command, seen=choice.seen)
            )
            if not marked.marked:
                continue
            self.begun(flight)
            await self.between()
            request = CreateRequest(
                plan_id=flight.plan,
                proposed=command.replacements,
                type_lists=choice.type_lists,
                reason=command.reason.lower(),
                owner=flight.owner,
                places=choice.seen.places,
            )
            made = await self.run(self.creating.create_node_claims, request)
            flight.new = made.claims
            self.flights.append(flight)
            if made.refused or not await self.launched(made.claims):
                await self.undo(flight)

    def begun(self, flight: Flight) -> None:
        """Its nodes are marked."""

    async def between(self) -> None:
        """What others do between two steps of a workflow."""

    async def launched(self, refs: tuple[ClaimRef, ...]) -> bool:
        """Launch them; whether all were."""
        answers = [await self.run(self.launching.launch_instance, ref) for ref in refs]
        return all(answer.kind == "launched" for answer in answers)

    async def undo(self, flight: Flight) -> None:
        """The replacements go first, then the marks come off."""
        for ref in flight.new:
            self.world.nodes.pop(ref.name, None)
            self.world.claims.pop(ref.name, None)
        refs = tuple(ClaimRef(name=each.claim, uid=each.claim_uid) for each in flight.command.targets)
        await self.run(self.marks.unmark_nodes, UnmarkRequest(owner=flight.owner, claims=refs))
        self.flights.remove(flight)
        self.tell(f"undone {flight.plan}")

    async def fly(self) -> None:
        """Disruptions whose replacements are up delete what they replace; one that waits for too long is undone."""
        for flight in list(self.flights):
            found = [self.world.claims.get(ref.name) for ref in flight.new]
            if not flight.deleted and all(each and each.is_true(names.INITIALIZED_CONDITION) for each in found):
                flight.deleted = True
                request = DeletesRequest(targets=flight.command.targets, reason=flight.command.reason)
                await self.run(self.deleting.delete_claims, request, flight.owner)
            elif not flight.deleted and self.now - flight.begun > 900.0:
                await self.undo(flight)
            if flight.deleted and not any(each.claim in self.world.claims for each in flight.command.targets):
                self.flights.remove(flight)

    async def provision(self) -> None:
        """Nodes for the pods that have none."""
        if not any(not pod.node_name for pod in self.world.pods.values()):
            return
        plan, _ = plan_provisioning(self.lookups.snapshot(), PlacementSettings(), lambda: False)
        if plan.proposed:
            request = CreateRequest(
                plan_id=f"{next(self.numbers):010}",
                proposed=plan.proposed,
                type_lists=plan.type_lists,
                seen=plan.seen.ready(self.now),
            )
            made = await self.run(self.creating.create_node_claims, request)
            await self.launched(made.claims)

    # The cloud, kubelets and controllers.

    def kubelets(self) -> None:
        """Nodes join, are ready or not, and go; pods start, crash and are bound."""
        for claim in list(self.world.claims.values()):
            if claim.deleting_since is not None:
                self.drain(claim)
            elif claim.provider_id and not claim.node_name and self.now - claim.created >= BOOTS:
                self.join(claim)
        for name, node in list(self.world.nodes.items()):
            status = "False" if name in self.unready else "True"
            known = node.condition(names.READY)
            if known is not None and known.status != status:
                ready = condition(names.READY, changed=self.now, status=status)
                others = tuple(each for each in node.conditions if each.type != names.READY)
                self.world.put(replace(node, conditions=(*others, ready)))
        self.bind()
        for pod in list(self.world.pods.values()):
            self.run_pod(pod)

    def join(self, claim: NodeClaim) -> None:
        """The kubelet registers, and the claim is told of it."""
        own = {**claim.labels, names.HOSTNAME: claim.name, names.REGISTERED: "true", names.INITIALIZED: "true"}
        self.world.put(
            Node(
                name=claim.name,
                uid=f"node-{claim.uid}",
                provider_id=claim.provider_id,
                created=self.now,
                labels=own,
                capacity=TYPE.capacity,
                allocatable=TYPE.capacity,
                conditions=(condition(names.READY, changed=self.now),),
            )
        )
        known = [true(each, self.now) for each in (names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION)]
        conditions = claim_conditions_with(claim, *known)
        self.world.put(replace(claim, node_name=claim.name, conditions=conditions or ()))

    def drain(self, claim: NodeClaim) -> None:
        """Pods leave a node, unless something holds them; then it goes."""
        name, since = claim.node_name or claim.name, claim.deleting_since or self.now
        if self.now < max(since + LEAVES, self.held.get(name, 0.0)):
            return
        for pod in self.lookups.pods_on(name):
            self.world.pods[pod.uid] = replace(
                pod, node_name="", phase="Pending", started=None, ready=None, failing=False, unschedulable=True
            )
        self.world.nodes.pop(name, None)
        self.world.claims.pop(claim.name, None)

    def bind(self) -> None:
        """Pending pods go to the emptiest nodes."""
        waiting = [pod for pod in self.world.pods.values() if not pod.node_name]
        if not waiting:
            return
        room = {name: 8 for name, node in self.world.nodes.items() if not node.taints and self.is_staying(name)}
        for pod in self.world.pods.values():
            if pod.node_name in room:
                room[pod.node_name] -= 2
        for pod in waiting:
            free = [name for name in room if room[name] >= 2]
            if free:
                node = max(free, key=lambda name: (room[name], name))
                room[node] -= 2
                self.world.pods[pod.uid] = replace(
                    pod, node_name=node, phase="Running", started=self.now, unschedulable=False, ready=False
                )

    def is_staying(self, node: str) -> bool:
        claim = self.world.claims.get(node)
        return claim is not None and claim.deleting_since is None

    def run_pod(self, pod: Pod) -> None:
        """Whether it is ready, or fails."""
        if not pod.node_name:
            return
        up = pod.started is not None and self.now - pod.started >= STARTS
        crashes = up and (pod.uid in self.broken or self.harms(pod))
        is_ready = up and not crashes
        if (pod.ready, pod.failing) != (is_ready, crashes):
            self.world.pods[pod.uid] = replace(pod, ready=is_ready, failing=crashes)

    def harms(self, pod: Pod) -> bool:
        """Whether the image of its node makes it crash."""
        image = self.image_on(pod.node_name)
        return image in self.bad and (image not in self.mild or pod.owners[0].name.startswith(SINGLE))

    # What people have.

    def add_pods(self, application: str, replicas: int) -> None:
        """An application's pods, still without nodes."""
        owner = Owner(api_version="apps/v1", kind="ReplicaSet", name=application, uid=application, controller=True)
        for number in range(replicas):
            pod = a_pod("", cpu="2", name=f"{application}-{number}", owner=None, owners=(owner,), created=self.now)
            self.world.pods[pod.uid] = pod

    def remove_pods(self, application: str) -> None:
        """The application is gone."""
        self.world.pods = {uid: pod for uid, pod in self.world.pods.items() if pod.owners[0].name != application}

    async def leave(self, node: str, held_for: float = 0.0) -> None:
        """A person's delete, an interruption: something other than drift takes that node."""
        claim = self.world.claims[node]
        self.held[node] = self.now + held_for
        await self.claims.delete(claim.name, claim.uid)

    def targets_of(self, flight: Flight) -> Mapping[str, Target]:
        return {each.claim: each for each in flight.command.targets}

    async def beat(self, seconds: float) -> None:
        """A while passes."""
        self.world.clock += seconds
        self.kubelets()
        if not self.away:
            await self.look()
            await self.fly()
            await self.provision()
        await self.decide()

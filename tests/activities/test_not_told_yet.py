"""What people say is not taken as "nothing" before the watch has told of it, as after a worker's start. What is not
installed, of which the watch says that nothing can exist, holds nothing."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from dovetail.activities.shared.looks.snapshots import objects_now
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.activities.termination.mover import Mover
from dovetail.activities.upkeep.breakers import BreakerUpkeep
from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.activities.upkeep.rollouts import RolloutUpkeep
from dovetail.activities.upkeep.waiting_drift import WaitingDriftUpkeep
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS, MOVE_KINDS
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.cli.demo.change_objects import policies_that_guard_moves
from dovetail.model import names
from dovetail.model.objects.workloads import Deployment
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.own.rollouts import RolloutState
from dovetail.model.places.move_changes import GUARD, GUARD_KINDS
from dovetail.model.places.moves import Moves, MoveStep, WhyNotMoved
from dovetail.model.pods import Pod, VolumeUse
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.ports.failures import NotSeenYet
from dovetail.rules.brake.breakers import Breaker, Happened, with_breaker
from tests.activities.test_draining import START
from tests.activities.test_moving import Controller, Stage
from tests.activities.test_moving import stage as stage
from tests.activities.test_pool_statuses import Counted
from tests.activities.test_time_rules import Written
from tests.activities.test_waiting_drift import DAY, drifted
from tests.disruption.test_policy_rollouts import POLICY, POOL, TWO, a_ruled_cluster
from tests.disruption.test_rollouts import a_rollout, a_status
from tests.model.move_worlds import NODE, OWNER, a_moved_pod
from worlds.disruption import a_pair, a_world, condition
from worlds.fakes import FakeNotices, World
from worlds.time_rules import with_rules

KINDS = {kind.name: kind for kind in (*CLUSTER_KINDS, *MOVE_KINDS)}


def an_object(name: str, namespace: str = "", owner: str = "", **fields: Any) -> Json:
    meta: Json = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "generation": 4}
    meta |= {"namespace": namespace} if namespace else {}
    meta["annotations"] = fields.pop("annotations", {})
    if owner:
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    return {"metadata": meta, **fields}


STATUS = {"observedGeneration": 4, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
LEDGER = {"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, "template": {}}
OBJECTS: dict[str, tuple[Json, ...]] = {
    "Namespace": (an_object("apps"), an_object("kube-system")),
    "ReplicaSet": (an_object("ledger-1", "apps", owner="ledger", spec={"selector": {}}),),
    "Deployment": (
        an_object(
            "ledger",
            "apps",
            spec={**LEDGER, "progressDeadlineSeconds": 600},
            status=STATUS,
            annotations={names.MOVE: "restart"},
        ),
    ),
    "PersistentVolumeClaim": (
        an_object("data", "apps", spec={"volumeName": "v", "accessModes": ["ReadWriteMany"]}, status={}),
    ),
    "PersistentVolume": (an_object("v", spec={"accessModes": ["ReadWriteMany"], "csi": {"driver": "efs"}}),),
    GUARD_KINDS[0]: (an_object(GUARD, spec=policies_that_guard_moves()[0]["spec"]),),
    GUARD_KINDS[1]: (an_object(GUARD, spec={"policyName": GUARD, "validationActions": ["Deny"]}),),
}


@dataclass(slots=True)
class Telling:
    """A watch that has told of some kinds; others are not installed."""

    cache: Cache = field(default_factory=lambda: Cache(KINDS.values()))
    told: set[str] = field(default_factory=set)
    absent: frozenset[str] = frozenset()

    def tell(self, *kinds: str) -> "Telling":
        self.tells(*kinds)
        return self

    def tells(self, *kinds: str) -> None:
        for kind in kinds:
            self.cache.replace(kind, OBJECTS.get(kind, ()), 9)
        self.told |= set(kinds)

    def problem(self, kind: str) -> str:
        return "" if kind in self.told | self.absent else f"{kind}: not listed yet"

    def view(self) -> CachedView:
        return CachedView(self.cache, lambda: START, self.problem)


def all_but(*kinds: str, absent: frozenset[str] = frozenset()) -> CachedView:
    return Telling(absent=absent).tell(*(KINDS.keys() - set(kinds))).view()


def with_a_volume() -> Pod:
    pod = a_moved_pod()
    return replace(pod, shape=replace(pod.shape, volumes=(VolumeUse(claim_name="data"),)))


def test_what_a_move_depends_on_is_read_once_all_of_it_is_told() -> None:
    assert all_but().moves().verdict(with_a_volume(), NODE).step is MoveStep.BEGIN


def test_a_policy_that_let_something_pass_is_none_for_drains_and_for_plans() -> None:
    """TRM-45: whatever its object says. It is evicted, as where there is no policy."""
    all_told = Telling().tell(*KINDS.keys())
    view = CachedView(all_told.cache, lambda: START, all_told.problem, guarded=lambda: False)
    found = view.moves().verdict(with_a_volume(), NODE)
    assert (found.step, found.why) == (MoveStep.EVICT, WhyNotMoved.NOT_GUARDED)
    assert not view.snapshot().guards and all_told.view().snapshot().guards


@pytest.mark.parametrize("kind", sorted(OBJECTS.keys() - {"Namespace"}))
def test_a_pod_waits_until_the_watch_has_told_what_its_move_depends_on(kind: str) -> None:
    """TRM-41: it was evicted, as if nobody asked for a move or as if the policy that guards it were missing."""
    found = all_but(kind).moves().verdict(with_a_volume(), NODE)

    assert (found.step, found.why) == (MoveStep.HOLD, WhyNotMoved.UNSEEN)
    assert found.says and not found.is_wished, "nobody waits for it where the node is taken by others"


def test_what_a_namespace_says_of_moves_is_waited_for_where_the_deployment_says_nothing() -> None:
    telling = Telling().tell(*(KINDS.keys() - {"Namespace"}))
    telling.cache.replace("Deployment", [without_a_wish()], 10)

    assert telling.view().moves().verdict(a_moved_pod(), NODE).why is WhyNotMoved.UNSEEN


def without_a_wish() -> Json:
    [ledger] = OBJECTS["Deployment"]
    return {**ledger, "metadata": {**ledger["metadata"], "annotations": {}, "resourceVersion": "8"}}


def test_nothing_that_is_not_installed_holds_a_pod_for_ever() -> None:
    """An API server before 1.30 has no such policies: nothing is moved there."""
    found = all_but(*GUARD_KINDS, absent=frozenset(GUARD_KINDS)).moves().verdict(a_moved_pod(), NODE)

    assert (found.step, found.why) == (MoveStep.EVICT, WhyNotMoved.NOT_GUARDED)


@pytest.mark.parametrize("owner", ["StatefulSet", "DaemonSet", "Job"])
def test_a_pod_of_no_deployment_does_not_wait_for_deployments(owner: str) -> None:
    pod = a_moved_pod(owners=(replace(OWNER, kind=owner),))

    assert all_but("Deployment", "ReplicaSet").moves().verdict(pod, NODE).step is MoveStep.EVICT


def test_a_watch_that_breaks_later_holds_no_pod_of_which_everything_is_known() -> None:
    telling = Telling().tell(*KINDS)
    telling.cache.replace("Deployment", [without_a_wish()], 10)
    telling.told -= {"Deployment", "Namespace"}

    assert telling.view().moves().verdict(a_moved_pod(), NODE).step is MoveStep.EVICT


@dataclass(slots=True)
class Late:
    """The look-ups of moves, of a worker whose watch tells of one kind later."""

    telling: Telling
    controller: Controller

    def moves(self) -> Moves:
        return self.controller.moves() if self.telling.told >= KINDS.keys() else self.telling.view().moves()

    def moves_from(self, node: str) -> tuple[Deployment, ...]:
        return self.controller.moves_from(node)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", *GUARD_KINDS])
async def test_a_drain_evicts_no_only_replica_before_the_watch_has_told(stage: Stage, kind: str) -> None:
    """TRM-41. The worker has just started; half a minute later it knows, and the pod is moved."""
    telling = Telling().tell(*(KINDS.keys() - {kind}))
    drain = stage.make()
    drain.mover = replaced_lookups(stage, Late(telling, stage.controller))
    stage.pods.answers.clear()  # no PDB holds it
    stage.world.at(START + 30.0, lambda: telling.tells(kind))

    await stage.run(drain)

    assert (stage.evicted(), stage.begun()) == ([], 1)
    assert stage.world.clock >= START + 30.0


def replaced_lookups(stage: Stage, late: Late) -> Mover:
    pace = EvictionPace(stage.world.now, stage.world.pause)
    return Mover(stage.controller, late, FakeNotices(stage.world), pace, stage.world.now)


def holds_drains(view: CachedView) -> bool:
    try:
        return view.pause_on("default", Activity.DRAINS) is not None
    except NotSeenYet:
        return True


@pytest.mark.parametrize("kind", ["Freeze", "NodePool", "Namespace"])
def test_whether_drains_are_paused_is_not_known_before_the_watch_has_told(kind: str) -> None:
    assert holds_drains(all_but(kind)) and not holds_drains(all_but())
    assert not holds_drains(all_but("Freeze", absent=frozenset({"Freeze"})))


def test_what_has_been_told_of_pauses_counts_while_a_watch_is_broken() -> None:
    telling = Telling().tell(*KINDS)
    telling.told -= {"Freeze", "NodePool", "Namespace"}

    assert not holds_drains(telling.view())


async def test_a_drain_waits_until_it_is_known_whether_drains_are_paused(stage: Stage) -> None:
    class Unknown:
        def pause_on(self, pool: str, activity: Activity) -> Pause | None:
            if stage.world.clock < START + 60.0:
                raise NotSeenYet("cluster view", "Freeze: not listed yet")
            return None

    begun: list[int] = []
    stage.world.at(START + 59.0, lambda: begun.append(stage.begun()))

    await stage.run(stage.make(pauses=Unknown()))

    assert (begun, stage.begun()) == ([0], 1)


def test_a_snapshot_says_what_had_not_been_told_when_it_was_made() -> None:
    """Also where it is told in the moment between: the objects may be missing in the snapshot."""
    telling = Telling().tell(*(KINDS.keys() - {"NodeRollout"}))
    view = telling.view()

    class InBetween:
        def snapshot(self, reads: Any = None) -> Snapshot:
            found = view.snapshot(frozenset())
            telling.tells("NodeRollout")
            return found

        def stale(self) -> dict[str, str]:
            return view.stale()

    assert objects_now(cast(Any, InBetween()), None).stale == {"NodeRollout"}
    assert objects_now(view, None).stale == frozenset()


def stales(*kinds: str) -> list[tuple[str, bool]]:
    return [(kind, kind in kinds) for kind in ("DisruptionPolicy", "NodeRollout", "Freeze", "CSINode")]


@pytest.mark.parametrize(("kind", "waits"), stales("DisruptionPolicy", "NodeRollout"))
async def test_no_roll_out_is_made_before_it_is_known_which_there_are(kind: str, waits: bool) -> None:
    """DIQ-37: it would be named after none, and the change that is complete begin again."""
    world, upkeep = a_ruled_cluster(TWO, POLICY), RolloutUpkeep(Written(), FakeNotices(World()))

    assert len((await upkeep.look(replace(world, stale=frozenset({kind})))).due) == (0 if waits else 1)
    assert len((await upkeep.look(world)).due) == 1


@pytest.mark.parametrize(("kind", "waits"), stales("DisruptionPolicy"))
async def test_no_breaker_is_written_before_it_is_known_what_policies_say_of_it(kind: str, waits: bool) -> None:
    long_ago = (Happened(10.0, "00000002"),)  # it is taken off
    pool = with_breaker(POOL, Breaker(reason="Empty", failures=long_ago))
    upkeep = BreakerUpkeep(cast(Any, None), FakeNotices(World()), lambda: START + 3600.0)
    snapshot = Snapshot(now=START, pools={pool.name: pool})

    found = await upkeep.look(replace(snapshot, stale=frozenset({kind})))

    assert len(found.due) == (0 if waits else 1)


@pytest.mark.parametrize(("kind", "waits"), stales("DisruptionPolicy", "NodeRollout", "Freeze"))
async def test_why_drift_waits_is_told_once_the_rule_that_holds_it_is_known(kind: str, waits: bool) -> None:
    world = with_rules(a_world([drifted("n", 8 * DAY)], pools=[POOL]), a_rollout(a_status(step="gone")))
    upkeep = WaitingDriftUpkeep(FakeNotices(World()))

    assert len((await upkeep.look(replace(world, stale=frozenset({kind})))).due) == (0 if waits else 1)


async def test_a_pool_is_not_said_to_be_up_to_date_before_a_refusal_of_its_target_can_be_seen() -> None:
    """For a moment after each start a gate of GitOps would have passed."""
    refused = a_rollout(a_status(state=RolloutState.FAILED))
    statuses = PoolStatuses(Counted(), lambda: START)
    world = a_world([a_pair("n", also=(condition(names.DRIFTED),))], pools=[POOL])

    async def said(snapshot: Snapshot) -> tuple[str, str] | None:
        wanted, _ = await statuses.wanted(replace(snapshot, changed={"NodePool": 1}))
        found = wanted[POOL.name].conditions or ()
        return next(((each.status, each.reason) for each in found if each.type == "NodesUpToDate"), None)

    assert await said(replace(world, stale=frozenset({"NodeRollout"}))) is None
    assert await said(with_rules(world, refused)) == ("False", "RolloutBlocked")

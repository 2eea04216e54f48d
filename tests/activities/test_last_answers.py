"""What is remembered of the last look is what a look would find: over any course of events, those that say nothing new
among them."""

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Any, Final
from unittest.mock import Mock

import pytest

from dovetail.activities.orders.expiries import Expiries
from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import Look, Write
from dovetail.activities.upkeep.breakers import BreakerUpkeep
from dovetail.activities.upkeep.cancels import CancelUpkeep
from dovetail.activities.upkeep.keep_up import UpkeepTask
from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.activities.upkeep.settled import WhileSettled
from dovetail.activities.upkeep.waiting_drift import WaitingDriftUpkeep
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.lifecycle import unfinished
from dovetail.lifecycle.node_checks import missing_class_labels
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.objects.watched_kinds import NODES_AND_CLAIMS, NODES_AND_STANDING_CLAIMS, Kinds
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.placement.triggers import STANDING_ON, asking, standing
from dovetail.ports.cloud import NodeClassState
from dovetail.ports.objects import NodeClaims, NodePools, Notices
from tests.activities.test_ordering import FakeClasses
from tests.adapters.kubernetes_json.whole_objects import whole_objects

NOW: Final = 1_800_000_000.0
QUESTIONS: Final[dict[str, tuple[Kinds, Callable[[Snapshot], object]]]] = {
    "leaving": (NODES_AND_STANDING_CLAIMS, lambda found: unfinished.leaving_unowned(found).keys()),
    "owners": (NODES_AND_STANDING_CLAIMS, unfinished.owners),
    "releases": (NODES_AND_STANDING_CLAIMS, unfinished.releases),
    "marks": (NODES_AND_STANDING_CLAIMS, unfinished.marks),
    "deserted": (NODES_AND_STANDING_CLAIMS, unfinished.deserted),
    "labels": (NODES_AND_STANDING_CLAIMS, missing_class_labels),
    "what asks for nodes": (STANDING_ON, standing),
}


class ReadyClasses(FakeClasses):
    """Of which each is found ready."""

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return NodeClassState(found=True, ready="True", generation=1)


class Course:
    """Objects of four kinds that change, come and go."""

    def __init__(self, seed: int) -> None:
        self.chance, self.cache, self.version = random.Random(seed), Cache(CLUSTER_KINDS), 10
        self.objects: dict[tuple[str, str], Json] = {}
        for number in range(3):
            for kind in ("NodeClaim", "Node", "Pod", "NodePool"):
                self._put(kind, f"{kind.lower()}-{number}", self._new(kind, number))

    def _new(self, kind: str, number: int) -> Json:
        raw = copy.deepcopy(whole_objects()[kind])
        raw["metadata"] |= {"name": f"{kind.lower()}-{number}", "uid": f"{kind}-{number}-{self.version}"}
        for key in ("deletionTimestamp", *(() if kind == "Pod" else ("namespace",))):
            raw["metadata"].pop(key, None)
        if kind == "Node":
            raw["spec"]["providerID"] = f"aws:///zone/i-{number}"
        if kind == "NodeClaim":
            raw["status"] |= {"providerID": f"aws:///zone/i-{number}", "nodeName": f"node-{number}"}
        return raw

    def _put(self, kind: str, name: str, raw: Json, *, deleted: bool = False) -> None:
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        if deleted:
            self.objects.pop((kind, name))
        else:
            self.objects[kind, name] = raw
        self.cache.apply(kind, copy.deepcopy(raw), deleted=deleted)

    def step(self) -> None:
        """One event."""
        if not self.objects:
            return self._put("Node", "node-0", self._new("Node", 0))
        kind, name = self.chance.choice(sorted(self.objects))
        raw = copy.deepcopy(self.objects[kind, name])
        what = self.chance.randrange(8)
        if what == 0:
            number = int(name.rpartition("-")[2])
            self._put(kind, name, raw, deleted=True)
            if self.chance.random() < 0.8:
                self._put(kind, name, self._new(kind, number))
            return None
        self._change(what, raw)
        return self._put(kind, name, raw)

    def _change(self, what: int, raw: Json) -> None:
        meta: dict[str, Any] = raw["metadata"]
        if what == 1:
            meta["deletionTimestamp"] = format_time(NOW - 5)
        elif what == 2:
            meta["labels"] = {names.NODE_POOL: self.chance.choice(["nodepool-0", "nodepool-1"])}
        elif what == 3:
            meta["annotations"] = self.chance.choice([{}, {names.OWNER: "c/disrupt/1"}, {names.CANCEL: "no"}])
        elif what == 4:
            meta["finalizers"] = self.chance.choice([[], [names.TERMINATION_FINALIZER]])
        elif what == 5 and "status" in raw:
            status = self.chance.choice(["True", "False"])
            kinds = (names.LAUNCHED, names.INITIALIZED_CONDITION, names.READY, names.DRIFTED)
            moment = format_time(NOW - 700_000.0)
            raw["status"]["conditions"] = [
                {"type": k, "status": status, "reason": "R", "lastTransitionTime": moment} for k in kinds
            ]
        elif what == 6 and raw.get("kind") == "NodeClaim":
            raw["spec"]["expireAfter"] = self.chance.choice(["1h", "Never", "876000h"])
        elif what == 7 and raw.get("kind") == "NodeClaim":
            self._stamp(raw["status"])
        # else: a heartbeat, with nothing that is read

    def _stamp(self, status: dict[str, Any]) -> None:
        """As upkeep does where pods come and go; others write the conditions in an order of their own."""
        status["lastPodEventTime"] = format_time(NOW - self.chance.randrange(100))
        others = [each for each in status.get("conditions") or () if each["type"] != names.CONSOLIDATABLE]
        ripe = {"type": names.CONSOLIDATABLE, "status": "True", "reason": "R", "lastTransitionTime": format_time(NOW)}
        status["conditions"] = [*self.chance.choice([[], [ripe]]), *reversed(others)]

    def snapshot(self) -> Snapshot:
        found = self.cache.snapshot(NOW)
        classes = {(c.node_class.group, c.node_class.kind) for c in found.claims.values()}
        return replace(found, supported_node_classes=frozenset(classes) or frozenset({("g", "K")}))


@pytest.mark.parametrize("seed", range(8))
def test_the_last_answer_is_that_of_a_look(seed: int) -> None:
    course = Course(seed)
    remembered = {name: LastAnswer(kinds, question) for name, (kinds, question) in QUESTIONS.items()}
    expiries = Expiries()
    for _ in range(60):
        course.step()
        found = course.snapshot()
        for name, (_, question) in QUESTIONS.items():
            assert remembered[name].of(found) == question(found), name
        assert expiries.look(found) == (unfinished.expired(found), unfinished.next_expiry(found))
        assert asking(found, standing(found)) == asking(found)


@pytest.mark.parametrize("seed", range(4))
async def test_a_pool_of_which_nothing_has_changed_is_as_it_was_found(seed: int) -> None:
    course, clock = Course(seed), [NOW]
    classes = ReadyClasses()
    kept = PoolStatuses(classes, lambda: clock[0])
    for _ in range(60):
        course.step()
        clock[0] += 5.0  # longer than figures wait for the next write
        found = replace(course.snapshot(), now=clock[0])
        wanted, _ = await kept.wanted(found)
        assert wanted == (await PoolStatuses(classes, lambda: clock[0]).wanted(found))[0]


def test_a_question_is_asked_again_only_where_one_of_its_kinds_has_changed() -> None:
    course, asked = Course(1), list[float]()
    remembered = LastAnswer(NODES_AND_CLAIMS, lambda found: asked.append(found.now))
    pod, node = course.objects["Pod", "pod-0"], course.objects["Node", "node-0"]

    remembered.of(course.snapshot())
    course._put("Pod", "pod-0", {**pod, "metadata": {**pod["metadata"], "labels": {"new": "one"}}})
    remembered.of(course.snapshot())
    course._put("Node", "node-0", copy.deepcopy(node))  # a heartbeat
    remembered.of(course.snapshot())
    assert len(asked) == 1

    course._put("Node", "node-0", {**node, "metadata": {**node["metadata"], "labels": {"new": "one"}}})
    remembered.of(course.snapshot())
    assert len(asked) == 2


def test_what_comes_and_goes_with_pods_is_no_change_of_what_stands_on_a_claim() -> None:
    course = Course(1)
    claim = course.objects["NodeClaim", "nodeclaim-0"]
    before = course.snapshot()

    course._stamp(claim["status"])
    course._put("NodeClaim", "nodeclaim-0", claim)
    stamped = course.snapshot()
    assert stamped.version_of(NODES_AND_CLAIMS) != before.version_of(NODES_AND_CLAIMS)
    assert stamped.version_of(NODES_AND_STANDING_CLAIMS) == before.version_of(NODES_AND_STANDING_CLAIMS)

    claim["metadata"]["annotations"] = {names.CANCEL: "no"}
    course._put("NodeClaim", "nodeclaim-0", claim)
    assert course.snapshot().version_of(NODES_AND_STANDING_CLAIMS) != before.version_of(NODES_AND_STANDING_CLAIMS)


def test_where_nobody_counts_what_stands_every_change_of_a_claim_is_one() -> None:
    one, other = Snapshot(now=NOW, changed={"NodeClaim": 1}), Snapshot(now=NOW, changed={"NodeClaim": 2})

    assert one.version_of(NODES_AND_STANDING_CLAIMS) != other.version_of(NODES_AND_STANDING_CLAIMS)


@pytest.mark.parametrize("seed", range(8))
def test_the_pods_of_each_node_as_a_view_keeps_them_are_those_of_all_pods(seed: int) -> None:
    """And the same object as before where none of them has changed; a snapshot keeps those of its moment."""
    course, taken = Course(seed), list[tuple[Snapshot, Snapshot]]()
    for _ in range(60):
        course.step()
        found = course.snapshot()
        plain = replace(found, pod_index=None)
        assert found.pod_index is not None and found.pod_index.pods is found.pods
        taken.append((found, plain))
        if len(taken) > 1:
            before = taken[-2][0].pods_by_node
            for node, pods in found.pods_by_node.items():
                same = len(pods) == len(before.get(node, ())) and all(map(is_, pods, before[node]))
                assert not same or pods is before[node]
    for found, plain in taken:
        assert _by_node(found) == _by_node(plain)
        assert {pod.uid for pod in found.unbound_pods} == {pod.uid for pod in plain.unbound_pods}
        gone = frozenset(list(found.pods)[:1])
        left = {uid: pod for uid, pod in found.pods.items() if uid not in gone}
        assert found.pod_index is not None
        without = replace(found, pods=left, pod_index=found.pod_index.without(gone, left))
        assert _by_node(without) == _by_node(replace(found, pods=left)), "and an index of other pods is not asked"


def _by_node(snapshot: Snapshot) -> dict[str, set[str]]:
    return {node: {pod.uid for pod in pods} for node, pods in snapshot.pods_by_node.items() if pods}


async def test_a_task_is_asked_again_where_its_answer_may_be_another() -> None:
    """Whatever changes, and as time passes."""
    assert sum([await _due_in_a_course(seed) for seed in range(4)]) > 0


async def _due_in_a_course(seed: int) -> int:
    """How many writes were due; the same at each look whether tasks remember that nothing was due or not."""
    course, clock, due = Course(seed), [NOW], 0
    alone = _tasks(lambda: clock[0])
    settled = [WhileSettled(each, lambda: clock[0]) for each in _tasks(lambda: clock[0])]
    for _ in range(60):
        course.step()
        clock[0] += course.chance.choice([0.0, 1.0, 3600.0])
        found = replace(course.snapshot(), now=clock[0])
        for one, other in zip(alone, settled, strict=True):
            wanted, kept = await one.look(found), await other.look(found)
            assert (len(wanted.due), wanted.again) == (len(kept.due), kept.again)
            due += len(kept.due)
    return due


def _tasks(now: Callable[[], float]) -> list[UpkeepTask]:
    notices = Mock(spec=Notices)
    pools, claims = Mock(spec=NodePools), Mock(spec=NodeClaims)
    return [BreakerUpkeep(pools, notices, now), WaitingDriftUpkeep(notices), CancelUpkeep("c", claims, notices, now)]


async def test_a_task_that_has_found_nothing_rests_until_its_moment_or_a_change_beside_pods() -> None:
    asked, course, clock = list[float](), Course(1), [NOW]

    class Task:
        async def look(self, snapshot: Snapshot) -> Look[Write]:
            asked.append(snapshot.now)
            return Look(again=NOW + 60.0)

    task = WhileSettled(Task(), lambda: clock[0])
    pod = course.objects["Pod", "pod-0"]
    await task.look(course.snapshot())
    course._put("Pod", "pod-0", {**pod, "metadata": {**pod["metadata"], "labels": {"new": "one"}}})
    assert (await task.look(course.snapshot())).again == NOW + 60.0 and len(asked) == 1

    clock[0] = NOW + 60.0
    await task.look(course.snapshot())
    assert len(asked) == 2


def test_of_a_snapshot_of_which_nobody_counts_the_changes_nothing_is_remembered() -> None:
    asked = list[float]()
    remembered = LastAnswer(NODES_AND_CLAIMS, lambda found: asked.append(found.now))

    for now in (1.0, 2.0):
        remembered.of(Snapshot(now=now))

    assert asked == [1.0, 2.0]

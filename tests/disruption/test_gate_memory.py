"""The gate `nodes` compares each owner with how it fared when the step began, as the API server keeps that."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.model import names
from dovetail.model.objects.workloads import SelectorSource
from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import NodesRule, Rollout, RolloutState, RolloutStatus
from dovetail.model.pods import Owner, Pod
from dovetail.model.snapshot import Snapshot
from dovetail.rules.rollout.before import LONGEST
from dovetail.rules.rollout.gates import SWITCHED_OFF
from tests.disruption.test_rollouts import a_rollout
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world, condition
from worlds.kept_rollouts import kept, whole
from worlds.time_rules import with_rules

POOL: Final = replace(a_pool(consolidate_after=None), hash="2")
DRIFTED: Final = condition(names.DRIFTED, reason="ImageDrift")


def owner(name: str) -> tuple[Owner, ...]:
    return (Owner(api_version="apps/v1", kind="ReplicaSet", name=name, uid=f"uid-{name}", controller=True),)


def pods_of(name: str, *nodes: str, **also: Any) -> list[Pod]:
    return [a_pod(node, owner=None, owners=owner(name), **also) for node in nodes]


def crashing(name: str, *nodes: str) -> list[Pod]:
    return pods_of(name, *nodes, ready=False, failing=True, started=NOW - 3000.0)


class Pool:
    """One pool, looked at each minute; what is known of the roll-out is what the API server has."""

    def __init__(self, wants: dict[str, int], **changes: Any) -> None:
        self.rollout, self.now, self.wants = replace(a_rollout(RolloutStatus()), rolls_back=True, **changes), NOW, wants

    def sees(self, pods: Iterable[Pod], old: int, new: int) -> Snapshot:
        pairs = [a_pair(f"old{n}", also=(DRIFTED,), claim={"image_id": "image-1"}) for n in range(old)]
        pairs += [a_pair(f"new{n}", claim={"image_id": "image-2", "created": NOW + 1.0}) for n in range(new)]
        sources = {
            f"ReplicaSet/default/{name}": SelectorSource(
                kind="ReplicaSet", name=name, namespace="default", uid=f"uid-{name}", replicas=replicas
            )
            for name, replicas in self.wants.items()
        }
        found = replace(a_world(pairs, list(pods), [POOL]), now=self.now, selector_sources=sources)
        return with_rules(found, self.rollout)

    def look(self, pods: Iterable[Pod], old: int, new: int, minutes: int = 1) -> Rollout:
        pods = list(pods)
        for _ in range(minutes):
            status = rollout_status(self.rollout, self.sees(pods, old, new), self.now, "image-2")
            self.rollout = kept(replace(self.rollout, status=status))
            self.now += 60.0
        return self.rollout

    @property
    def gate(self) -> tuple[GateResult, str]:
        return self.rollout.status.gate.result, self.rollout.status.gate.message


def test_services_of_one_replica_that_crash_on_the_canary_take_the_image_back() -> None:
    pool, services = Pool({f"svc{n}": 1 for n in range(5)}), [f"svc{n}" for n in range(5)]
    pool.look([pod for name in services for pod in pods_of(name, "old0")], old=4, new=0)
    pool.look([pod for name in services for pod in crashing(name, "new0")], old=3, new=1, minutes=6)

    assert pool.rollout.status.state == RolloutState.ROLLING_BACK
    assert pool.rollout.status.failure is not None
    words = pool.rollout.status.failure.message
    assert words.startswith("pods are missing or not ready that were when the step began: ReplicaSet default/svc0")


def test_all_pods_of_an_application_that_crash_once_it_has_moved_as_a_whole_are_seen() -> None:
    pool = Pool({"web": 4})
    pool.look(pods_of("web", "old0", "old1", "old2", "old3"), old=4, new=0)
    pool.look(crashing("web", "new0", "new0", "new0", "new0"), old=3, new=1, minutes=2)

    assert pool.gate[0] == GateResult.FAILING


def test_a_pod_that_crashed_before_the_step_began_is_no_evidence_against_the_image() -> None:
    pool = Pool({"web": 50})
    well = pods_of("web", *["old0"] * 49)
    pool.look([*well, *crashing("web", "old1")], old=2, new=0)
    pool.look([*well, *crashing("web", "new0")], old=1, new=1, minutes=8)

    assert pool.gate == (GateResult.PASSING, "")
    pool.look([*well[1:], *crashing("web", "new0", "new0")], old=1, new=1, minutes=2)
    assert pool.gate[0] == GateResult.FAILING  # one more is


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (None, GateResult.FAILING),
        (NodesRule(pods=1), GateResult.FAILING),
        (NodesRule(pods=2), GateResult.PASSING),
        (NodesRule(percent=3), GateResult.FAILING),
        (NodesRule(percent=4), GateResult.PASSING),
        (NodesRule(percent=1, pods=2), GateResult.PASSING),
    ],
)
def test_as_many_pods_as_people_tolerate_are_no_objection(rule: NodesRule | None, verdict: GateResult) -> None:
    pool = Pool({"web": 50}, nodes_rule=rule)
    pool.look(pods_of("web", *["old0"] * 50), old=2, new=0)
    pool.look([*pods_of("web", *["old0"] * 48), *crashing("web", "new0", "new0")], old=1, new=1, minutes=2)

    assert pool.gate[0] == verdict


@pytest.mark.parametrize("started", [None, NOW - 30.0])
def test_a_pod_that_is_on_its_way_when_the_step_begins_was_not_known_to_be_well(started: float | None) -> None:
    pool = Pool({"svc": 1})
    node = "" if started is None else "old0"
    pool.look(pods_of("svc", node, ready=False, started=started), old=2, new=0)
    pool.look(crashing("svc", "new0"), old=1, new=1, minutes=8)

    assert pool.gate[0] == GateResult.PASSING


@pytest.mark.parametrize(("crash", "verdict"), [(1, GateResult.PASSING), (2, GateResult.FAILING)])
def test_several_pods_that_were_on_their_way_and_crash_at_the_target_are_no_accident_where_the_others_are_well(
    crash: int, verdict: GateResult
) -> None:
    pool = Pool({"web": 6})
    well = pods_of("web", "old0", "old1", "old1", "old1")
    pool.look([*well, *pods_of("web", "", "", ready=False, started=None)], old=2, new=0)
    came = ["new0"] * crash
    pool.look([*well, *crashing("web", *came), *pods_of("web", *["new0"] * (2 - crash))], old=1, new=1, minutes=3)

    assert pool.gate[0] == verdict


def test_pods_that_admission_refuses_count_and_what_is_wanted_beyond_those_of_before_does_not() -> None:
    pool = Pool({"web": 4, "scaled": 2})
    scaled = pods_of("scaled", "old0", "old0")
    pool.look([*pods_of("web", "old0", "old0", "old1", "old1"), *scaled], old=2, new=0)
    pool.wants["scaled"] = 9
    pool.look([*pods_of("web", "old0", "old0", "new0", "new0"), *scaled], old=1, new=1, minutes=3)
    assert pool.gate == (GateResult.PASSING, "")
    pool.look([*pods_of("web", "old0", "old0"), *scaled], old=1, new=1, minutes=2)

    assert pool.gate[0] == GateResult.FAILING and "ReplicaSet default/web" in pool.gate[1]
    assert "scaled" not in pool.gate[1]


def test_the_last_pod_that_is_not_made_again_is_named_and_one_that_ends_slowly_is_there_still() -> None:
    pool = Pool({"db": 1})
    pool.look(pods_of("db", "old0"), old=2, new=0)
    pool.look(pods_of("db", "old0", deleting_since=NOW), old=1, new=1, minutes=5)
    assert pool.gate == (GateResult.PASSING, "")
    pool.look([], old=1, new=1, minutes=2)

    said = "pods are missing or not ready that were when the step began: ReplicaSet default/db"
    assert pool.gate == (GateResult.FAILING, said)


def test_pods_that_the_kubelet_of_a_new_node_rejects_count_while_no_other_has_come_up() -> None:
    pool = Pool({"web": 2})
    pool.look(pods_of("web", "old0", "old1"), old=2, new=0)
    rejected = pods_of("web", "new0", phase="Failed", ready=False, created=NOW + 30.0)
    waiting = pods_of("web", "new0", ready=False, started=None, created=NOW + 60.0)
    pool.look([*pods_of("web", "old0"), *rejected, *waiting], old=1, new=1, minutes=3)
    assert str(pool.gate[0]) == "Failing"
    pool.look([*pods_of("web", "old0", "new0"), *rejected], old=1, new=1)
    assert str(pool.gate[0]) == "Passing"


def test_what_there_is_nothing_to_compare_with_is_named_and_passes() -> None:
    pool = Pool({"web": 1})
    pool.look(pods_of("web", "old0"), old=2, new=0)
    pool.look([*pods_of("web", "new0"), *crashing("young", "new0")], old=1, new=1, minutes=3)

    assert pool.gate[0] == GateResult.PASSING
    assert pool.gate[1].endswith("not ready at the target: ReplicaSet default/young")
    healthy = next(each for each in pool.rollout.status.conditions if each.type == "Healthy")
    assert (healthy.status, healthy.message) == ("True", pool.gate[1])


def test_a_pod_that_starts_where_its_owner_was_well_before_keeps_the_next_step_waiting() -> None:
    pool = Pool({"web": 1})
    pool.look(pods_of("web", "old0"), old=2, new=0)
    pool.look(pods_of("web", "new0", ready=False, started=pool.now), old=1, new=1)
    assert pool.gate == (GateResult.UNKNOWN, "no pod is ready yet on nodes at the target: ReplicaSet default/web")


def test_it_can_be_switched_off_and_says_so() -> None:
    pool = Pool({"web": 2}, nodes_rule=NodesRule(enabled=False))
    pool.look(pods_of("web", "old0", "old1"), old=2, new=0)
    pool.look([*pods_of("web", "old0"), *crashing("web", "new0")], old=1, new=1, minutes=8)

    assert pool.gate == (GateResult.PASSING, SWITCHED_OFF)
    assert pool.rollout.status.state not in (RolloutState.ROLLING_BACK, RolloutState.JUDGING)


def test_each_step_remembers_its_own_beginning_and_a_step_back_nothing_new() -> None:
    pool = Pool({"web": 2})
    pool.look(pods_of("web", "old0", "old1"), old=2, new=0)
    first = pool.rollout.status.owners
    pool.look([*pods_of("web", "old0"), *pods_of("web", "new0")], old=1, new=1, minutes=20)
    assert pool.rollout.status.step != "canary" and pool.rollout.status.owners == first
    broken = crashing("web", "old0", "old1")
    pool.look(broken, old=2, new=0, minutes=2)

    assert pool.rollout.status.step == "canary"
    assert pool.rollout.status.owners == first


def test_the_memory_is_short_whatever_the_cluster_is_and_one_of_before_is_read() -> None:
    pool = Pool({f"{n:0253}": 10_000 for n in range(400)})
    pool.look([pod for name in pool.wants for pod in pods_of(name, "old0")], old=2, new=0)
    status = json.loads(json.dumps(whole(pool.rollout)))["status"]
    assert LONGEST - len(" 0123+10000:9999:0") < len(status.pop("owners")) <= LONGEST

    of_before = parse_rollout({**whole(pool.rollout), "status": status})
    assert not of_before.fault and of_before.status.owners == ""
    strange = parse_rollout(
        {**whole(pool.rollout), "status": {**status, "owners": "x abcdy abcd1:z abcd1:2:3 : abcd abcd-1"}}
    )
    world = pool.sees(crashing("young", "new0"), old=1, new=1)
    assert rollout_status(strange, world, NOW, "image-2").gate.result == GateResult.PASSING


def test_of_more_owners_than_are_noted_those_that_lack_pods_come_first() -> None:
    pool = Pool({**{f"svc{n}": 1 for n in range(400)}, "web": 500})
    small = [pod for name in pool.wants if name != "web" for pod in pods_of(name, "old0")]
    well = pods_of("web", *["old0"] * 499)
    pool.look([*small, *well, *crashing("web", "old1")], old=2, new=0)
    pool.look([*small, *well, *crashing("web", "new0")], old=1, new=1, minutes=3)

    assert pool.gate == (GateResult.PASSING, "")

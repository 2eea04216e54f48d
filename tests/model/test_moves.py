"""Whether the one pod of a Deployment is moved by a roll-out, how far a move is, and what is written for it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.deployments import parse_deployment, parse_guard
from dovetail.model import names
from dovetail.model.objects.workloads import Begun, Failed, Namespace, RollOut, Volume, VolumeClaim
from dovetail.model.places.move_changes import (
    GUARD,
    GUARD_KINDS,
    MoveChange,
    MoveNote,
    beginning,
    ending,
    read_move,
    taking_back,
)
from dovetail.model.places.moved_pods import OfSnapshot, passed_on
from dovetail.model.places.moves import (
    OVERDUE_SECONDS,
    RETRY_SECONDS,
    USUAL_SECONDS,
    Moves,
    MoveStep,
    MoveVerdict,
    WhyNotMoved,
)
from dovetail.model.pods import HostPort, Pod, VolumeUse
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from tests.lifecycle.objects import a_joined_claim, a_joined_node
from tests.model.move_worlds import NODE, NOW, a_moved_pod, a_roll_out, a_world

FAILED = Failed(generation=6, at=NOW)
BEGUN = Begun(node=NODE, former="", generation=5, since=NOW)


def verdict(world: Snapshot, pod: Pod | None = None, deadline: float | None = None) -> MoveVerdict:
    return Moves(OfSnapshot(world), world.now).verdict(pod or a_moved_pod(), NODE, deadline)


@pytest.mark.parametrize(
    ("own", "of_namespace", "step"),
    [
        (None, None, MoveStep.EVICT),
        (None, "restart", MoveStep.BEGIN),
        (None, "evict", MoveStep.EVICT),
        (None, "hold", MoveStep.HOLD),
        ("restart", None, MoveStep.BEGIN),
        ("restart", "hold", MoveStep.BEGIN),
        ("evict", "restart", MoveStep.EVICT),
        ("hold", "restart", MoveStep.HOLD),
        ("Restart", None, MoveStep.HOLD),  # what cannot be read says "not now"
        (None, "", MoveStep.HOLD),
    ],
)
def test_the_nearer_word_wins(own: str | None, of_namespace: str | None, step: MoveStep) -> None:
    """TRM-39."""
    annotations = {} if of_namespace is None else {names.MOVE: of_namespace}
    world = a_world(a_roll_out(wish=own), namespaces={"apps": Namespace(name="apps", annotations=annotations)})

    assert verdict(world).step is step


def of_pod(**fields: Any) -> tuple[Snapshot, Pod]:
    pod = a_moved_pod()
    return a_world(a_roll_out()), replace(pod, shape=replace(pod.shape, **fields))


def with_claim(claim: VolumeClaim | None, **fields: Any) -> tuple[Snapshot, Pod]:
    """A pod that uses the claim `data`."""
    _, pod = of_pod(volumes=(VolumeUse(claim_name="data"),))
    claims = {} if claim is None else {"apps/data": claim}
    return replace(a_world(a_roll_out()), volume_claims=claims, **fields), pod


SHARED = VolumeClaim(name="data", namespace="apps", volume_name="v", many_nodes=True)

CASES: list[tuple[WhyNotMoved | None, tuple[Snapshot, Pod]]] = [
    (WhyNotMoved.NOT_GUARDED, (replace(a_world(a_roll_out()), guards={}), a_moved_pod())),
    (WhyNotMoved.SEVERAL_REPLICAS, (a_world(a_roll_out(replicas=2)), a_moved_pod())),
    (WhyNotMoved.STRATEGY, (a_world(a_roll_out(surges=False)), a_moved_pod())),
    (WhyNotMoved.PAUSED, (a_world(a_roll_out(paused=True)), a_moved_pod())),
    (WhyNotMoved.NO_DEADLINE, (a_world(a_roll_out(progress_seconds=None)), a_moved_pod())),
    (WhyNotMoved.ROLLING_OUT, (a_world(a_roll_out(settled=False)), a_moved_pod())),
    (WhyNotMoved.STUCK, (a_world(a_roll_out(settled=False, timed_out=True)), a_moved_pod())),
    (WhyNotMoved.VOLUME, with_claim(VolumeClaim(name="data", namespace="apps"))),
    (WhyNotMoved.VOLUME, with_claim(None)),
    (WhyNotMoved.VOLUME, with_claim(SHARED, volumes={"v": Volume(name="v", local=True)})),
    (None, with_claim(SHARED, volumes={"v": Volume(name="v")})),
    (None, of_pod(volumes=(VolumeUse(claim_name="scratch", ephemeral=True),))),
    (WhyNotMoved.HOST_PORT, of_pod(host_ports=(HostPort(address="", port=80, protocol="TCP"),))),
    (WhyNotMoved.ONE_NODE, of_pod(node_selector=((names.HOSTNAME, "node-1"),))),
    (WhyNotMoved.ONE_NODE, (a_world(a_roll_out(names_node=True)), a_moved_pod())),
    (WhyNotMoved.NO_DEPLOYMENT, (a_world(None), a_moved_pod())),
    (None, (a_world(a_roll_out()), a_moved_pod())),
]


@pytest.mark.parametrize(("why", "case"), CASES)
def test_a_pod_that_cannot_be_moved_has_its_reason(why: WhyNotMoved | None, case: tuple[Snapshot, Pod]) -> None:
    """TRM-40. It is evicted as ever, unless a roll-out of its own takes it away in a moment."""
    world, pod = case
    asking = replace(world, namespaces={"apps": Namespace(name="apps", annotations={names.MOVE: "restart"})})

    found = verdict(asking, pod)

    expected = MoveStep.BEGIN if why is None else MoveStep.HOLD if why is WhyNotMoved.ROLLING_OUT else MoveStep.EVICT
    assert (found.why, found.step) == (why, expected)


def test_every_reason_has_a_case() -> None:
    assert {why for why, _ in CASES} == {None, *WhyNotMoved} - {WhyNotMoved.NODE_DEADLINE, WhyNotMoved.UNSEEN}


def test_a_move_that_the_deadline_of_its_node_may_cut_is_not_begun() -> None:
    """TRM-40. A pod has 30 s of grace here."""
    world, enough = a_world(a_roll_out()), NOW + 30 + USUAL_SECONDS

    assert verdict(world, deadline=enough).step is MoveStep.BEGIN
    assert verdict(world, deadline=enough - 1).why is WhyNotMoved.NODE_DEADLINE


@pytest.mark.parametrize(
    ("fields", "after", "step"),
    [
        ({"settled": False}, 0.0, MoveStep.WATCH),
        ({"settled": True}, 0.0, MoveStep.WATCH),  # the old pod is about to go
        ({"settled": False, "timed_out": True}, 0.0, MoveStep.TAKE_BACK),
        ({"settled": False}, 600 + OVERDUE_SECONDS, MoveStep.WATCH),
        ({"settled": False}, 601 + OVERDUE_SECONDS, MoveStep.TAKE_BACK),  # its controller says nothing
        ({"settled": True}, 10_000.0, MoveStep.WATCH),
        ({"settled": False, "timed_out": True, "generation": 6}, 0.0, MoveStep.WATCH),  # somebody has rolled out since
        ({"settled": False, "wish": "evict"}, 0.0, MoveStep.WATCH),  # the wish is another now, the move goes on
    ],
)
def test_a_move_that_is_under_way_is_watched_and_taken_back_where_it_fails(
    fields: dict[str, Any], after: float, step: MoveStep
) -> None:
    """TRM-42."""
    roll_out = a_roll_out(**{"generation": 5, "begun": BEGUN, "moved": "a", **fields})

    assert verdict(replace(a_world(roll_out), now=NOW + after)).step is step


def test_a_pod_on_another_node_than_the_one_that_is_left_waits_for_the_move() -> None:
    roll_out = a_roll_out(begun=replace(BEGUN, node="another"), settled=False)

    assert verdict(a_world(roll_out)).why is WhyNotMoved.ROLLING_OUT


@pytest.mark.parametrize(
    ("after", "generation", "step"), [(899.0, 6, MoveStep.HOLD), (900.0, 6, MoveStep.BEGIN), (1.0, 7, MoveStep.BEGIN)]
)
def test_a_move_that_failed_is_tried_again_after_a_rest_or_once_the_deployment_has_changed(
    after: float, generation: int, step: MoveStep
) -> None:
    """TRM-42. The pod is not evicted meanwhile: its successor has just been seen not to run."""
    roll_out = a_roll_out(generation=generation, failed=Failed(generation=6, at=NOW))

    assert RETRY_SECONDS == 900.0
    assert verdict(replace(a_world(roll_out), now=NOW + after)).step is step


def test_two_values_take_turns_and_the_way_back_is_exact() -> None:
    """TRM-41. So the controller finds an older ReplicaSet again."""
    begins = beginning(a_roll_out(generation=4), NODE, NOW)
    assert begins == MoveChange(move=MoveNote(begun=BEGUN), template={names.MOVED: "a"})
    assert begins.annotations == {
        names.MOVES: f'{{"v":1,"entries":[{{"begun":{{"node":"{NODE}","former":"","generation":5,'
        '"since":"2023-11-14T22:13:20Z"}}]}'
    }
    assert read_move(begins.annotations[names.MOVES] or "") == MoveNote(begun=BEGUN)
    for former, value in (("a", "b"), ("b", "a")):
        change = beginning(a_roll_out(generation=4, moved=former), NODE, NOW)
        assert change.template == {names.MOVED: value}
        begun = read_move(change.annotations[names.MOVES] or "").begun
        assert begun is not None and begun == replace(BEGUN, former=former)
        back = taking_back(a_roll_out(generation=5, moved=value), begun, NOW, failed=True)
        assert back.template == {names.MOVED: former}
        assert read_move(back.annotations[names.MOVES] or "") == MoveNote(failed=Failed(generation=6, at=NOW))
    assert taking_back(a_roll_out(generation=5), BEGUN, NOW, failed=False) == MoveChange(
        move=MoveNote(), template={names.MOVED: None}
    )
    assert ending().annotations == {names.MOVES: None}


@pytest.mark.parametrize(
    "begun",
    [
        {},
        {"former": "c"},
        {"since": "soon"},
        {"node": ""},
        *({"generation": number} for number in (-5, "5", 2**63, 1.5)),
    ],
)
def test_what_is_not_ours_is_no_move(begun: Json) -> None:
    ours = {"node": "n", "former": "a", "generation": 5, "since": "2023-11-14T22:13:20Z"}
    text = json.dumps({"v": 1, "entries": [{"begun": {**ours, **begun}}]})
    assert (read_move(text) == MoveNote()) is bool(begun)
    assert read_move("n//2/2023-11-14T22:13:20Z") == read_move("") == MoveNote()


def a_successor(**fields: Any) -> Pod:
    return replace(a_moved_pod(), **{"name": "ledger-2", "uid": "uid-new", "node_name": "", **fields})


def with_move(*pods: Pod, begun: Begun | None = BEGUN, leaves: float | None = NOW, **fields: Any) -> Snapshot:
    claim = a_joined_claim(name="next", annotations={names.PLANNED_PODS: "other,uid-ledger-1"})
    world = a_world(a_roll_out(**{"begun": begun, "settled": False, **fields}))
    nodes = {"node-1": a_joined_node(deleting_since=leaves)}
    return replace(world, nodes=nodes, claims={"next": claim}, pods={pod.uid: pod for pod in pods})


def test_the_room_that_was_promised_to_the_old_pod_is_promised_to_the_new_one() -> None:
    """TRM-43. While both stand, the old one needs no room any more."""
    found = passed_on(with_move(a_moved_pod(), a_successor()))

    assert found.claims["next"].annotations[names.PLANNED_PODS] == "other,uid-new"
    assert set(found.pods) == {"uid-new"}


@pytest.mark.parametrize(
    "world",
    [
        with_move(a_moved_pod(), a_successor(), begun=None),
        with_move(a_moved_pod()),  # the new pod has not come yet
        with_move(a_moved_pod(), a_successor(owners=())),  # another's pod
        with_move(a_moved_pod(), a_successor(deleting_since=NOW)),
        with_move(a_moved_pod(), a_successor(), begun=replace(BEGUN, node="gone")),
        # The owner's own note: its pod would be hidden, and others' pods get no node.
        with_move(a_moved_pod(), a_successor(), leaves=None),
        with_move(a_moved_pod(), a_successor(), replicas=2),
        with_move(a_moved_pod(), a_successor(), settled=True),
    ],
)
def test_else_the_old_pod_keeps_it(world: Snapshot) -> None:
    """TRM-43."""
    assert passed_on(world) is world


def raw(spec: Json | None = None, status: Json | None = None, **meta: Any) -> Json:
    whole = {"replicas": 1, "progressDeadlineSeconds": 600, "template": {"metadata": {}, "spec": {}}, **(spec or {})}
    done = {"observedGeneration": 4, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    base = {"name": "ledger", "namespace": "apps", "uid": "u", "resourceVersion": "7", "generation": 4}
    return {"metadata": {**base, **meta}, "spec": whole, "status": {**done, **(status or {})}}


def read(**fields: Any) -> RollOut:
    found = parse_deployment(raw(**fields), moves=True, followed=False).roll_out
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("strategy", "surges"),
    [
        ({}, True),
        ({"type": "RollingUpdate"}, True),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}, True),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, True),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}, False),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, False),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "1%", "maxUnavailable": "100%"}}, False),
        ({"type": "Recreate"}, False),
    ],
)
def test_a_strategy_is_read_as_the_controller_rounds_it(strategy: Json, surges: bool) -> None:
    """TRM-40."""
    assert read(spec={"strategy": strategy}).surges is surges


@pytest.mark.parametrize(
    ("status", "settled", "timed_out"),
    [
        ({}, True, False),
        ({"observedGeneration": 3}, False, False),
        ({"replicas": 2}, False, False),  # the old pod still stands
        ({"updatedReplicas": 0}, False, False),
        ({"availableReplicas": 0}, False, False),
        (
            {"availableReplicas": 0, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]},
            False,
            True,
        ),
        (
            {"observedGeneration": 3, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]},
            False,
            False,
        ),
    ],
)
def test_how_far_a_roll_out_is(status: Json, settled: bool, timed_out: bool) -> None:
    """TRM-40."""
    found = read(status=status)
    assert (found.settled, found.timed_out) == (settled, timed_out)


def test_what_a_deployment_says_is_read() -> None:
    annotations = {
        names.MOVE: "restart",
        names.MOVES: MoveChange(move=MoveNote(begun=BEGUN, failed=FAILED)).annotations[names.MOVES],
    }
    template = {"metadata": {"annotations": {names.MOVED: "b"}}, "spec": {"nodeName": "n"}}
    found = read(
        spec={"template": template, "progressDeadlineSeconds": 2**31 - 1, "paused": True}, annotations=annotations
    )

    assert (found.wish, found.begun, found.failed, found.moved) == ("restart", BEGUN, Failed(generation=6, at=NOW), "b")
    assert (found.names_node, found.progress_seconds, found.paused) == (True, None, True)
    assert parse_deployment(raw(), moves=False, followed=False).roll_out is None


RULE: Json = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}
IS_W, IS_NOT_W = 'request.userInfo.username == "w"', 'request.userInfo.username != "w"'


def a_policy(*conditions: str, rule: Json | None = None, **given: Any) -> Json:
    means = {"resourceRules": [{**RULE, **(rule or {})}], **given.pop("constraints", {})}
    named = [{"name": f"c{number}", "expression": each} for number, each in enumerate(conditions)]
    refusing = {"failurePolicy": "Fail", "validations": [{"expression": "false"}]}
    return {**refusing, "matchConstraints": means, "matchConditions": named, **given}


@pytest.mark.parametrize(
    ("kind", "spec", "refuses"),
    [
        (0, a_policy(), True),
        (0, a_policy(failurePolicy="Ignore"), False),
        (0, a_policy(validations=None), False),
        (0, a_policy(IS_W), True),
        (0, a_policy(IS_NOT_W), False),
        (0, a_policy(f"{IS_W} && false"), False),
        (0, a_policy(IS_W, IS_W), False),
        (0, a_policy(matchConstraints=None), False),
        (0, a_policy(constraints={"namespaceSelector": {}, "objectSelector": {}}), True),  # as the API server writes it
        (0, a_policy(constraints={"namespaceSelector": {"matchLabels": {"a": "b"}}}), False),
        (0, a_policy(constraints={"excludeResourceRules": [RULE]}), False),
        (0, a_policy(rule={"operations": ["CREATE"]}), False),
        (0, a_policy(rule={"resourceNames": ["x"]}), False),
        (0, a_policy(rule={"resources": ["*"]}), True),
        (1, {"policyName": GUARD, "validationActions": ["Deny"]}, True),
        (1, {"policyName": GUARD, "validationActions": ["Warn", "Audit"]}, False),
        (1, {"policyName": "another", "validationActions": ["Deny"]}, False),
        (
            1,
            {"policyName": GUARD, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"a": 1}}},
            False,
        ),
    ],
)
def test_a_policy_that_lets_something_pass_is_no_guard(kind: int, spec: Json, refuses: bool) -> None:
    """TRM-44."""
    assert parse_guard(GUARD_KINDS[kind], {"metadata": {"name": GUARD}, "spec": spec}).refuses is refuses
    assert not parse_guard(GUARD_KINDS[kind], {"metadata": {"name": "another"}, "spec": spec}).refuses

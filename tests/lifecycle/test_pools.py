"""NPL-10 to NPL-33: what a NodePool uses, whether it may be used, whether its nodes come up; LIF-70, LIF-76."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.lifecycle.node_checks import MissingLabel, missing_class_labels, shape_issues
from dovetail.lifecycle.pool_health import HEALTHY, RESULTS, Health, judge_health, read_record, record_text
from dovetail.lifecycle.pool_readiness import class_readiness, conditions_of_pool, pool_faults, readiness
from dovetail.lifecycle.pool_usage import pool_usage, same_usage
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pods import Expression, Owner
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.taints import Taint
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_snapshot, is_now
from worlds.disruption import EC2_CLASS, a_claim

NOW = 2000.0
ZEROS = {"cpu": 0, "memory": 0, "pods": 0, "ephemeral-storage": 0, "nodes": 0}
LAUNCHED = {"cpu": 4 * 10**9, "memory": 16 * 2**30, "pods": 58}
OWNED = (Owner(api_version="karpenter.sh/v1", kind="NodePool", name="pool", uid="uid-pool"),)


def test_a_pool_without_nodes_uses_nothing() -> None:
    """NPL-11, BEH-92."""
    assert pool_usage(a_snapshot(a_new_pool())) == {"pool": ZEROS}


def test_a_claim_counts_with_what_was_launched_until_its_node_is_initialised() -> None:
    """NPL-11, STA-7, BEH-92: the node's own entries where it has any."""
    claim = a_claim(provider_id="aws:///zone/i-1", capacity=LAUNCHED)
    node = a_joined_node(capacity={"cpu": 3 * 10**9, "memory": 0, "gpu": 1})

    alone = pool_usage(a_snapshot(a_new_pool(), claim))["pool"]
    joining = pool_usage(a_snapshot(a_new_pool(), claim, node))["pool"]
    joined = pool_usage(a_snapshot(a_new_pool(), a_joined_claim(capacity=LAUNCHED), node))["pool"]

    assert alone == {**ZEROS, **LAUNCHED, "nodes": 1}
    assert joining == {**ZEROS, **LAUNCHED, "cpu": 3 * 10**9, "gpu": 1, "nodes": 1}
    assert joined == {**ZEROS, "cpu": 3 * 10**9, "gpu": 1, "nodes": 1}


@pytest.mark.parametrize(
    "claim",
    [
        a_claim(capacity=LAUNCHED, deleting_since=NOW),
        a_claim(capacity=LAUNCHED, conditions=(is_now(names.INSTANCE_TERMINATING),)),
        a_claim(capacity=LAUNCHED, annotations={names.OWNER: "c/disrupt/1"}),
        a_claim(capacity=LAUNCHED, labels={names.NODE_POOL: "other"}),
        a_claim(capacity=LAUNCHED, labels={}),
    ],
)
def test_what_leaves_or_belongs_elsewhere_counts_nothing(claim: NodeClaim) -> None:
    """Claims that leave, are marked or are of another pool use nothing of this one (STA-9, STA-12, LIF-5)."""
    assert pool_usage(a_snapshot(a_new_pool(), claim)) == {"pool": ZEROS}


def test_a_node_without_a_claim_counts_for_the_pool_that_its_label_names() -> None:
    """NPL-11: nodes that were taken over, or whose claim is gone; not those that leave or belong elsewhere."""
    alone = a_joined_node(capacity={"cpu": 10**9, "gpu": 2})
    elsewhere = a_joined_node("x", provider_id="x", labels={names.NODE_POOL: "gone"})
    leaving = a_joined_node("y", provider_id="y", deleting_since=NOW)

    found = pool_usage(
        a_snapshot(a_new_pool(), alone, elsewhere, leaving, a_joined_node("z", provider_id="z", labels={}))
    )

    assert found == {"pool": {**ZEROS, "cpu": 10**9, "gpu": 2, "nodes": 1}}
    with_claim = pool_usage(a_snapshot(a_new_pool(), alone, a_joined_claim(capacity=LAUNCHED)))
    assert with_claim["pool"]["nodes"] == 1


def test_usage_is_the_same_only_if_every_resource_is() -> None:
    """NPL-11: zeros are written where nothing has been written yet."""
    assert same_usage({"cpu": 1, "nodes": 1}, {"nodes": 1, "cpu": 1})
    assert not same_usage({"cpu": 1}, {"cpu": 2})
    assert not same_usage({"cpu": 1}, {"cpu": 1, "gpu": 0})
    assert not same_usage(None, {})


@pytest.mark.parametrize(
    ("found", "deleting", "ready", "reason"),
    [
        (False, False, "Unknown", "NodeClassNotFound"),
        (True, True, "True", "NodeClassTerminating"),
        (True, False, "Unknown", "NodeClassReadinessUnknown"),
        (True, False, "False", "SubnetsNotFound"),
    ],
)
def test_a_class_that_is_not_ready_closes_its_pool(found: bool, deleting: bool, ready: str, reason: str) -> None:
    """NPL-15, NPL-21, BEH-93."""
    own = Condition(type="Ready", status=ready, reason="SubnetsNotFound", message="no subnets")
    fault = class_readiness(found, deleting, own)

    conditions = conditions_of_pool(a_new_pool(), NOW)
    for condition in readiness(a_new_pool(), fault, NOW):
        conditions = conditions.set(condition)

    assert fault is not None
    assert fault[0] == reason
    root = conditions.find("Ready")
    assert root is not None
    assert (root.status, root.message) == ("False", "NodeClassReady=False")


def test_a_pool_that_makes_sense_with_a_class_that_is_ready_is_ready() -> None:
    """NPL-21."""
    conditions = conditions_of_pool(a_new_pool(), NOW)
    for condition in readiness(a_new_pool(), None, NOW):
        conditions = conditions.set(condition)

    root = conditions.find("Ready")
    assert root is not None
    assert root.status == "True"


def test_a_pool_that_makes_no_sense_is_not_ready_although_its_class_is() -> None:
    """NPL-20, NPL-21."""
    pool = a_new_pool(template={"labels": {names.NODE_POOL: "x"}})
    conditions = conditions_of_pool(pool, NOW)
    for condition in readiness(pool, None, NOW):
        conditions = conditions.set(condition)

    found = {each.type: (each.status, each.reason, each.message) for each in conditions.conditions}
    assert found["ValidationSucceeded"] == (
        "False",
        "NodePoolValidationFailed",
        f"label {names.NODE_POOL} is restricted",
    )
    assert found["Ready"][::2] == ("False", "ValidationSucceeded=False")


GOOD: list[dict[str, Any]] = [
    {"labels": {"team": "a", "node-role.kubernetes.io/web": ""}},
    {"taints": (Taint(key="a/b", value="c", effect="NoSchedule"),)},
    {"requirements": (Expression(key=names.CAPACITY_TYPE, operator="In", values=("spot", "unheard-of")),)},
    {"requirements": (Expression(key="beta.kubernetes.io/arch", operator="Exists"),)},
    {"requirements": (Expression(key="karpenter.k8s.aws/instance-cpu", operator="Gt", values=("4",)),)},
]
BAD: list[dict[str, Any]] = [
    {"labels": {names.NODE_POOL: "x"}},
    {"labels": {"karpenter.sh/anything": "x"}},
    {"labels": {"sub.karpenter.sh/anything": "x"}},
    {"labels": {names.HOSTNAME: "x"}},
    {"labels": {"a b": "x"}},
    {"labels": {"team": "-x"}},
    {"labels": {"team": "x" * 64}},
    {"taints": (Taint(key="", effect="NoSchedule"),)},
    {"taints": (Taint(key="a", value="b c", effect="NoSchedule"),)},
    {"taints": (Taint(key="a", effect="Never"),)},
    {"taints": (Taint(key="a", effect="NoSchedule"),), "startup_taints": (Taint(key="a", effect="NoSchedule"),)},
    {"requirements": (Expression(key="team", operator="Near", values=("a",)),)},
    {"requirements": (Expression(key="team", operator="In"),)},
    {"requirements": (Expression(key="team", operator="In", values=("a b",)),)},
    {"requirements": (Expression(key="team", operator="In", values=("a",), min_values=2),)},
    {"requirements": (Expression(key="size", operator="Gt", values=("-1",)),)},
    {"requirements": (Expression(key="size", operator="Lt", values=("1", "2")),)},
    {"requirements": (Expression(key=names.NODE_POOL, operator="Exists"),)},
    {"requirements": (Expression(key=names.CAPACITY_TYPE, operator="In", values=("unheard-of",)),)},
]


@pytest.mark.parametrize("effect", ["", "NoSchedule", "PreferNoSchedule", "NoExecute"])
def test_each_effect_of_a_taint_is_known(effect: str) -> None:
    """API-19; the same key may stand under two effects, and not twice under one."""
    taint, other = Taint(key="a", effect=effect), Taint(key="b", effect=effect)

    assert pool_faults(a_new_pool(template={"taints": (taint, other)})) == ()
    assert pool_faults(a_new_pool(template={"taints": (taint, replace(taint, effect="NoSchedule"))})) == (
        ("taint a:NoSchedule is given twice",) if effect == "NoSchedule" else ()
    )


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"])
def test_each_operator_is_known_and_bounds_are_one_whole_number(operator: str) -> None:
    """API-19."""

    def faults(*values: str) -> tuple[str, ...]:
        wanted = Expression(key="team", operator=operator, values=values)
        return pool_faults(a_new_pool(template={"requirements": (wanted,)}))

    assert faults("4") == ()
    if operator in ("Gt", "Lt", "Gte", "Lte"):
        expected = (f"requirement team: {operator} needs one whole number that is not negative",)
        assert [faults(*values) for values in ((), ("4", "5"), ("1.5",))] == [expected] * 3


@pytest.mark.parametrize("known", ["spot", "on-demand", "reserved"])
def test_one_known_capacity_type_is_enough_unless_more_are_asked_for(known: str) -> None:
    """NPL-22: unknown ones do not count towards minValues; another operator than In needs none."""

    def faults(operator: str, *values: str, least: int | None = None) -> tuple[str, ...]:
        wanted = Expression(key=names.CAPACITY_TYPE, operator=operator, values=values, min_values=least)
        return pool_faults(a_new_pool(template={"requirements": (wanted,)}))

    assert faults("In", known, "unheard-of", "unheard-of-too") == ()
    assert faults("In", known, "unheard-of", least=2)
    assert faults("NotIn", "unheard-of") == ()
    assert faults("In", "unheard-of")


@pytest.mark.parametrize("template", GOOD)
def test_a_template_that_makes_sense_passes(template: dict[str, Any]) -> None:
    """API-19, NPL-22, BEH-95."""
    assert pool_faults(a_new_pool(template=template)) == ()


@pytest.mark.parametrize("template", BAD)
def test_a_template_that_does_not_make_sense_is_reported(template: dict[str, Any]) -> None:
    """API-18, API-19, BEH-95."""
    assert pool_faults(a_new_pool(template=template))


def carried(pool: NodePool, health: Health) -> NodePool:
    """The pool as it stands once the verdict has been written."""
    condition = replace(health.condition, generation=pool.generation)
    others = tuple(one for one in pool.conditions if one.type != HEALTHY)
    return replace(pool, conditions=(*others, condition), annotations={RESULTS: record_text(health.record)})


def judged(pool: NodePool, *claims: NodeClaim, class_generation: int = 1, now: float = NOW) -> NodePool:
    return carried(pool, judge_health(pool, claims, class_generation, now))


def status(pool: NodePool) -> tuple[str, str]:
    (condition,) = (one for one in pool.conditions if one.type == HEALTHY)
    return condition.status, condition.reason


def came_up(name: str, at: float = NOW + 10) -> NodeClaim:
    return a_claim(name, owners=OWNED, conditions=(is_now(names.REGISTERED_CONDITION, changed=at),))


def gave_up(name: str, at: float = NOW + 10) -> NodeClaim:
    conditions = (
        is_now(names.LAUNCHED, changed=at - 900),
        is_now(names.REGISTERED_CONDITION, "Unknown", changed=at - 900),
    )
    return a_claim(name, owners=OWNED, created=at - 900, deleting_since=at, conditions=conditions)


def test_a_new_pool_is_unknown_until_a_node_comes_up() -> None:
    """NPL-32, NPL-33, BEH-53."""
    fresh = judged(a_new_pool())
    assert status(fresh)[0] == "Unknown"

    assert status(judged(fresh, came_up("a")))[0] == "True"


def test_two_failures_of_four_make_a_pool_unhealthy_and_one_does_not() -> None:
    """NPL-30, NPL-33, BEH-66."""
    fresh = judged(a_new_pool())

    once = judged(fresh, gave_up("a"))
    twice = judged(once, gave_up("a"), gave_up("b", NOW + 11))

    assert status(once)[0] == "Unknown"
    assert status(twice) == ("False", "RegistrationFailed")


def test_a_claim_counts_once_however_often_it_is_seen() -> None:
    """DUR-7."""
    pool = judged(a_new_pool())
    for _ in range(3):
        pool = judged(pool, gave_up("a"))

    record = read_record(pool)
    assert record is not None
    assert record.results == (("uid-a", False),)


def test_one_success_after_two_failures_changes_nothing_and_three_do() -> None:
    """NPL-33, BEH-58: two failures stay among the last four until enough successes push them out."""
    pool = judged(judged(a_new_pool()), gave_up("a"), gave_up("b"))
    one = judged(pool, came_up("c", NOW + 20))
    three = judged(one, came_up("d", NOW + 21), came_up("e", NOW + 22))

    assert [status(pool)[0], status(one)[0], status(three)[0]] == ["False", "False", "True"]


@pytest.mark.parametrize(("generation", "class_generation"), [(2, 1), (1, 2)])
def test_a_change_of_the_pool_or_its_class_begins_anew(generation: int, class_generation: int) -> None:
    """NPL-32, BEH-94: nodes that came up before say nothing about the new template."""
    pool = judged(judged(a_new_pool()), came_up("a"))
    changed = replace(pool, generation=generation)

    again = judged(changed, came_up("a"), class_generation=class_generation, now=NOW + 100)

    assert status(again)[0] == "Unknown"
    assert status(judged(again, came_up("a"), class_generation=class_generation))[0] == "Unknown"


@pytest.mark.parametrize(("standing", "results"), [("True", (("", True),)), ("False", (("", False), ("", False)))])
def test_a_pool_taken_over_from_karpenter_keeps_its_verdict(
    standing: str, results: tuple[tuple[str, bool], ...]
) -> None:
    """NPL-31, BEH-94."""
    pool = a_new_pool(conditions=(is_now(HEALTHY, standing),))

    health = judge_health(pool, (), 1, NOW)

    assert (health.condition.status, health.record.results) == (standing, results)


@pytest.mark.parametrize(
    "claim",
    [
        replace(came_up("a"), owners=()),
        replace(came_up("a"), owners=(replace(OWNED[0], uid="older pool of that name"),)),
        replace(came_up("a"), labels={names.NODE_POOL: "other"}),
        a_claim("a", owners=OWNED, created=NOW, deleting_since=NOW + 10),  # no capacity
        a_claim("a", owners=OWNED, created=NOW, deleting_since=NOW + 10, conditions=(is_now(names.LAUNCHED),)),
    ],
)
def test_other_claims_and_other_ends_say_nothing(claim: NodeClaim) -> None:
    """Claims of others, and ends for want of capacity, do not bear on the pool's health (NPL-33, LIF-12, BEH-66)."""
    if claim.condition(names.LAUNCHED) is not None:
        claim = replace(claim, conditions=(is_now(names.LAUNCHED, changed=NOW),))
    assert status(judged(judged(a_new_pool()), claim))[0] == "Unknown"


def test_a_launch_that_timed_out_gives_the_reason_of_the_launch() -> None:
    """NPL-33."""
    launched = is_now(names.LAUNCHED, "Unknown", reason="BadImage", message="no image", changed=NOW)
    late = [a_claim(name, owners=OWNED, created=NOW, deleting_since=NOW + 300, conditions=(launched,)) for name in "ab"]

    assert status(judged(judged(a_new_pool()), *late)) == ("False", "BadImage")


def test_a_missing_class_label_is_named_for_claims_and_their_nodes() -> None:
    """LIF-70, BEH-84."""
    claim = a_joined_claim(labels={names.NODE_POOL: "pool"})
    foreign = a_claim("x", labels={}, node_class=replace(EC2_CLASS, group="other.cloud"))

    found = missing_class_labels(a_snapshot(claim, a_joined_node(), foreign))

    key = "karpenter.k8s.aws/ec2nodeclass"
    assert found == (
        MissingLabel(kind="Node", name="node-1", key=key, value="default"),
        MissingLabel(kind="NodeClaim", name="pool-1", key=key, value="default"),
    )


def test_a_node_that_is_smaller_than_what_was_launched_is_reported() -> None:
    """LIF-76, BEH-85."""
    claim = a_joined_claim(requests={"memory": 1, "cpu": 1, "gpu": 0}, capacity={"memory": 1000, "cpu": 10**9})
    node = a_joined_node(capacity={"memory": 500, "cpu": 9 * 10**8})

    assert shape_issues(claim, node) == ("expected 1000 of resource memory, but found 500 (50.0% of expected)",)
    assert shape_issues(a_claim(requests={"memory": 1}, capacity={"memory": 1000}), node) == ()

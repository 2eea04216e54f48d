"""The condition NodesUpToDate: whether a change of a NodePool has reached its nodes."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.disruption.upkeep.roll_out import nodes_up_to_date
from dovetail.lifecycle.conditions import ConditionSet
from dovetail.lifecycle.pool_readiness import conditions_of_pool
from dovetail.model import names
from dovetail.model.names import CLASS_READY
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.pools import NodePool
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from worlds.disruption import NOW, a_pair, a_pool, condition


def stamped(pool_hash: str, version: str = NODE_POOL_HASH_ALGORITHM) -> dict[str, str]:
    return {names.NODE_POOL_HASH: pool_hash, names.NODE_POOL_HASH_VERSION: version}


def a_stamped_claim(name: str, pool_hash: str, **changes: Any) -> NodeClaim:
    return replace(a_pair(name).claim, annotations=stamped(pool_hash), **changes)


POOL = a_pool(hash="new", annotations=stamped("old"), generation=7)  # applied just now: upkeep has not written its hash


def judged(pool: NodePool = POOL) -> ConditionSet:
    return conditions_of_pool(pool, NOW)


def said(*claims: NodeClaim, pool: NodePool = POOL) -> tuple[str, str, str]:
    found = nodes_up_to_date(pool, claims, judged(pool), NOW)
    return found.status, found.reason, found.message


def test_a_change_is_seen_before_anything_has_drifted() -> None:
    """Neither the pool's hash nor a claim's condition is written yet: a gate that asks now must not be let through."""
    assert said(a_stamped_claim("n1", "new"), a_stamped_claim("n2", "old"), a_stamped_claim("n3", "old")) == (
        "False",
        "RolloutInProgress",
        "1/3 nodes are up to date",
    )


def test_all_of_the_current_template_is_up_to_date_and_so_is_a_pool_without_nodes() -> None:
    """Without a count, so that a pool that grows is not written for it."""
    done = ("True", "NodesUpToDate", "")
    assert (
        said(),
        said(a_stamped_claim("n1", "new")),
        said(a_stamped_claim("n1", "new"), a_stamped_claim("n2", "new")),
    ) == (done, done, done)


def test_a_node_that_is_leaving_counts_until_it_is_gone() -> None:
    assert said(a_stamped_claim("n1", "new"), a_stamped_claim("n2", "old", deleting_since=NOW))[0] == "False"


def test_claims_of_other_pools_and_other_drift_do_not_count() -> None:
    """A new image of the class is no change of the pool."""
    image = a_stamped_claim("n1", "new", conditions=(condition(names.DRIFTED, reason="AMIDrift"),))
    other = replace(a_pair("n2", pool="b").claim, annotations=stamped("old"))
    assert said(image, other)[0] == "True"


def test_narrowed_requirements_count_for_nodes_that_are_launched() -> None:
    """They are not in the hash; a claim that is being launched has not got its labels."""
    zone = Expression(key=names.ZONE, operator="In", values=("z9",))
    pool = replace(POOL, template=replace(POOL.template, requirements=(zone,)))
    assert said(a_stamped_claim("n1", "new"), pool=pool)[2] == "0/1 nodes are up to date"
    assert said(a_stamped_claim("n1", "new", conditions=(), labels={names.NODE_POOL: "a"}), pool=pool)[0] == "True"


@pytest.mark.parametrize(("conditions", "status"), [((), "True"), ((condition(names.DRIFTED),), "True")])
def test_a_hash_of_an_older_version_says_nothing(conditions: tuple[Condition, ...], status: str) -> None:
    """Such claims are given the new hash, unless they had drifted from the template before."""
    old = replace(a_stamped_claim("n1", ""), annotations=stamped("1", "v2"), conditions=conditions)
    drifted = replace(old, conditions=(condition(names.DRIFTED, reason="NodePoolDrifted"),))
    assert (said(old)[0], said(drifted)[0]) == (status, "False")


@pytest.mark.parametrize(
    ("kind", "cause"), [(CLASS_READY, "NodeClass is not ready"), ("ValidationSucceeded", "NodePool is not ready")]
)
def test_a_pool_that_makes_no_nodes_says_that_it_is_blocked(kind: str, cause: str) -> None:
    """And what is at fault; where every node is up to date already, nothing is blocked."""
    fault = Condition(type=kind, status="False", reason="Why", changed=NOW)
    sides = judged(replace(POOL, conditions=())).set(fault)
    found = nodes_up_to_date(POOL, [a_stamped_claim("n1", "old")], sides, NOW)
    assert (found.status, found.reason, found.message) == (
        "False",
        "RolloutBlocked",
        f"0/1 nodes are up to date; {cause}",
    )
    assert nodes_up_to_date(POOL, [a_stamped_claim("n1", "new")], sides, NOW).status == "True"


def test_it_does_not_make_the_pool_unready_and_says_which_generation_it_is_of() -> None:
    pool = replace(POOL, conditions=())
    sides = judged(pool)
    for kind in (CLASS_READY, "ValidationSucceeded"):
        sides = sides.set(condition(kind, changed=NOW))
    after = sides.set(nodes_up_to_date(pool, [a_stamped_claim("n1", "old")], sides, NOW))
    ready, own = after.find(names.READY), after.find("NodesUpToDate")
    assert ready is not None and own is not None
    assert (ready.status, own.status, own.generation) == ("True", "False", 7)


def test_a_refused_target_is_said_whatever_differs() -> None:
    """A new image of the class is no change of the pool, but its nodes are kept from it."""
    image = a_stamped_claim("n1", "new", conditions=(condition(names.DRIFTED, reason="AMIDrift"),))
    found = nodes_up_to_date(
        POOL, [image, a_stamped_claim("n2", "new")], judged(POOL), NOW, "NodeRollout r refuses the target"
    )

    assert (found.status, found.reason) == ("False", "RolloutBlocked")
    assert found.message == "1/2 nodes are up to date; NodeRollout r refuses the target"

"""Consolidatable, Drifted, expiry, stamps and the migration of hashes (DIS-163 to DIS-185, NPL-5)."""

from dataclasses import replace

import pytest

from dovetail.disruption.upkeep.conditions import (
    DriftFacts,
    judge_consolidatable,
    judge_drifted,
    resulting_condition,
)
from dovetail.disruption.upkeep.hash_migration import hash_stamps
from dovetail.disruption.upkeep.timers import stamp_from_list
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from worlds.disruption import HOUR, NOW, TYPES, a_pair, a_pod, a_pool, condition

FACTS = DriftFacts(catalogue=Catalogue(types=TYPES))


def stamped(pool_hash: str, version: str = NODE_POOL_HASH_ALGORITHM) -> dict[str, str]:
    return {names.NODE_POOL_HASH: pool_hash, names.NODE_POOL_HASH_VERSION: version}


def drift_of(claim: NodeClaim, pool: NodePool) -> str:
    return judge_drifted(claim, pool, FACTS, NOW).reason


@pytest.mark.parametrize(
    ("claim", "pool", "reason"),
    [
        (stamped("1"), stamped("1"), ""),
        (stamped("1"), stamped("2"), "NodePoolDrifted"),
        (stamped("1", "v2"), stamped("2"), ""),
        ({}, stamped("2"), ""),
    ],
)
def test_a_claim_drifts_when_hashes_of_one_version_differ(
    claim: dict[str, str], pool: dict[str, str], reason: str
) -> None:
    """DIS-171."""
    assert drift_of(a_pair("n1", claim={"annotations": claim}).claim, a_pool(annotations=pool)) == reason


def test_a_list_narrowed_past_the_value_drifts_and_a_widened_one_does_not() -> None:
    """DIS-173."""
    claim = a_pair("n1").claim
    reasons = [
        drift_of(claim, a_pool(requirements=(Expression(key=names.ZONE, operator="In", values=values),)))
        for values in (("z2",), ("z1", "z2", "z9"))
    ]
    assert reasons == ["RequirementsDrifted", ""]


def test_a_claim_that_is_not_launched_is_not_drifted() -> None:
    """DIS-170."""
    claim = replace(a_pair("n1").claim, conditions=(), annotations=stamped("1"))
    assert judge_drifted(claim, a_pool(annotations=stamped("2")), FACTS, NOW).verdict == "clear"


def test_a_changed_reason_keeps_the_place_in_the_order() -> None:
    """DIS-170."""
    claim = a_pair("n1", also=[condition(names.DRIFTED, changed=NOW - 99, reason="Other")]).claim
    judgement = judge_drifted(claim, a_pool(), replace(FACTS, provider_reason="AMIDrift"), NOW)
    result = resulting_condition(judgement, claim, names.DRIFTED, NOW)
    assert result is not None and (result.reason, result.message, result.changed) == ("AMIDrift", "AMIDrift", NOW - 99)


def test_quiet_counts_from_initialisation_where_no_pod_was_ever_seen() -> None:
    """DIS-167."""
    claim = a_pair("n1").claim
    pools = [a_pool(consolidate_after=after) for after in (HOUR, HOUR + 1, None)]
    assert [judge_consolidatable(claim, pool, NOW).verdict for pool in pools] == ["set", "clear", "clear"]


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])
def test_consolidatable_says_nothing_of_the_policy(policy: str) -> None:
    """DIS-168: nor of pods, which the question does not even have."""
    claim = a_pair("n1").claim

    assert judge_consolidatable(claim, a_pool(policy=policy, consolidate_after=60.0), NOW).verdict == "set"


def test_where_types_cannot_be_listed_drift_stays_as_it_is_and_the_cloud_has_no_say() -> None:
    """DIS-175."""
    facts = DriftFacts(catalogue=Catalogue(error="cannot be listed"), provider_reason="AMIDrift")

    judged = judge_drifted(a_pair("n1").claim, a_pool(), facts, NOW)

    assert (judged.verdict, judged.reason, judged.error) == ("leave", "", "cannot be listed")


def test_a_claim_expires_at_the_boundary() -> None:
    """At the very moment at which its lifetime has passed, not before (DIS-181)."""
    claim = replace(a_pair("n1").claim, expire_after=24 * HOUR)
    assert (claim.is_expired(NOW - 0.001), claim.is_expired(NOW)) == (False, True)


def test_a_restart_stamps_only_what_had_no_stamp() -> None:
    """DIQ-12: upstream restarts every timer; ours dates a list of pods by the pods' own times."""
    pods = [a_pod("n1", started=NOW - 500.0), a_pod("n1", started=NOW - 5.0, owner="DaemonSet")]
    seen = a_pair("n1", claim={"last_pod_event": NOW - 499.0}).claim
    missed = a_pair("n1", claim={"last_pod_event": NOW - 600.0}).claim
    assert (stamp_from_list(seen, pods), stamp_from_list(missed, pods)) == (None, NOW - 500.0)


def test_a_change_of_the_algorithm_drifts_nothing_that_had_not_drifted() -> None:
    """NPL-5, DIS-178."""
    old = a_pair("n1", claim={"annotations": stamped("1", "v2")}).claim
    drifted = replace(old, name="d", conditions=(*old.conditions, condition(names.DRIFTED)))
    current = replace(old, name="c", annotations=stamped("1"))
    stamps = hash_stamps(a_pool(hash="9", annotations=stamped("1", "v2")), [old, drifted, current])
    assert dict(stamps.claims) == {
        "claim-n1": ((names.NODE_POOL_HASH, "9"), (names.NODE_POOL_HASH_VERSION, NODE_POOL_HASH_ALGORITHM)),
        "d": ((names.NODE_POOL_HASH_VERSION, NODE_POOL_HASH_ALGORITHM),),
    }
    assert dict(stamps.pool) == stamped("9")

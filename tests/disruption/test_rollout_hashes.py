"""A release may hash NodePools and NodeClasses in a new way, as Karpenter did twice. Nothing has changed then: a
roll-out stays where it is, what was refused stays refused, and what a person was asked is asked still."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.model import names, pools
from dovetail.model.own.claim_memory import Pin, with_memory
from dovetail.model.own.rollout_approvals import Answered
from dovetail.model.own.rollouts import REFUSED, PoolNodes, Rollout, RolloutFailure, RolloutState, is_of_target
from dovetail.rules.rollout.moves import next_move
from tests.disruption.test_rollout_approvals import ASKED, NODES, a_rollout, approved
from tests.disruption.test_rollouts import KNOWN, a_status
from worlds.disruption import HOUR, NOW, a_pair, a_pool
from worlds.kept_rollouts import kept

POOL: Final = replace(a_pool(), hash="3333")
ANEW: Final = replace(POOL, hash="4444")
BEFORE: Final = replace(NODES, makes="3a3a")
AFTER: Final = replace(NODES, makes="v7:7a7a")


@pytest.fixture
def upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "NODE_POOL_HASH_ALGORITHM", "v4")


def standing(state: RolloutState, **status: object) -> Rollout:
    """As a worker of before leaves it."""
    failure = RolloutFailure(generation=4, message="pods are not ready") if state in REFUSED else None
    found = replace(a_status("canary", state), target=POOL.hash, makes=BEFORE.makes, stable=KNOWN, failure=failure)
    return kept(a_rollout(replace(found, **status)))  # type: ignore[arg-type]


def looked(rollout: Rollout, nodes: PoolNodes = AFTER, pool: pools.NodePool = ANEW) -> Rollout:
    return kept(replace(rollout, status=next_move(rollout, pool, nodes, NOW)))


@pytest.mark.usefixtures("upgraded")
@pytest.mark.parametrize("state", [RolloutState.SOAKING, RolloutState.FAILED, RolloutState.ROLLING_BACK])
def test_a_new_version_of_the_hashes_moves_no_roll_out_and_the_next_change_does(state: RolloutState) -> None:
    until = NOW + HOUR if state == RolloutState.SOAKING else None
    nodes = replace(AFTER, refusable=int(state == RolloutState.ROLLING_BACK))
    before = standing(state, until=until)
    after = looked(before, nodes)

    assert after.status.state == state
    assert (after.status.begun, after.status.since) == (before.status.begun, before.status.since)
    assert (after.status.target, after.status.makes) == ("v4:4444", "v7:7a7a")
    for pool, now in ((ANEW, replace(nodes, makes="v7:7a7b")), (replace(ANEW, hash="4445"), nodes)):
        changed = looked(after, now, pool).status
        assert (changed.step, changed.state, changed.begun) == ("canary", RolloutState.REPLACING, NOW)


@pytest.mark.usefixtures("upgraded")
def test_an_approval_of_what_a_worker_with_other_hashes_has_asked_is_accepted() -> None:
    asked = standing(RolloutState.AWAITING, awaits=ASKED)
    asked = kept(replace(asked, status=next_move(asked, ANEW, BEFORE, NOW)))
    found = looked(approved(asked))

    assert (found.status.step, found.status.state) == ("quarter", RolloutState.REPLACING)
    assert found.approval is not None and found.status.answered == Answered(approval=found.approval)


@pytest.mark.parametrize(("aim", "counts"), [("v7:7a7a", True), ("3a3b", False), ("", True)])
def test_a_replacement_counts_for_the_target_that_it_was_made_for_whatever_version_hashes_it(
    aim: str, counts: bool
) -> None:
    claim = a_pair(
        "n", claim={"annotations": {names.NODE_POOL_HASH: "4444", **with_memory({}, roll_out=Pin(target="3a3a"))}}
    ).claim
    pool = replace(ANEW, annotations={names.NODE_POOL_HASH: "4444"})

    assert is_of_target(claim, pool, [standing(RolloutState.REPLACING, makes=aim)]) is counts

"""Ten clusters as Karpenter left them in mid-flight, taken over on a real control plane with the AWS server.

All of them are taken over on the simulated world by `make adopt`; here stand those that differ most. Judged by what the
recording's README promises, on objects, instances and the audit log.
"""

import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

from acceptance.adopt.bystanders import LIFT_SECONDS
from acceptance.adopt.states import State, read_states
from acceptance.adopt.takeover import still_seconds
from acceptance.adopt.verdict import SURPLUS_SECONDS
from testbed.up import NODE_CLASS
from tests.cluster.system.adopting import (
    claims_of,
    is_marked,
    lift_budgets,
    others_move,
    put_up,
    set_class,
    still_moving,
)
from tests.recorded import MID_FLIGHT
from worlds.cluster.ground import Ground

PATIENCE_SECONDS: Final = 240.0
QUICK: Final = ("drain-12",)
CHOSEN: Final = (
    *QUICK,
    "launch-01",
    "launch-09",
    "delete-claim-16",
    "delete-claim-06",
    "delete-claim-25",
    "drain-20",
    "drift-16",
    "consolidate-07",
    "consolidate-18",
)

pytestmark = pytest.mark.cluster


@pytest.fixture
async def usual_class(ground: Ground) -> AsyncIterator[None]:
    """Other tests find the class as it was."""
    yield
    await set_class(ground, NODE_CLASS)


def the_state(name: str) -> State:
    return next(state for state in read_states(MID_FLIGHT) if state.id == name)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.soak) for name in CHOSEN]
)
@pytest.mark.usefixtures("usual_class")
async def test_a_cluster_in_mid_flight_is_taken_over(ground: Ground, name: str) -> None:
    await ground.until(ground.class_is_ready, 60, "the class is ready")
    ground.kill_workers()
    since = ground.audit.end()
    state = await put_up(ground, the_state(name))
    before = {each["id"] for each in await ground.instances()}
    ground.ensure_workers()
    started = moved = time.time()
    surplus_gone = 0.0

    while time.time() - moved < still_seconds(state):
        await others_move(ground)
        if time.time() - started > LIFT_SECONDS:
            await lift_budgets(ground)
        rest = await still_moving(ground)
        now = time.time()
        moved = now if rest else moved
        if not surplus_gone and not any("has no NodeClaim" in each and each.startswith("instance") for each in rest):
            surplus_gone = now
        assert now - started < PATIENCE_SECONDS, "; ".join(rest)

    there = {claim["metadata"]["name"]: claim for claim in await ground.claims()}
    for claim_name, claim in claims_of(state).items():
        if "deletionTimestamp" in claim["metadata"]:
            assert claim_name not in there, f"{claim_name} was deleting"
        elif not is_marked(claim) and not state.scenario.startswith(("three nodes", "one large")):
            assert claim_name in there, f"{claim_name} was healthy"
    claimed = [claim["status"]["providerID"] for claim in there.values()]
    assert len(set(claimed)) == len(claimed)
    assert surplus_gone - started < SURPLUS_SECONDS
    launched = {each["id"] for each in await ground.instances()} - before
    lost = set(claims_of(state)) - set(there)
    unlaunched = [c for c in claims_of(state).values() if not (c.get("status") or {}).get("providerID")]
    assert len(launched) <= len(lost) + len(unlaunched), "more was launched than was lost or had never been launched"
    removed = [e for e in ground.worker_calls(since) if e.resource == "pods" and e.verb == "delete" and e.code < 300]
    assert removed == [], "pods go by eviction"

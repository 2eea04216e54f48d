"""What a roll-out leaves behind: an object that stays small whatever the cluster is called, and nothing on Karpenter's
objects that Karpenter reads."""

import json
from dataclasses import replace
from typing import Final

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.adapters.kubernetes_json.rendering.policies import render_new_rollout
from dovetail.api.own.node_rollout import NodeRollout
from dovetail.disruption.upkeep.conditions import is_hash_drifted
from dovetail.model import names
from dovetail.model.own.gates import AlertsRule, Answer, AskedGate, GateResult, GateVerdict
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import (
    Intent,
    NewRollout,
    NodesGate,
    Passage,
    Rollout,
    RolloutPlan,
    RolloutState,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.own.stable_images import MOST_IMAGES, MOST_TYPES, StableImage, StableImages
from dovetail.model.pods import Owner
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.rules.rollout.before import LONGEST
from dovetail.rules.rollout.gates import nodes_gate
from dovetail.rules.rollout.history import MOST
from dovetail.rules.rollout.moves import CONFIRMED, UNHEALED, next_move
from dovetail.rules.rollout.nodes import nodes_of
from worlds.disruption import NOW, a_pair, a_pod, a_pool, a_world
from worlds.kept_rollouts import whole
from worlds.made_claims import launched_by
from worlds.time_rules import with_rules

# Bytes as they are sent and kept, by the number of steps and images, and of gates that ask.
LARGEST: Final = {(5, 4): 16_000, (20, 4): 20_000, (20, 10): 23_500}
MOST_STEPS: Final = 20
POOL: Final = replace(a_pool(consolidate_after=None), hash="2")
STEPS: Final = tuple(
    RolloutStep(name=f"step-{n}-{'x' * 40}", to=f"{5 * (n + 1)}%", soak=604_800, approve=604_800 if n < 19 else None)
    for n in range(MOST_STEPS)
)
IMAGES: Final = tuple(
    StableImage(id=f"ami-{n:017x}", types=tuple(f"m{n}i-flex.metal-{t}xl" for t in range(MOST_TYPES)))
    for n in range(MOST_IMAGES)
)

GATES: Final = tuple(AskedGate(name=f"gate-{n}-{'g' * 40}", alerts=AlertsRule()) for n in range(10))
SILENT: Final = Answer(at=NOW, fault="w" * 5000)  # Prometheus is not to be reached, in many words


def failing_everywhere() -> Snapshot:
    """Twelve applications with the longest names that there may be do worse on a node at the target."""
    owners = [
        Owner(api_version="apps/v1", kind="ReplicaSet", name=f"{n:0253}", uid=f"o{n}", controller=True)
        for n in range(12)
    ]
    pods = [replace(a_pod("old", cpu="100m", namespace="n" * 63), owners=(owner,)) for owner in owners]
    pods += [
        replace(a_pod("new", cpu="100m", namespace="n" * 63), owners=(owner,), ready=False, failing=True)
        for owner in owners
    ]
    return a_world([a_pair("old", also=(names.DRIFTED,)), a_pair("new")], pods, [POOL])


def at_its_largest(number: int = MOST_STEPS, gates: int = 4) -> tuple[Rollout, Snapshot]:
    """In the last step, the gate failing for long enough that it goes back, after a refused approval."""
    world, steps, asking = failing_everywhere(), STEPS[-number:], GATES[:gates]
    status = RolloutStatus(
        step=STEPS[-2].name,
        state=RolloutState.AWAITING,
        begun=NOW - 7200,
        since=NOW - 60,
        target="2",
        makes="f" * 16,
        total=5000,
        owners="o" * LONGEST,
        gate=nodes_gate(world, POOL, NodesGate(since=NOW - UNHEALED, asked=NOW), NOW),
        stable=StableImages(since=NOW - 60, images=IMAGES[:number], why_not=""),
        asked=tuple(each.judged(GateVerdict(name=each.name), SILENT, NOW) for each in asking),
        history=tuple(
            Passage(step=STEPS[0].name, began=NOW, ended=NOW, result=result, message=words)
            for _ in range(MOST // 2)
            for result, words in (("Failed", "w" * 120), ("RolledBack", ""))
        ),
    )
    approval = Approval(step=STEPS[-2].name, digest="0-" * 31, by="system:serviceaccount:" + "u" * 1002, at=NOW)
    rollout = Rollout(
        name=f"{'p' * 242}-{'0' * 10}",
        uid="u" * 36,
        generation=10**9,
        created=NOW - 9e6,
        pool="a",
        steps=steps,
        rolls_back=True,
        launches_stable=True,
        gates=asking,
        status=status,
        policy="x" * 253,
        approval=approval,
    )
    return rollout, with_rules(world, rollout)


@pytest.mark.parametrize("goes_back", [False, True])
@pytest.mark.parametrize(("steps", "gates"), LARGEST)
def test_the_object_stays_small_and_the_api_server_takes_it(steps: int, gates: int, goes_back: bool) -> None:
    """Else its status could not be written just when a gate fails, and nothing would hold the step that it is in."""
    rollout, world = at_its_largest(steps, gates)
    status = rollout_status(replace(rollout, rolls_back=goes_back), world, NOW, "f" * 16)
    assert status.gate.result == GateResult.FAILING
    assert (status.failure is not None) == goes_back and status.answered is not None

    found = whole(replace(rollout, pool="p" * 253, intent=Intent.PROMOTE, status=status))

    NodeRollout.model_validate(found)
    assert all(len(each["message"]) <= 32_768 for each in found["status"]["conditions"])
    assert len(json.dumps(found, separators=(",", ":")).encode()) < LARGEST[steps, gates]


def test_the_object_is_as_large_for_five_thousand_nodes_as_for_fifty() -> None:
    """Half of them have been replaced, in ten of twenty steps; then the last ones are."""

    def size(nodes: int, done: int) -> int:
        old = [a_pair(f"o{n:04}", also=(names.DRIFTED,)) for n in range(nodes - done)]
        new = [a_pair(f"n{n:04}", claim={"created": NOW + 60.0}) for n in range(done)]
        status = RolloutStatus(step=STEPS[9].name, state=RolloutState.SOAKING, begun=NOW, since=NOW, target="2")
        rollout = Rollout(name="r", generation=2, created=NOW, pool="a", steps=STEPS, status=status)
        found = rollout_status(rollout, a_world([*old, *new], [], [POOL]), NOW + 120.0, "f" * 16)
        return len(json.dumps(whole(replace(rollout, status=found)), separators=(",", ":")).encode())

    assert size(5000, 2500) - size(50, 25) < 20, "four counts, with two digits more"
    assert size(5000, 4999) < 20_000


def test_a_gate_that_has_just_begun_to_look_bad_has_words_that_fit_too() -> None:
    first = nodes_gate(failing_everywhere(), POOL, NodesGate(), NOW)
    last = nodes_gate(failing_everywhere(), POOL, first, NOW + CONFIRMED)

    assert (first.result, last.result) == (GateResult.UNKNOWN, GateResult.FAILING)
    assert len(first.message) <= 1024 and last.message == first.message


def test_what_a_roll_out_leaves_means_nothing_to_karpenter() -> None:
    """After the way back: annotations of ours on NodeClaims, an object without finalizers that goes with its NodePool;
    no hash differs by them, so that what Karpenter replaces is what has drifted anyway."""
    rollout, world = at_its_largest()
    states = [replace(rollout, status=replace(rollout.status, state=state)) for state in RolloutState]
    left = {key for each in states for why in ("drifted", "provisioned") for key in launched_by(each.pin(why))}
    assert left == {names.REMEMBERED}
    assert all(key.startswith("dovetail.sh/") for key in left)

    hashed = {names.NODE_POOL_HASH: "2", names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM}
    pool = replace(POOL, annotations=hashed)
    plain = a_pair("n", claim={"annotations": hashed}).claim
    marked = replace(plain, annotations={**hashed, **dict.fromkeys(left, "x")})
    assert not is_hash_drifted(plain, pool) and not is_hash_drifted(marked, pool)

    made = render_new_rollout(
        NewRollout(name="r", pool="a", pool_uid="u", policy="p", plan=RolloutPlan(steps=rollout.steps))
    )
    [owner] = made["metadata"]["ownerReferences"]
    assert "finalizers" not in made["metadata"] and "blockOwnerDeletion" not in owner
    assert nodes_of(replace(world, rollouts={}), POOL).total == 2  # nobody needs the object to count nodes
    assert next_move(rollout, POOL, nodes_of(world, POOL), NOW).target == "2"

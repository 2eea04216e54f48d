"""The six refusals of an approval, each in its words, whether `dovetail rollout approve` or kubectl has written it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dovetail.adapters.kube.failures import Answer, failure_of
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.adapters.kubernetes_json.rendering.policies import render_new_rollout, render_rollout
from dovetail.cli.main import main
from dovetail.model.own.rollouts import (
    Intent,
    NewRollout,
    NodesGate,
    PoolNodes,
    Rollout,
    RolloutFailure,
    RolloutPlan,
    RolloutState,
    RolloutStatus,
)
from dovetail.notices.rollouts import answered
from dovetail.rules.rollout.moves import next_move
from testbed.simulated_world import SimulatedWorld
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world
from tests.disruption.test_rollout_approvals import ASKING, NODES
from tests.disruption.test_rollouts import FAILS, KNOWN, PASSES, POOL, SEEN, a_status
from worlds.disruption import HOUR, NOW

NAME: Final = "r"
POLICY: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "approvals.yaml"
PORT: Final = "dovetail.adapters.kube.objects.time_objects.KubeTimeObjects.patch_approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What has happened between the approval and the look that judges it. `step`: where the roll-out is by then."""

    nodes: PoolNodes = NODES
    gate: NodesGate = PASSES
    now: float = NOW + 60
    step: str = "canary"


UNCHANGED: Final = Turn()
REFUSALS: Final = {
    "target changed": (
        Turn(nodes=replace(NODES, newest_old=NOW)),
        "it is of another target: what is rolled out has changed since",
    ),
    "gate fell": (Turn(gate=FAILS), "gate nodes is Failing: pods are not ready"),
    "node set changed": (
        Turn(nodes=replace(NODES, staying=NODES.staying[:-1], old=NODES.old - 1)),
        "other nodes are concerned; look again with `dovetail rollout approve`",
    ),
    "expired": (
        Turn(now=NOW + HOUR),
        "the question has expired at 2023-11-14T23:13:20Z; resume the roll-out, and it is asked again",
    ),
    "late": (
        Turn(step="quarter", nodes=SEEN["three"]),
        "it comes too late for step canary: the roll-out is Awaiting at step quarter",
    ),
}


def known(world: SimulatedWorld) -> Rollout:
    body = world.get("NodeRollout", NAME)
    assert body is not None
    return parse_rollout(body)


def stands(world: SimulatedWorld, status: RolloutStatus) -> None:
    world.patch("NodeRollout", NAME, {"status": render_rollout(known(world), status)}, "status")


def asks(world: SimulatedWorld, step: str = "canary", nodes: PoolNodes = NODES) -> None:
    """That step has soaked, and the roll-out asks a person."""
    soaked = a_status(step, RolloutState.SOAKING, until=NOW)
    status = next_move(replace(known(world), status=soaked, approval=None), POOL, nodes, NOW)
    assert status.state == RolloutState.AWAITING
    stands(world, status)


def looks(world: SimulatedWorld, turn: Turn) -> Rollout:
    """The look of a worker that finds it so."""
    if turn.step != "canary":
        asks(world, turn.step, turn.nodes)
    rollout = known(world)
    seen = replace(rollout, status=replace(rollout.status, gate=turn.gate))
    stands(world, next_move(seen, POOL, turn.nodes, turn.now))
    return known(world)


@pytest.fixture
def world(tmp_path: Path) -> SimulatedWorld:
    plan = RolloutPlan(steps=ASKING)
    made = render_new_rollout(NewRollout(name=NAME, pool="a", pool_uid="u", policy="p", plan=plan))
    found = a_world(tmp_path, a_ready_pool("a"), {**made, "metadata": {"name": NAME}})
    asks(found)
    return found


def typed(world: SimulatedWorld, *words: str) -> int:
    return main(["rollout", *words, "--cluster", CLUSTER, "--world", str(world.file)])


def by_cli(world: SimulatedWorld) -> None:
    assert typed(world, "approve", NAME, "--yes") == 0


def by_kubectl(world: SimulatedWorld) -> None:
    awaits = known(world).status.awaits
    assert awaits is not None
    given = {"step": "canary", "digest": awaits.digest, "by": "alice", "at": "2023-11-14T22:13:30Z"}
    world.patch("NodeRollout", NAME, {"spec": {"approval": given}})


@pytest.mark.parametrize("approves", [by_cli, by_kubectl])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_each_refusal_is_said_in_its_words_however_it_was_approved(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], refusal: str, approves: Callable[[SimulatedWorld], None]
) -> None:
    turn, words = REFUSALS[refusal]
    approves(world)

    rollout = looks(world, turn)

    assert rollout.approval is not None and rollout.status.answered is not None
    assert rollout.status.step == turn.step, "nothing more begins"
    capsys.readouterr()
    typed(world, "status", NAME)
    told = f"approval of step canary by {rollout.approval.by}: refused, as {words}"
    assert told in capsys.readouterr().out.splitlines()
    notice = answered(rollout, rollout.status.answered)
    assert (notice.reason, notice.type) == ("ApprovalRefused", "Warning")
    assert notice.message == f"The approval by {rollout.approval.by} lets nothing begin: {words}"


@pytest.mark.parametrize("approves", [by_cli, by_kubectl])
def test_what_has_not_changed_is_accepted_however_it_was_approved(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], approves: Callable[[SimulatedWorld], None]
) -> None:
    approves(world)
    assert looks(world, UNCHANGED).status.step == "quarter"
    capsys.readouterr()
    typed(world, "status", NAME)
    assert any(line.endswith(": accepted") for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("approves", [by_cli, by_kubectl])
def test_what_a_worker_of_before_has_asked_is_to_be_looked_at_again(
    world: SimulatedWorld, approves: Callable[[SimulatedWorld], None]
) -> None:
    """The digest is one that such a worker has written of this question, during an upgrade."""
    status = known(world).status
    assert status.awaits is not None
    stands(world, replace(status, awaits=replace(status.awaits, digest="f30afc-8f2b4e-465ab4-486786-1cadcb")))
    approves(world)

    found = looks(world, UNCHANGED)
    assert (found.status.step, found.status.state) == ("canary", RolloutState.AWAITING)
    assert found.status.answered is not None
    again = "its digest is not the one that is asked for; look again with `dovetail rollout approve`"
    assert found.status.answered.refused == again
    approves(world)
    assert looks(world, UNCHANGED).status.step == "quarter"


@pytest.mark.parametrize("held", [Intent.RUN, Intent.ABORT])
@pytest.mark.parametrize("refused", [1, 0])
def test_an_approval_that_comes_once_the_target_is_refused_does_not_have_it_tried_again(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], refused: int, held: Intent
) -> None:
    """It changes the object as a person's answer does; `dovetail rollout resume` is that answer."""
    nodes = replace(NODES, refusable=refused)
    state = RolloutState.ROLLING_BACK if refused else RolloutState.FAILED
    world.patch("NodeRollout", NAME, {"spec": {"intent": str(held)}})
    failure = RolloutFailure(generation=known(world).generation, message="pods are not ready")
    awaits = known(world).status.awaits
    assert awaits is not None
    stands(world, replace(known(world).status, state=state, awaits=None, failure=failure, stable=KNOWN))
    given = {"step": "canary", "digest": awaits.digest, "by": "alice", "at": "2023-11-14T22:13:30Z"}
    world.patch("NodeRollout", NAME, {"spec": {"approval": given}})

    for _ in range(2):
        assert looks(world, Turn(nodes=nodes)).status.state == state
    capsys.readouterr()
    typed(world, "status", NAME)
    told = capsys.readouterr().out
    assert f"refused, as nothing was asked for: the roll-out was {state} at step canary" in told
    assert typed(world, "resume", NAME) == 0
    assert looks(world, Turn(nodes=nodes)).status.state == RolloutState.REPLACING


def test_in_the_name_of_another_nothing_is_approved_and_the_policy_says_why(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sixth. kubectl meets the policy on a real API server in tests/cluster/test_approvals_policy.py."""
    _, policy, _ = yaml.safe_load_all(POLICY.read_text())
    [rule] = policy["spec"]["validations"]
    denied = f"noderollouts.dovetail.sh {NAME!r} is forbidden: {rule['message']}"

    async def answers(*_: Any) -> None:
        raise failure_of(Answer(status=422, body={"reason": "Invalid", "message": denied}), f"NodeRollout/{NAME}")

    monkeypatch.setattr(PORT, answers)
    assert typed(world, "approve", NAME, "--yes") == 1
    assert "dovetail-approvals lets a person approve in that person's own name alone" in capsys.readouterr().err
    assert known(world).approval is None


def test_what_has_changed_while_a_person_reads_is_not_approved(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads(_: str) -> str:
        looks(world, REFUSALS["node set changed"][0])
        return "y"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", reads)
    assert typed(world, "approve", NAME) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"dovetail: {NAME}: what is asked has changed meanwhile; look again"
    ]
    assert known(world).approval is None

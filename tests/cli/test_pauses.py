"""`dovetail pause` and `resume` write objects and nothing else; `plan` and `explain` say what a pause holds back."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects
from dovetail.answers.explain.explain_node import explain_node_now
from dovetail.answers.explain.explain_node_text import node_text
from dovetail.answers.explain.explain_pod import explain_pod
from dovetail.answers.explain.explain_pod_text import pod_text
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.plan.plan_text import plan_text
from dovetail.answers.status.status import status_of
from dovetail.cli import orders
from dovetail.cli.main import main
from dovetail.cli.orders import pause as pause_orders
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.messages.plans import DisruptionPlan
from dovetail.messages.states import Held
from dovetail.model import names
from dovetail.model.values.time import parse_time
from dovetail.ports.failures import Forbidden
from dovetail.rules.brake.breakers import Breaker, Happened, with_breaker
from dovetail.rules.brake.unused_launches import resumed_annotations
from dovetail.rules.pause.pauses import annotations_of
from dovetail.settings.deciding import disruption_settings
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_deployment
from tests.cli.test_explain_node import OPEN, a_managed_node
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world, looked
from worlds.disruption import a_pool as a_node_pool

SYSTEM = ("Namespace", "kube-system")
OPERATORS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "operators.yaml"
ONLY_READ = {names.OWNER}


@pytest.fixture(autouse=True)
def alice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "alice")


def typed(world: SimulatedWorld, *arguments: str) -> int:
    return main([*arguments, "--cluster", CLUSTER, "--world", str(world.file)])


def own(world: SimulatedWorld, kind: str, name: str) -> dict[str, str]:
    found = world.get(kind, name)
    annotations = (found["metadata"].get("annotations") or {}) if found else {}
    return {key.removeprefix("dovetail.sh/"): text for key, text in annotations.items() if "dovetail.sh/" in key}


def target(world: SimulatedWorld) -> str:
    namespace = world.get(*SYSTEM)
    assert namespace is not None
    return f"cluster {CLUSTER} (UID {namespace['metadata']['uid']} of kube-system)"


def test_a_pause_is_written_on_the_namespace_or_on_the_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a worker and without Temporal; the default leaves launches alone."""
    world = a_world(tmp_path, a_ready_pool())

    assert typed(world, "pause", "--reason", "an incident") == 0
    assert typed(world, "pause", "launches", "--pool", "default", "--for", "2h", "--reason", "a move") == 0

    assert own(world, *SYSTEM) == {
        "paused": "disruption,expiry",
        "paused-by": "alice",
        "paused-reason": "an incident",
    }
    mine = own(world, "NodePool", "default")
    assert (mine["paused"], mine["paused-by"], mine["paused-reason"]) == ("launches", "alice", "a move")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "all NodePools: disruption and expiry paused until it is resumed, by alice: an incident",
        "nodes are still launched for pending pods",
    ]
    assert lines[2] == target(world)
    assert lines[3] == f"NodePool default: launches paused until {mine['paused-until']}, by alice: a move"


def test_a_second_pause_adds_and_a_resume_takes_off_what_is_named(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())

    typed(world, "pause", "expiry", "--pool", "default", "--for", "1h", "--reason", "one")
    typed(world, "pause", "disruption", "--pool", "default", "--drains", "--reason", "two")
    both = own(world, "NodePool", "default")
    typed(world, "resume", "expiry", "--pool", "default")
    left = own(world, "NodePool", "default")
    typed(world, "resume", "--pool", "default")

    assert (both["paused"], "paused-until" in both) == ("disruption,drains,expiry", False)
    assert left["paused"] == "disruption,drains"
    assert own(world, "NodePool", "default") == {}


def test_a_resume_says_what_else_holds_the_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    freeze = {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "Freeze",
        "metadata": {"name": "peak"},
        "spec": {
            "from": "2020-01-01T00:00:00Z",
            "until": "2090-01-01T00:00:00Z",
            "what": ["disruption"],
            "reason": "peak season",
        },
    }
    frozen = "disruption stay paused for all NodePools until 2090-01-01T00:00:00Z, by Freeze peak: peak season"
    general = "disruption and expiry stay paused for all NodePools until it is resumed, by alice: an incident"
    world = a_world(tmp_path, a_ready_pool(), freeze)

    def said(*words: str) -> list[str]:
        capsys.readouterr()
        assert typed(world, *words) == 0
        return capsys.readouterr().out.splitlines()[:-1]

    said("pause", "--reason", "an incident")
    said("pause", "all", "--pool", "default", "--reason", "a night")
    over = "NodePool default: the pause of disruption and expiry and launches is over, which was until it is resumed,"
    first, *others = said("resume", "--pool", "default")
    assert first == f"{over} by alice: a night"
    assert others == [f"NodePool default: {general}", f"NodePool default: {frozen}"]
    assert said("resume", "launches", "--pool", "default") == ["NodePool default: nothing was paused"]
    assert said("resume", "all")[1:] == [f"all NodePools: {frozen}"]


def test_a_resume_says_that_it_cannot_know_of_a_freeze(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause is over all the same."""

    async def read(*_: object) -> None:
        raise Forbidden("Freeze", "it is forbidden")

    world = a_world(tmp_path, a_ready_pool())
    typed(world, "pause", "--reason", "an incident")
    capsys.readouterr()
    monkeypatch.setattr(KubeTimeObjects, "read", read)

    assert typed(world, "resume") == 0
    lines = capsys.readouterr().out.splitlines()
    unknown = "whether a pause of all or a Freeze holds it still cannot be read: Freeze: it is forbidden"
    assert f"all NodePools: {unknown}" in lines and "all NodePools: resumed" not in lines
    assert own(world, *SYSTEM) == {}


def test_a_pool_that_the_brake_stopped_is_resumed_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = a_ready_pool()
    pool["metadata"]["annotations"] = {names.LAUNCHES_STOPPED: "2026-01-01T00:00:00Z of no use"}
    world = a_world(tmp_path, pool)

    assert typed(world, "resume", "--pool", "default") == 0

    assert capsys.readouterr().out.splitlines() == [
        "NodePool default: launches go on; they were stopped since 2026-01-01T00:00:00Z: of no use",
        target(world),
    ]
    assert set(own(world, "NodePool", "default")) == {"launches-resumed"}


def test_a_pool_whose_replacements_failed_is_resumed_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decision 226."""
    pool = a_ready_pool()
    failures = tuple(Happened(1700000000.0 + n, f"{n}") for n in (0, 1))
    opened = with_breaker(a_node_pool(), Breaker(reason="Drifted", failures=failures, opened=1700000001.0))
    pool["metadata"]["annotations"] = {names.BREAKER: opened.annotations[names.BREAKER]}
    world, before = a_world(tmp_path, pool), int(time.time())

    assert typed(world, "resume", "--pool", "default") == 0

    said, where = capsys.readouterr().out.splitlines()
    assert said.startswith("NodePool default: nodes are replaced again; 2 replacements for Drifted had failed")
    assert where == target(world)
    [left] = json.loads(own(world, "NodePool", "default")["breaker"])["entries"]
    assert left.keys() == {"reason", "ended"} and left["reason"] == "Drifted"
    assert before <= parse_time(left["ended"]) <= time.time(), "what was made until now counts no more"


def test_a_resume_that_fails_half_way_has_said_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = a_ready_pool()
    pool["metadata"]["annotations"] = {names.LAUNCHES_STOPPED: "2026-01-01T00:00:00Z of no use", names.BREAKER: "x"}
    world = a_world(tmp_path, pool)
    typed(world, "pause", "disruption", "--pool", "default", "--reason", "a look")
    capsys.readouterr()
    plain = pause_orders.revise_pool  # type: ignore[attr-defined]  # where the command looks it up

    async def refused(pools: Any, live: Any, change_of: Any) -> Any:
        if names.BREAKER in change_of(live):
            raise Forbidden("NodePool/default", "a policy of the cluster")
        return await plain(pools, live, change_of)

    monkeypatch.setattr(pause_orders, "revise_pool", refused)
    assert typed(world, "resume", "--pool", "default") == 1

    said, wrong = capsys.readouterr()
    assert said.splitlines() == [
        "NodePool default: the pause of disruption is over, which was until it is resumed, by alice: a look",
        "NodePool default: resumed",
        "NodePool default: launches go on; they were stopped since 2026-01-01T00:00:00Z: of no use",
    ]
    assert "a policy of the cluster" in wrong


def test_the_operators_policy_lets_through_what_orders_write() -> None:
    _, policy, *_ = yaml.safe_load_all(OPERATORS.read_text())
    [listed] = [each["expression"] for each in policy["spec"]["variables"] if each["name"] == "orders"]
    allowed = {f"dovetail.sh/{key}" for key in re.findall(r"'([a-z-]+)'", listed)}
    [folder] = orders.__path__
    text = "".join(file.read_text() for file in Path(folder).glob("*.py"))
    found = [getattr(names, name) for name in re.findall(r"\bnames\.([A-Z_]+)", text)]
    keys = {key for each in found for key in ([each] if isinstance(each, str) else each)}
    ours = {key for key in keys if key.startswith("dovetail.sh/")} - ONLY_READ

    assert allowed == ours | annotations_of(None).keys() | resumed_annotations(0.0).keys()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pause", "--for", "2d", "--reason", "x"], '--for 2d: time: unknown unit "d" in duration "2d"'),
        (["pause", "--for", "0s", "--reason", "x"], "--for 0s: a pause lasts for longer than nothing"),
        (["pause", "--pool", "nowhere", "--reason", "x"], "nowhere: there is no such NodePool"),
        (["resume", "--pool", "nowhere"], "nowhere: there is no such NodePool"),
    ],
)
def test_what_cannot_be_paused_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    world = a_world(tmp_path, a_ready_pool())

    assert typed(world, *arguments) == 1

    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"dovetail: {words}")
    assert own(world, *SYSTEM) == {}


@pytest.mark.parametrize("arguments", [["pause"], ["pause", "everything", "--reason", "x"]])
def test_a_pause_without_a_reason_or_of_an_unknown_thing_is_not_understood(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)


def paused(world: SimulatedWorld, what: str) -> None:
    annotations = {names.PAUSED: what, names.PAUSED_BY: "alice", names.PAUSED_REASON: "an incident"}
    world.patch(*SYSTEM, {"metadata": {"annotations": annotations}})


async def test_a_plan_says_who_paused_and_what_it_would_do_without(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node())
    paused(world, "disruption")

    answer = plan_now(await looked(world))

    text = plan_text(answer)
    assert answer.disruptions == () and answer.held_back == ("Empty (emptiness): n1",)
    assert "PAUSED: disruption for all NodePools until it is resumed, by alice: an incident" in text
    assert "held back  Empty (emptiness): n1" in text
    assert "Paused: a person has paused it" in text


async def test_a_plan_says_what_a_closed_window_holds_back(tmp_path: Path) -> None:
    spec = {"deny": [{"from": "00:00", "to": "00:00"}]}
    policy = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": "p"}, "spec": spec}
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), policy)

    answer = plan_now(await looked(world))

    assert answer.disruptions == () and answer.held_back == ("Empty (emptiness): n1",)


async def test_explain_says_that_a_pause_holds_the_node(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node())
    paused(world, "disruption, bogus")

    answer = explain_node_now(await looked(world), "n1")

    assert answer.goes_for == ()
    assert {m.asked for m in answer.methods if m.why == "Paused"} >= {"emptiness", "drift"}
    text = node_text(answer)
    assert "PAUSED: disruption and expiry for all NodePools" in text
    assert "'bogus' is none of" in text


async def test_explain_promises_no_node_while_launches_are_paused(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(), a_deployment(1, cpu="1"))
    paused(world, "launches")

    answer = explain_pod(await looked(world), world.objects("Pod")[0]["metadata"]["name"])

    assert [(r.reason, r.conflict) for r in answer.pools] == [
        ("launches_paused", "launches paused for all NodePools until it is resumed, by alice: an incident")
    ]
    assert "PAUSED: launches" in pod_text(answer) and answer.state == "refused"


async def test_the_nodes_that_wait_for_their_second_look_save_what_their_plan_does_together(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node("n1"), *a_managed_node("n2"))
    found = await looked(world)
    choice = choose(found.snapshot, disruption_settings(found.settings), never)
    assert isinstance(choice, DisruptionPlan)

    moves = status_of(replace(found, held=(Held(plan=choice, due=found.snapshot.now + 9.0),))).under_way

    (command,) = choice.commands
    assert [move.name for move in moves] == ["n1", "n2"] and command.savings > 0
    assert sum(move.savings or 0.0 for move in moves) == pytest.approx(command.savings)


async def test_a_plan_shows_first_what_waits_for_its_second_look(tmp_path: Path) -> None:
    """What is about to happen, when, and that it can be cancelled."""
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node())
    found = await looked(world)
    choice = choose(found.snapshot, disruption_settings(found.settings), never)
    assert isinstance(choice, DisruptionPlan)
    taken = replace(found.snapshot, disrupting=frozenset({"claim-n1"}))
    waiting = replace(found, snapshot=taken, held=(Held(plan=choice, due=taken.now + 9.0),))

    text = " ".join(plan_text(plan_now(waiting)).split())

    assert "Disruption: 1 command decided on" in text
    assert "Empty: n1: looked at once more in 9s, then it goes; `dovetail cancel n1` drops it" in text
    assert "Disruption: no other node would go." in text

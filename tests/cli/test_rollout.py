"""`dovetail rollout` shows NodeRollouts and writes what a person wants of one, with neither a worker nor Temporal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.cli.main import main
from dovetail.model.own.stable_images import OTHER_CHANGE
from dovetail.ports.failures import Unreachable
from dovetail.rules.rollout.conditions import NOTHING_TO_TAKE_BACK
from testbed.simulated_world import SimulatedWorld
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world

NAME = "new-image"
NOON = "2026-05-01T12:00:00Z"


def a_rollout(state: str = "Soaking") -> dict[str, Any]:
    stalled = {"type": "Stalled", "status": "True", "reason": "GateFails", "message": "web does worse"}
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "NodeRollout",
        "metadata": {"name": NAME},
        "spec": {
            "nodePool": "default",
            "steps": [{"name": "canary", "to": "1", "soak": "30m"}, {"name": "rest", "to": "100%", "soak": "0s"}],
        },
        "status": {
            "step": {
                "name": "canary",
                "state": state,
                "since": "2026-05-01T00:00:00Z",
                "until": "2026-05-01T00:30:00Z",
            },
            "nodes": {"total": 9, "target": 1, "leaving": 0, "old": 8},
            "gates": [{"name": "nodes", "result": "Passing"}],
            "conditions": [{**stalled, "lastTransitionTime": "2026-05-01T00:00:00Z"}],
        },
    }


def typed(world: SimulatedWorld, *words: str) -> int:
    return main(["rollout", *words, "--cluster", CLUSTER, "--world", str(world.file)])


def test_each_is_listed_and_one_is_shown_step_by_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world(tmp_path, a_ready_pool(), a_rollout())
    line = (
        f"{NAME}: NodePool default, Soaking at step canary until 2026-05-01T00:30:00Z; "
        "1 of 9 nodes are at the target, 0 are leaving"
    )

    assert typed(world) == 0
    assert capsys.readouterr().out.splitlines() == [line]
    assert typed(world, "status", NAME) == 0
    assert capsys.readouterr().out.splitlines() == [
        line,
        "▇▇░░░░░░░░░░░░░░░░░░",
        "> canary: to 1, soak 30m",
        "  rest: to 100%, soak 0s",
        "intent Run; gate nodes: Passing",
        "stalled (GateFails): web does worse",
    ]


def test_gates_that_are_asked_and_the_story_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = a_rollout()
    told["spec"]["gates"] = [
        {"name": "slo", "query": {"expr": "slo:errors", "max": "0.01"}},
        {"name": "new", "alerts": {"firing": "{}"}},
    ]
    told["status"]["gates"] += [
        {"name": "slo", "result": "Failing", "asked": NOON, "message": "0.02 is more than 0.01"}
    ]
    told["status"]["history"] = [
        {"step": "canary", "began": "2026-05-01T09:00:00Z", "ended": NOON, "result": "Failed", "message": "web fails"},
        {"step": "canary", "began": NOON},
    ]
    world = a_world(tmp_path, a_ready_pool(), told)

    assert typed(world, "status", NAME) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "as gate slo is Failing: 0.02 is more than 0.01" in shown[0]
    assert shown[5:7] == [
        f"gate slo: Failing, 0.02 is more than 0.01 (asked {NOON})",
        "gate new: Unknown, it has not been asked yet",
    ]
    assert typed(world, "history", NAME) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "2026-05-01T09:00:00Z  canary: failed after 3h: web fails",
        f"{NOON}  canary: goes on",
    ]


def test_one_that_has_not_begun_has_no_story(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world(tmp_path, a_ready_pool(), {**a_rollout(), "status": {}})

    assert typed(world, "history", NAME) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["no step of it has begun"]


def test_status_shows_it_and_ends_with_4_where_it_stands_still(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DIQ-37."""
    world = a_world(tmp_path, a_ready_pool(), a_rollout())

    assert main(["status", "--local", "--check", "--cluster", CLUSTER, "--world", str(world.file)]) == 4
    said = capsys.readouterr().out.splitlines()
    assert f"!  NodeRollout {NAME}  GateFails: web does worse  dovetail rollout status {NAME}" in said
    assert said[said.index("ROLL-OUTS") + 1].startswith(f"{NAME}  ░") and "  ▸ canary 0   · rest 0" in said


@pytest.mark.parametrize(
    ("order", "intent"), [("pause", "Pause"), ("abort", "Abort"), ("promote", "Promote"), ("resume", "Run")]
)
def test_what_is_wanted_is_written_on_the_object_and_the_cluster_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str, intent: str
) -> None:
    world = a_world(tmp_path, a_ready_pool(), a_rollout())

    assert typed(world, order, NAME) == 0
    found = world.get("NodeRollout", NAME)
    assert found is not None and found["spec"]["intent"] == intent
    assert found["spec"]["steps"] == a_rollout()["spec"]["steps"] and found["status"] == a_rollout()["status"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"NodeRollout {NAME}: ") and said[1].startswith(f"cluster {CLUSTER} (UID ")


def test_what_cannot_be_meant_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world(tmp_path, a_ready_pool(), a_rollout("Complete"))

    for words in (("abort",), ("abort", "other"), ("abort", NAME)):
        assert typed(world, *words) == 1
    assert capsys.readouterr().err.splitlines() == [
        "dovetail: rollout abort: name a NodeRollout; `dovetail rollout` lists them",
        "dovetail: other: there is no such NodeRollout",
        f"dovetail: {NAME}: it is complete, and holds nothing",
    ]


@pytest.mark.parametrize(
    ("why_not", "words"),
    [
        ("", "its nodes at the target are replaced by such as were there before, the newest first"),
        (OTHER_CHANGE, f"its target is refused; its nodes stay, because {OTHER_CHANGE}"),
    ],
)
def test_a_roll_out_is_taken_back_by_its_intent_and_nodes_that_stay_are_named_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], why_not: str, words: str
) -> None:
    begun = a_rollout()
    begun["status"]["stable"] = {"since": "2026-05-01T00:00:00Z", "images": [{"id": "ami-1"}], "whyNot": why_not}
    world = a_world(tmp_path, a_ready_pool(), begun)

    assert typed(world, "abort", NAME, "--back") == 0
    found = world.get("NodeRollout", NAME)
    assert found is not None and found["spec"]["intent"] == "RollBack"
    assert capsys.readouterr().out.splitlines()[0] == f"NodeRollout {NAME}: {words}"
    assert typed(world, "pause", NAME, "--back") == 1
    assert capsys.readouterr().err == "dovetail: rollout pause: --back belongs to abort\n"


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (
            ("abort", NAME, "--back"),
            f"{NOTHING_TO_TAKE_BACK}: `dovetail rollout resume {NAME}`",
        ),
        (
            ("promote", NAME),
            "no change has begun; the next one goes to its last step at once, whatever its soak and its gates say",
        ),
        (("resume", NAME), "it waits for a change"),
    ],
)
def test_before_a_change_has_begun_nothing_is_said_to_happen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: tuple[str, ...], says: str
) -> None:
    waiting = a_rollout("Waiting")
    waiting["spec"]["intent"] = "Pause"
    world = a_world(tmp_path, a_ready_pool(), waiting)

    assert typed(world, *order) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"NodeRollout {NAME}: {says}"


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (("abort", NAME, "--back"), 1),
        (("promote", NAME), 1),
        (("resume", NAME), 1),
        (("pause", NAME), 0),
        (("abort", NAME), 0),
    ],
)
def test_one_that_cannot_be_understood_is_stopped_and_told_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: tuple[str, ...], code: int
) -> None:
    unclear = a_rollout()
    unclear["spec"] |= {"gates": [{"name": "slo", "query": {"expr": "up", "max": "1", "every": "14s"}}]}
    world = a_world(tmp_path, a_ready_pool(), unclear)
    before = world.get("NodeRollout", NAME)

    assert typed(world, *order) == code
    said = capsys.readouterr()
    assert (world.get("NodeRollout", NAME) == before) is (code == 1)
    if code:
        assert said.err.startswith(f"dovetail: {NAME}: it cannot be understood: spec.gates[0]")
        assert said.err.endswith("nothing begins until that is put right\n")


def test_a_refused_target_is_tried_again_although_the_intent_is_run_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = a_rollout("Failed")
    refused["status"]["failure"] = {"generation": 1, "message": "web does worse"}
    refused["status"]["stable"] = {"since": "2026-05-01T00:00:00Z", "images": [{"id": "ami-1"}]}
    world = a_world(tmp_path, a_ready_pool(), refused)
    before = world.get("NodeRollout", NAME)

    assert typed(world, "status", NAME) == 0
    said = capsys.readouterr().out
    assert "Failed: web does worse" in said and "images of before: ami-1" in said
    assert typed(world, "resume", NAME) == 0
    found = world.get("NodeRollout", NAME)
    assert found is not None and before is not None and found["spec"]["intent"] == "Run"
    assert found["metadata"]["generation"] > before["metadata"]["generation"]
    assert "it begins again at its first step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("longest", "says"),
    [
        (
            "168h",
            (
                "no further node begins, as it has gone on since 2020-05-01T00:00:00Z, longer than its maxDuration: "
                "raise that, promote it, abort it, or go back"
            ),
        ),
        ("", "it goes on where it was"),
    ],
)
def test_resume_says_that_a_roll_out_which_has_taken_too_long_goes_no_further(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], longest: str, says: str
) -> None:
    """DIQ-37."""
    late = a_rollout("Replacing")
    late["spec"] |= {"intent": "Pause"} | ({"maxDuration": longest} if longest else {})
    late["status"]["target"] = {"nodePoolHash": "1", "begun": "2020-05-01T00:00:00Z"}
    world = a_world(tmp_path, a_ready_pool(), late)

    assert typed(world, "resume", NAME) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"NodeRollout {NAME}: {says}"


@pytest.mark.parametrize(
    ("order", "mark"),
    [
        (("RollBack", "abort", NAME, "--back"), {"failure": {"generation": 1, "message": "web does worse"}}),
        (("Promote", "promote", NAME), {"promotedBefore": True}),
    ],
)
def test_an_order_that_stands_from_a_target_before_is_given_anew_once_a_worker_has_seen_the_pause(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    order: tuple[str, ...],
    mark: dict[str, Any],
) -> None:
    intent, *words = order
    known = a_rollout("Replacing")
    known["spec"]["intent"] = intent
    known["status"] |= mark
    world = a_world(tmp_path, a_ready_pool(), known)
    seen: list[str] = []

    async def a_worker_looks(_: float) -> None:
        found = world.get("NodeRollout", NAME)
        assert found is not None
        seen.append(found["spec"]["intent"])
        world.patch("NodeRollout", NAME, {"status": dict.fromkeys(mark)}, "status")

    assert typed(world, "status", NAME) == 0
    assert f"intent {intent}, given for an earlier target; gate nodes: Passing" in capsys.readouterr().out
    monkeypatch.setattr("asyncio.sleep", a_worker_looks)
    assert typed(world, *words) == 0
    found = world.get("NodeRollout", NAME)
    assert found is not None and (seen, found["spec"]["intent"]) == (["Pause"], intent)

    monkeypatch.setattr("dovetail.cli.rollout.command.SEEN_WITHIN", 1)
    world.patch("NodeRollout", NAME, {"status": mark}, "status")
    monkeypatch.setattr("asyncio.sleep", no_worker)
    assert typed(world, *words) == 1
    assert "no worker has seen that yet" in capsys.readouterr().err
    assert typed(world, *words) == 1, "nor when it is tried again, as that says"
    found = world.get("NodeRollout", NAME)
    assert found is not None and found["spec"]["intent"] == "Pause"
    for pausing in ("pause", "abort"):
        assert typed(world, pausing, NAME) == 0
        assert typed(world, *words) == 1, "nor while no worker has seen a person's own pause"


async def no_worker(_: float) -> None:
    """Time goes by."""


AWAITS = {
    "digest": "1-2",
    "since": "2026-05-01T00:30:00Z",
    "expires": "2026-05-02T00:30:00Z",
    "shows": "step rest: from 1 to 100%, 8 more of 9 nodes are replaced",
}


def an_asking_rollout(state: str = "Awaiting") -> dict[str, Any]:
    rollout = a_rollout(state)
    rollout["spec"]["steps"][0]["approve"] = {"expiresAfter": "24h"}
    rollout["status"]["step"].pop("until")
    rollout["status"]["awaits"] = AWAITS
    return rollout


def test_an_approval_shows_what_it_lets_happen_and_is_of_that_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = a_world(tmp_path, a_ready_pool(), an_asking_rollout())

    assert typed(world, "approve", NAME) == 1
    said = capsys.readouterr()
    assert f"{NAME}: step rest: from 1 to 100%, 8 more of 9 nodes are replaced" in said.out.splitlines()
    assert said.err.splitlines() == [
        "dovetail: rollout approve: nobody can be asked here; --yes approves what is shown"
    ]
    found = world.get("NodeRollout", NAME)
    assert found is not None and "approval" not in found["spec"]

    assert typed(world, "approve", NAME, "--yes") == 0
    found = world.get("NodeRollout", NAME)
    assert found is not None
    approval = found["spec"]["approval"]
    assert (approval["step"], approval["digest"]) == ("canary", "1-2") and approval["by"] and approval["at"]
    assert "it begins at once, unless something has changed" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1), ("n", 1)])
def test_a_person_is_asked_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    world = a_world(tmp_path, a_ready_pool(), an_asking_rollout())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: answer)

    assert typed(world, "approve", NAME) == code
    found = world.get("NodeRollout", NAME)
    assert found is not None and ("approval" in found["spec"]) is (code == 0)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("Soaking", "nothing is to be approved: Soaking at step canary"),
        ("Paused", "the question has expired; `dovetail rollout resume` has it asked again"),
    ],
)
def test_what_is_not_asked_is_not_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str, words: str
) -> None:
    world = a_world(tmp_path, a_ready_pool(), an_asking_rollout(state))

    assert typed(world, "approve", NAME, "--yes") == 1
    assert capsys.readouterr().err.splitlines() == [f"dovetail: {NAME}: {words}"]


def test_resuming_one_that_nobody_answered_changes_it_though_its_intent_was_to_run(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(), an_asking_rollout("Paused"))
    before = world.get("NodeRollout", NAME)

    assert typed(world, "resume", NAME) == 0
    after = world.get("NodeRollout", NAME)
    assert before is not None and after is not None and after["spec"]["intent"] == "Run"
    assert after["metadata"]["generation"] > before["metadata"]["generation"]


def test_what_is_asked_and_what_was_answered_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rollout = an_asking_rollout()
    answered = {"step": "canary", "digest": "0", "by": "alice", "at": "2026-05-01T00:31:00Z", "refused": "late"}
    rollout["status"]["answered"] = answered
    world = a_world(tmp_path, a_ready_pool(), rollout)

    assert typed(world, "status", NAME) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "> canary: to 1, soak 30m, then asks for 1d" in lines
    assert f"asks until 2026-05-02T00:30:00Z: {AWAITS['shows']}; `dovetail rollout approve {NAME}`" in lines
    assert "approval of step canary by alice: refused, as late" in lines


COMPLETE = {"step": {"name": "rest", "state": "Complete", "since": "2026-05-01T01:00:00Z", "until": None}}
REFUSED = {
    "step": {"name": "canary", "state": "Failed", "since": "2026-05-01T01:00:00Z", "until": None},
    "failure": {"generation": 1, "message": "web does worse"},
}


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens while a watch rests, one after the other, and then a person interrupts."""
    coming: list[Callable[[], object]] = []

    async def rest(seconds: float) -> None:
        assert seconds == 5.0
        if not coming:
            raise KeyboardInterrupt
        coming.pop(0)()

    monkeypatch.setattr("dovetail.cli.rollout.watch.asyncio.sleep", rest)
    return coming


def watched(world: SimulatedWorld) -> int:
    return typed(world, "status", NAME, "--watch", "--every", "5")


@pytest.mark.parametrize(
    "ends",
    [
        (lambda world: world.patch("NodeRollout", NAME, {"status": COMPLETE}, "status"), 0, "Complete at step rest"),
        (lambda world: world.patch("NodeRollout", NAME, {"status": REFUSED}, "status"), 4, "Failed: web does worse"),
        (lambda world: world.patch("NodeRollout", NAME, {"spec": {"intent": "Abort"}}), 4, "its intent is Abort"),
    ],
)
def test_a_watch_ends_with_the_roll_out_and_says_how_by_its_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rests: list[Callable[[], object]],
    ends: tuple[Callable[[SimulatedWorld], object], int, str],
) -> None:
    end, code, says = ends
    world = a_world(tmp_path, a_ready_pool(), a_rollout("Judging"))
    two = {"status": {"nodes": {"total": 9, "target": 2, "leaving": 0, "old": 7}}}
    rests += [
        lambda: None,
        lambda: world.patch("NodeRollout", NAME, two, "status"),
        lambda: end(world),
    ]

    assert watched(world) == code and rests == []
    said = [line.split("  ", 1) for line in capsys.readouterr().out.splitlines()]
    assert {len(moment) for moment, _ in said} == {len("2026-05-01T00:00:00Z")}, "each line has its moment"
    lines = [line for _, line in said]
    assert len(lines) == len(set(lines)), "what says nothing new is not written again"
    assert [line for line in lines if "2 of 9 nodes" in line] and "▇▇▇▇░░░░░░░░░░░░░░░░" in lines
    assert says in next(line for line in reversed(lines) if line.startswith(f"{NAME}: "))


def test_a_watch_in_a_terminal_draws_one_picture_anew(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    rests: list[Callable[[], object]],
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    world = a_world(tmp_path, a_ready_pool(), a_rollout())
    rests += [lambda: None, lambda: world.patch("NodeRollout", NAME, {"status": COMPLETE}, "status")]

    assert watched(world) == 0
    pictures = capsys.readouterr().out.split("\x1b[H\x1b[2J\x1b[3J")[1:]
    assert len(pictures) == 3 and pictures[0] == pictures[1]
    assert all("▇▇░░░░░░░░░░░░░░░░░░" in picture for picture in pictures) and "Complete" in pictures[2]


def test_a_watch_outlives_the_api_server_and_ends_with_1_where_the_object_is_gone(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    rests: list[Callable[[], object]],
) -> None:
    world = a_world(tmp_path, a_ready_pool(), a_rollout())
    with monkeypatch.context() as broken:
        rests += [
            lambda: broken.setattr("dovetail.adapters.kube.objects.time_objects.KubeTimeObjects.read", refused),
            lambda: None,
            broken.undo,
            lambda: world.delete("NodeRollout", NAME),
        ]
        assert watched(world) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "dovetail: no answer: NodeRollouts: the API server is away; what was seen last stands until there is one",
        f"dovetail: {NAME}: it has been deleted",
    ]
    assert typed(world, "pause", NAME, "--watch") == 1
    assert "--watch belongs to status" in capsys.readouterr().err


async def refused(*_: object) -> None:
    """Nobody answers."""
    raise Unreachable("NodeRollouts", "the API server is away")

"""`dovetail history NS/NAME`: the story of the pod's node, and of what made nodes for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.record import history, made_for
from dovetail.answers.record.entries import Entries
from dovetail.answers.record.history import Story, stories_of
from dovetail.model import names
from tests.cli.test_explain_node import a_bound_pod, a_managed_node
from tests.cli.test_planned_pods import RECORDED, temporal
from tests.cli.test_savings import DISRUPTION
from tests.cli.worlds import a_ready_pool, a_world, looked, settings_of
from worlds.manifests import pod_manifest

PLANNED = "default/web-5a07fe8f5a-9e66050366"  # a pod of the recorded Scheduler, and the claim that was made for it
MADE = "demo/claim/pool-dce7bc055d-0"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Temporal with one run of the Scheduler, a disruption that moved a pod, and a story for each id."""

    async def matching(*_: object) -> Entries:
        moved = replace(DISRUPTION, reason="Drifted", pod_names=("default/web-1",))
        return Entries(entries=(moved, replace(DISRUPTION, workflow="demo/disrupt/2")))

    async def told(_: object, identity: str) -> Story:
        return Story(workflow=identity, type="LaunchNode", status="completed", started=1.0)

    async def nothing(*_: object) -> list[str]:
        return []

    async def itself(_: object, __: object, name: str, ___: object) -> tuple[str, ...]:
        return (name,)

    monkeypatch.setattr(made_for, "read_matching", matching)
    monkeypatch.setattr(history, "story_of", told)
    monkeypatch.setattr(history, "_disruptions", nothing)
    monkeypatch.setattr(history, "_claims_of", itself)
    return temporal(RECORDED / "cancelled.json")


async def test_a_pod_that_runs_has_the_stories_of_its_node_and_of_what_made_one_for_it(
    tmp_path: Path, client: Any
) -> None:
    world = a_world(tmp_path, a_ready_pool(), *a_managed_node(), a_bound_pod("web-1", "n1"))
    uid = world.objects("Pod")[0]["metadata"]["uid"]
    world.patch("NodeClaim", "claim-n1", {"metadata": {"annotations": {names.PLAN: "p1/0", names.PLANNED_PODS: uid}}})

    answer = await stories_of(client, settings_of(world), "default/web-1", (await looked(world)).snapshot)

    assert {story.workflow for story in answer.stories} == {
        "demo/disrupt/1",  # moved it
        "demo/node/n1",
        "demo/claim/n1",
        "demo/disrupt/p1",
        "demo/node/claim-n1",
        "demo/claim/claim-n1",
    }
    assert answer.notes == (
        "default/web-1 runs on n1",
        "demo/disrupt/1 (Drifted of n1) made a node for it",
        "claim-n1 was made for 1 pod; still there: default/web-1",
    )


async def test_a_pod_that_is_gone_is_found_by_the_claim_that_was_made_for_it(tmp_path: Path, client: Any) -> None:
    world = a_world(tmp_path, a_ready_pool())

    answer = await stories_of(client, settings_of(world), PLANNED, (await looked(world)).snapshot)

    assert [story.workflow for story in answer.stories] == [MADE]
    assert answer.notes == (
        f"{PLANNED}: no such pod is there now",
        "made for it within the last day: NodeClaim pool-dce7bc055d-0",
    )


async def test_a_pod_that_waits_has_no_story_yet_and_is_said_to_wait(tmp_path: Path, client: Any) -> None:
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("late"))

    answer = await stories_of(client, settings_of(world), "default/late", (await looked(world)).snapshot)

    assert (answer.stories, answer.notes) == ((), ("default/late is on no node yet",))


@pytest.mark.parametrize("name", ["shop/nobody", "demo/nobody"])  # a namespace may have the cluster's name
async def test_a_pod_that_nobody_knows_is_one_line(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def none(*_: object) -> None:
        return None

    monkeypatch.setattr(history, "story_of", none)
    snapshot = (await looked(world := a_world(tmp_path, a_ready_pool()))).snapshot

    with pytest.raises(CommandFailed, match=f"^{name}: there is no such pod, and within the last day"):
        await stories_of(client, settings_of(world), name, snapshot)
    with pytest.raises(CommandFailed, match="no name of a Node, NodeClaim or pod"):
        await stories_of(client, settings_of(world), "a/b/c", snapshot)


async def test_a_node_that_log_names_is_found_also_where_its_workflow_began_as_a_launch(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left before it was ready: no attribute of the workflow names the node."""

    async def only_the_claim(_: object, identity: str) -> Story | None:
        known = identity == "demo/claim/short-lived"
        return Story(workflow=identity, type="TerminateNode", status="completed", started=1.0) if known else None

    async def ended(_: object, cluster: str, condition: str, most: int) -> Entries:
        assert condition == "WorkflowType='TerminateNode'"
        left = replace(DISRUPTION, kind="termination", workflow="demo/claim/short-lived", nodes=("ip-10-1-0-9",))
        return Entries(entries=(replace(left, workflow="demo/claim/other", nodes=("another",)), left))

    monkeypatch.setattr(history, "story_of", only_the_claim)
    monkeypatch.setattr(history, "read_matching", ended)
    world = a_world(tmp_path, a_ready_pool())

    answer = await stories_of(client, settings_of(world), "ip-10-1-0-9", (await looked(world)).snapshot)

    assert [story.workflow for story in answer.stories] == ["demo/claim/short-lived"]

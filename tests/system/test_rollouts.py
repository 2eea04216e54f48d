"""The stories of the guide, "A change, step by step": one node goes, the rest waits; it is aborted, then promoted. And
one is made by a policy and approved."""

import pytest

from dovetail.model import names
from dovetail.model.json import Json
from testing.stage.stage import Stage, has_condition, node_class, node_pool
from tests.system.test_pauses import SMALL, shown

pytestmark = pytest.mark.temporal

NODES = 3
ROLLOUT: Json = {
    "apiVersion": "dovetail.sh/v1alpha1",
    "kind": "NodeRollout",
    "metadata": {"name": "new-image"},
    "spec": {
        "nodePool": "pool",
        "steps": [{"name": "canary", "to": "1", "soak": "1h"}, {"name": "rest", "to": "100%"}],
    },
}
POLICY: Json = {
    "apiVersion": "dovetail.sh/v1alpha1",
    "kind": "DisruptionPolicy",
    "metadata": {"name": "careful"},
    "spec": {
        "rollout": {
            "when": {"drifted": "2"},
            "steps": [
                {"name": "canary", "to": "1", "soak": "5s", "approve": {"expiresAfter": "24h"}},
                {"name": "rest", "to": "100%", "soak": "0s"},
            ],
        }
    },
}


async def test_one_node_goes_first_and_the_rest_when_a_person_promotes_it(stage: Stage) -> None:
    pool = node_pool([SMALL], budgets=[{"nodes": "100%"}])
    stage.world.apply(node_class())
    stage.world.apply(pool)
    stage.deploy(NODES)
    stage.start_worker()
    await stage.until(lambda: stage.initialised(NODES) and stage.running_pods() == NODES, 120, "all pods run")
    before = {claim["metadata"]["uid"] for claim in stage.claims()}

    def place() -> tuple[str, str]:
        found = stage.world.get("NodeRollout", "new-image")
        step = ((found or {}).get("status") or {}).get("step") or {}
        return step.get("name", ""), step.get("state", "")

    def old() -> list[Json]:
        return [claim for claim in stage.claims() if claim["metadata"]["uid"] in before]

    def is_stalled() -> bool:
        found = stage.world.get("NodeRollout", "new-image")
        return found is not None and has_condition(found, "Stalled")

    stage.world.apply(ROLLOUT)
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    await stage.until(lambda: place() == ("canary", "Soaking"), 180, "the canary soaks")
    await stage.until(lambda: len(old()) == NODES - 1, 120, "the node that it replaced is gone")
    assert all(has_condition(claim, names.DRIFTED) for claim in old())
    assert f"1 of {NODES} nodes are at the target" in await shown(stage, "rollout", "status", "new-image")
    held = await shown(stage, "explain", "node", old()[0]["status"]["nodeName"])
    assert "by NodeRollout new-image: Soaking at step canary until" in held

    assert "its target is held until" in await shown(stage, "rollout", "abort", "new-image")
    await stage.until(is_stalled, 60, "it says that a person is needed")
    assert len(old()) == NODES - 1 and stage.tainted() == []

    assert "it goes to its last step at once" in await shown(stage, "rollout", "promote", "new-image")
    await stage.until(lambda: place() == ("rest", "Complete"), 240, "it is complete")
    await stage.until(lambda: not old() and stage.running_pods() == NODES, 120, "no node of before is left")
    assert not is_stalled()


async def test_a_policy_has_one_made_of_a_change_which_asks_a_person_before_the_rest_goes(stage: Stage) -> None:
    pool = node_pool([SMALL], budgets=[{"nodes": "100%"}])
    stage.world.apply(node_class())
    stage.world.apply(pool)
    stage.world.apply(POLICY)
    stage.deploy(NODES)
    stage.start_worker()
    await stage.until(lambda: stage.initialised(NODES) and stage.running_pods() == NODES, 120, "all pods run")
    before = {claim["metadata"]["uid"] for claim in stage.claims()}

    def made() -> list[Json]:
        return stage.world.objects("NodeRollout")

    def is_at(step: str, state: str) -> bool:
        place = [((each.get("status") or {}).get("step") or {}) for each in made()]
        return [(each.get("name"), each.get("state")) for each in place] == [(step, state)]

    def old() -> list[Json]:
        return [claim for claim in stage.claims() if claim["metadata"]["uid"] in before]

    def said(name: str) -> list[str]:
        return [each["reason"] for each in stage.world.objects("Event") if each["involvedObject"]["name"] == name]

    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    await stage.until(lambda: is_at("canary", "Awaiting"), 240, "the canary has soaked, and a person is asked")
    await stage.until(lambda: len(old()) == NODES - 1, 120, "the node that it replaced is gone")
    [rollout] = made()
    name, steps = rollout["metadata"]["name"], POLICY["spec"]["rollout"]["steps"]
    assert [(step["name"], step["to"]) for step in rollout["spec"]["steps"]] == [(s["name"], s["to"]) for s in steps]
    assert rollout["metadata"]["ownerReferences"][0]["name"] == "pool"
    stage.world.delete("DisruptionPolicy", "careful")

    other = {"step": "canary", "digest": "0-0-0-0-0", "by": "mallory", "at": "2026-11-26T09:14:00Z"}
    stage.world.patch("NodeRollout", name, {"spec": {"approval": other}})
    await stage.until(lambda: "ApprovalRefused" in said(name), 60, "an approval of something else is refused")
    assert "by mallory: refused, as it is of another target" in await shown(stage, "rollout", "status", name)
    assert len(old()) == NODES - 1 and is_at("canary", "Awaiting")

    words = await shown(stage, "rollout", "approve", name, "--yes")
    assert f"step rest: from 1 to 100%, {NODES - 1} more of {NODES} nodes are replaced" in words
    await stage.until(lambda: is_at("rest", "Complete"), 240, "it has a copy of the steps and goes on")
    assert not old() and "ApprovalAccepted" in said(name)

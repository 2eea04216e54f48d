"""The stories of the guide: "Steps", in which one node goes and the rest waits until a person promotes it, or approves
it where a policy made the roll-out, and "Stable and rollback"."""

import asyncio
import time

import pytest
import yaml

from dovetail.adapters.simulator.cloud.node_classes import GONE_IMAGES
from dovetail.adapters.simulator.play.kubelet import BREAKS_ON
from dovetail.disruption.upkeep.roll_out import NODES_UP_TO_DATE as UP_TO_DATE
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from tests.system.beside import beside
from tests.system.test_pauses import SMALL, shown
from worlds.stage.stage import Stage, deployment, has_condition, node_class, node_pool

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


@beside
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


IMAGES = dict[str, str]


@beside
async def test_an_image_that_breaks_pods_is_taken_back_and_no_pod_that_came_meanwhile_got_it(stage: Stage) -> None:
    def applied(image: str, gone: str = "") -> None:
        found = node_class()
        found["metadata"]["annotations"] = {GONE_IMAGES: gone}
        stage.world.apply({**found, "spec": {"image": image}})

    pool = node_pool([SMALL], budgets=[{"nodes": "100%"}])
    applied("image-1")
    stage.world.apply(pool)
    breaks = deployment(NODES)
    breaks["spec"]["template"]["metadata"]["annotations"] = {BREAKS_ON: "image-2"}
    stage.world.apply(breaks)
    worker = stage.start_worker()
    await stage.until(lambda: stage.initialised(NODES) and ready_pods(stage) == NODES, 120, "all pods are ready")

    def rollout() -> Json:
        found: Json = stage.world.get("NodeRollout", "new-image") or {}
        return found

    def state() -> str:
        return str(((rollout().get("status") or {}).get("step") or {}).get("state", ""))

    def images() -> IMAGES:
        return {claim["metadata"]["name"]: claim.get("status", {}).get("imageID", "") for claim in stage.claims()}

    def refused() -> list[Json]:
        events = stage.world.objects("Event")
        return [event for event in events if event["reason"] == "TargetRefused"]

    def is_a_second_old() -> bool:
        """Moments are whole seconds, and of a node of the same second nobody knows that it was there before."""
        return max(parse_time(claim["metadata"]["creationTimestamp"]) for claim in stage.claims()) + 1 <= time.time()

    await stage.until(is_a_second_old, 10, "the nodes are older than the roll-out will be")
    stage.world.apply({**ROLLOUT, "spec": {**ROLLOUT["spec"], "newLaunches": "Stable"}})
    applied("image-2")
    await stage.until(lambda: state() == "Soaking", 180, "the canary soaks")
    await stage.until(lambda: len(images()) == NODES, 120, "the node that it replaced is gone")
    (canary,) = [name for name, image in images().items() if image == "image-2"]
    assert has_condition(rollout(), "StablePinned")

    stage.world.scale("web", 2 * NODES)
    await stage.until(lambda: ready_pods(stage) == 2 * NODES - 1, 180, "all pods but the canary's are ready")
    assert [name for name, image in images().items() if image == "image-2"] == [canary]
    assert state() == "Soaking"  # what came meanwhile is neither a canary nor another target

    stage.kill(worker)
    assert "newest first" in await shown(stage, "rollout", "abort", "new-image", "--back")
    stage.start_worker()
    await stage.until(lambda: state() == "Failed", 240, "the node at the target is taken back")
    await stage.until(lambda: ready_pods(stage) == 2 * NODES, 120, "all pods are ready")
    assert set(images().values()) == {"image-1"} and len(images()) == 2 * NODES
    await stage.until(refused, 60, "the NodeClass has an Event")
    assert (refused()[0]["involvedObject"]["kind"], has_condition(rollout(), "Stalled")) == ("EmbeddedNodeClass", True)
    assert "Failed: a person asked for it" in await shown(stage, "rollout", "status", "new-image")
    held = next(
        c for c in (stage.world.get("NodePool", "pool") or {})["status"]["conditions"] if c["type"] == UP_TO_DATE
    )
    assert (held["status"], held["reason"]) == ("False", "RolloutBlocked")

    applied("image-2", gone="image-1")
    stage.world.scale("web", 2 * NODES + 1)
    fell = "the image of before is gone, and the pod has its node"
    await stage.until(lambda: list(images().values()).count("image-2") == 1, 120, fell)
    assert any(event["reason"] == "StableImageGone" for event in stage.world.objects("Event"))

    applied("image-1")
    await stage.until(lambda: state() == "Replacing", 120, "there is another target")
    assert "it goes to its last step" in await shown(stage, "rollout", "promote", "new-image")
    await stage.until(lambda: set(images().values()) == {"image-1"}, 240, "none has the refused image")
    assert len(images()) == 2 * NODES + 1 and not has_condition(rollout(), "Stalled")


@beside
async def test_a_change_back_to_the_image_of_an_earlier_roll_out_is_taken_back_as_any_other(stage: Stage) -> None:
    """The earlier one is complete and knows the target as the image of before it: it once made the refused node stay,
    while people were told that it had been taken back."""
    at_once = {"nodePool": "pool", "steps": [{"name": "all", "to": "100%", "soak": "0s"}]}
    pool = node_pool([SMALL], budgets=[{"nodes": "100%"}])
    stage.world.apply({**node_class(), "spec": {"image": "image-1"}})
    stage.world.apply(pool)
    stage.deploy(NODES)
    stage.start_worker()
    await stage.until(lambda: stage.initialised(NODES) and stage.running_pods() == NODES, 120, "all pods run")

    def state(name: str) -> str:
        found: Json = stage.world.get("NodeRollout", name) or {}
        return str(((found.get("status") or {}).get("step") or {}).get("state", ""))

    def images() -> list[str]:
        return sorted(claim.get("status", {}).get("imageID", "") for claim in stage.claims())

    stage.world.apply({**ROLLOUT, "metadata": {"name": "there"}, "spec": at_once})
    stage.world.apply({**node_class(), "spec": {"image": "image-2"}})
    await stage.until(lambda: state("there") == "Complete", 240, "the earlier one is complete")
    await stage.until(lambda: images() == ["image-2"] * NODES, 120, "all nodes have the second image")

    stage.world.apply({**ROLLOUT, "metadata": {"name": "back-again"}})
    stage.world.apply({**node_class(), "spec": {"image": "image-1"}})
    await stage.until(lambda: state("back-again") == "Soaking", 180, "the canary soaks")
    await stage.until(lambda: len(images()) == NODES, 120, "the node that it replaced is gone")
    assert images() == ["image-1", "image-2", "image-2"]

    assert "newest first" in await shown(stage, "rollout", "abort", "back-again", "--back")
    await stage.until(lambda: state("back-again") == "Failed", 240, "it says that it has been taken back")
    assert "image-1" not in images(), "which is so"
    await stage.until(lambda: images() == ["image-2"] * NODES, 120, "the image of before is back")
    assert "its nodes are taken back" in await shown(stage, "rollout", "history", "back-again")


def ready_pods(stage: Stage) -> int:
    return sum(has_condition(pod, "Ready") for pod in stage.world.objects("Pod"))


@beside
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
    file = stage.folder / "change.yaml"
    file.write_text(yaml.safe_dump(pool))
    planned = await shown(stage, "plan", "-f", str(file), "--local")
    assert "is made of it by DisruptionPolicy careful and goes by 2 steps, if its gates pass: canary, to 1" in planned
    assert f"then a person is asked, for 1d rest, to 100% ({NODES} nodes): from " in planned

    stage.world.apply(pool)
    await stage.until(lambda: is_at("canary", "Awaiting"), 240, "the canary has soaked, and a person is asked")
    await stage.until(lambda: len(old()) == NODES - 1, 120, "the node that it replaced is gone")
    [rollout] = made()
    name, steps = rollout["metadata"]["name"], POLICY["spec"]["rollout"]["steps"]
    assert [(step["name"], step["to"]) for step in rollout["spec"]["steps"]] == [(s["name"], s["to"]) for s in steps]
    assert rollout["metadata"]["ownerReferences"][0]["name"] == "pool"
    stage.world.delete("DisruptionPolicy", "careful")

    other = {"step": "canary", "digest": "0" * 60, "by": "mallory", "at": "2026-11-26T09:14:00Z"}
    stage.world.patch("NodeRollout", name, {"spec": {"approval": other}})
    await stage.until(lambda: "ApprovalRefused" in said(name), 60, "an approval of something else is refused")
    assert "by mallory: refused, as it is of another target" in await shown(stage, "rollout", "status", name)
    assert len(old()) == NODES - 1 and is_at("canary", "Awaiting")

    code, out, err = await stage.dovetail("status", "--check", "--local")
    assert code == 4 and f"dovetail rollout approve {name}" in out, (code, out, err)
    held = await shown(stage, "explain", "node", old()[0]["status"]["nodeName"], "--local")
    assert f"it goes with step rest (2 of 2) of NodeRollout {name} at the earliest" in held

    watch = asyncio.create_task(stage.dovetail("rollout", "status", name, "--watch", "--every", "1"))
    words = await shown(stage, "rollout", "approve", name, "--yes")
    assert f"step rest: from 1 to 100%, {NODES - 1} more of {NODES} nodes are replaced" in words
    await stage.until(lambda: is_at("rest", "Complete"), 240, "it has a copy of the steps and goes on")
    assert not old() and "ApprovalAccepted" in said(name)
    code, out, err = await watch
    assert (code, err) == (0, "") and "Complete at step rest" in out, (out, err)

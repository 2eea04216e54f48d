"""The story of a change: an image that breaks pods reaches one node and is undone; a good one reaches all.

A NodePool's DisruptionPolicy rolls every change out in steps: one node first, then, once a person approves and a window
opens, the rest. The worker is killed while the canary's pods fail, and nothing is lost, because only the object holds
how far a roll-out is. A service of one replica is in the way of it all, and gets requests all the time.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from dovetail.cli.demo.change_objects import (
    BROKEN,
    GOOD,
    NODES,
    ONE,
    POOL,
    budget,
    one_replica,
    opening_at,
    policies_that_guard_moves,
    policy,
    service,
)
from dovetail.cli.demo.embedded_stage import EmbeddedStage
from dovetail.cli.demo.performance import LOOK_SECONDS, Performance, has_condition
from dovetail.cli.demo.requests import Requests, ready_addresses
from dovetail.cli.output import say
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

WINDOW_STEP: Final = 60  # a policy's windows are written in minutes
NOTICE: Final = 3.0  # seconds: the window must be seen closed before it opens


@dataclass(slots=True)
class _Seen:
    name: str = ""
    step: str = ""
    state: str = ""
    stalled: bool = False


class ChangeStory(Performance):
    """A bad change, and a good one."""

    def __init__(self, stage: EmbeddedStage) -> None:
        super().__init__(stage)
        self.embedded = stage
        self.requests = Requests(stage, ONE)
        self.opens = 0.0  # when the window opens

    async def play(self) -> None:
        await self.open(self.node_pool(), policy(), *policies_that_guard_moves())
        await self.services_run()
        try:
            await self.a_broken_image_reaches_one_node()
            await self.it_is_taken_back()
            await self.a_good_image_reaches_all()
        finally:
            await self.requests.stop()
        await self.no_request_was_lost()
        self.close()

    async def services_run(self) -> None:
        """A pod on each of four nodes; the oldest, which a change reaches first, has the only pod of another
        service."""
        say("")
        self.say(f"SCENE 1. A service of {NODES} pods, one on each node; three of them must always run.")
        self.say(f"And {ONE}, of one replica under a PDB that lets nobody evict it: it says {names.MOVE}=restart.")
        for body in (*one_replica(), budget(), service(1)):
            await self.stage.apply(body)
        await self.until(lambda: self.all_ready(1), 60, "the first pods are ready")
        await self.until(self.one_is_asked, 60, f"{ONE} has an address")
        self.requests.start()
        await self.stage.apply(service(NODES))
        await self.until(lambda: self.all_ready(NODES), 90, "all pods are ready")
        self.say(f"{NODES} nodes, all of them launched with image-1")
        self.say("A DisruptionPolicy has each change go by steps: one node, a person's approval, then the rest.")

    async def a_broken_image_reaches_one_node(self) -> None:
        """The canary's pods crash, a scale-up gets the stable image, a worker dies."""
        say("")
        self.say(f"SCENE 2. The NodeClass gets {BROKEN}, on which the service crashes. Budgets would allow all nodes.")
        await self.set_image(BROKEN)
        await self.until(lambda: self.is_at("canary"), 60, "a NodeRollout is made of the change")
        await self.until(lambda: self.launched_with(BROKEN), 90, "one node is replaced")
        rollout = await self.rollout()
        self.say(f"NodeRollout {rollout.name}: one node has {BROKEN}, the others wait")
        self.say("the service is scaled up meanwhile, and the worker is killed (-9)")
        await self.stage.scale("shop", NODES + 1)
        self.kill_the_worker()
        await self.until(self.one_has_moved, 60, f"{ONE} leaves the node, and another pod of it is there before")
        self.say(f"{ONE} has moved to another node: {self.requests.served} requests served, {self.requests.lost} lost")
        await self.until(self.is_stalled, 170, "its gate fails: the service is not ready there, and elsewhere it is")
        await self.dovetail("rollout", "status", rollout.name)
        await self.until(lambda: self.all_ready(NODES), 60, "the pods elsewhere are ready")
        await self.hold(await self.images_ever() == {"image-1": NODES + 1, BROKEN: 1}, "one node got the broken image")
        self.asserted.append("the node that came meanwhile got the image of before")

    async def it_is_taken_back(self) -> None:
        """With one command; nobody has to change the NodeClass first."""
        say("")
        self.say("SCENE 3. It is taken back.")
        rollout = await self.rollout()
        await self.dovetail("rollout", "abort", rollout.name, "--back")
        await self.until(lambda: self.runs_only("image-1"), 120, "no node has the broken image")
        await self.until(lambda: self.all_ready(NODES + 1), 60, "all pods are ready")
        await self.hold((await self.images_ever())[BROKEN] == 1, f"no other node ever got {BROKEN}")
        self.say(f"all nodes have image-1 again, although the NodeClass still says {BROKEN}: the target is refused")

    async def a_good_image_reaches_all(self) -> None:
        """Canary, approval, the rest."""
        say("")
        self.say(f"SCENE 4. The NodeClass gets {GOOD}, which is good.")
        await self.set_image(GOOD)
        await self.until(self.awaits_approval, 150, "the canary has proved itself, a person is asked")
        rollout = await self.rollout()
        await self.hold((await self.images_ever())[GOOD] == 1, "nothing went on before the approval")
        await self.a_window_is_set()
        await self.dovetail("rollout", "approve", rollout.name, "--yes")
        await self.the_window_opens()
        await self.until(lambda: self.runs_only(GOOD), 120, f"all nodes have {GOOD}")
        await self.until(self.is_complete, 60, "the roll-out is complete")
        await self.dovetail("rollout", "history", rollout.name)
        self.asserted.append(f"after the approval all nodes have {GOOD}, and the roll-out is complete")

    async def a_window_is_set(self) -> None:
        """It opens at the next full minute that leaves time to see it closed first."""
        self.opens = (time.time() + NOTICE) // WINDOW_STEP * WINDOW_STEP + WINDOW_STEP
        await self.stage.apply(opening_at(self.opens))
        self.say(f"and nodes may leave for it from {format_time(self.opens)[11:16]} UTC on alone: a DisruptionPolicy")

    async def the_window_opens(self) -> None:
        """Even with approval no node begins before it opens."""
        await self.until(self.rest_is_permitted, 30, "the step is permitted")
        while time.time() < self.opens:
            if (await self.images_ever())[GOOD] > 1:
                await self.hold(time.time() >= self.opens, "approved, and no node began before the window opened")
            await asyncio.sleep(LOOK_SECONDS)
        self.asserted.append("approved, and no node began before the window opened")
        self.say("the window opens")

    async def no_request_was_lost(self) -> None:
        """Checked by the requests, and by every state that the EndpointSlice ever had."""
        asked, (without, states) = self.requests, self.requests.without_an_address()
        words = (
            f"{ONE} was asked {asked.served} times and answered by {len(asked.pods)} pods in turn; no request was lost"
        )
        await self.hold(asked.lost == 0 and asked.served > 0 and len(asked.pods) > 1, words)
        words = f"in each of the {states} states of its EndpointSlice there was a ready address"
        await self.hold(without == 0 and states > 1, words)
        evicted = [e for e in self.embedded.world.ledger() if e.operation == "cluster:evict" and f"/{ONE}-" in e.key]
        await self.hold(not evicted, "nobody evicted it")

    async def leave_running(self) -> None:
        say("")
        self.say("Everything stays until you press Ctrl-C.")
        self.how_to_look(str((await self.stage.objects("Node"))[0]["metadata"]["name"]))

    # What the story looks at

    async def rollout(self) -> _Seen:
        """The newest roll-out; an empty one if there is none."""
        found = await self.stage.objects("NodeRollout")
        if not found:
            return _Seen()
        newest = max(found, key=lambda each: str(each["metadata"]["creationTimestamp"]))
        step = (newest.get("status") or {}).get("step") or {}
        return _Seen(
            newest["metadata"]["name"], step.get("name", ""), step.get("state", ""), has_condition(newest, "Stalled")
        )

    async def is_at(self, step: str) -> bool:
        return (await self.rollout()).step == step

    async def is_stalled(self) -> bool:
        return (await self.rollout()).stalled

    async def awaits_approval(self) -> bool:
        return (await self.rollout()).state == "Awaiting"

    async def is_complete(self) -> bool:
        return (await self.rollout()).state == "Complete"

    async def rest_is_permitted(self) -> bool:
        return (await self.rollout()).step == "rest"

    async def one_is_asked(self) -> bool:
        return bool(ready_addresses(self.embedded.world.get("EndpointSlice", ONE) or {}))

    async def one_has_moved(self) -> bool:
        return len(self.requests.pods) > 1

    async def all_ready(self, count: int) -> bool:
        """Whether that many pods of the large service are ready."""
        pods = [pod for pod in await self.stage.objects("Pod") if pod["metadata"]["labels"]["app"] == "shop"]
        return sum(has_condition(pod, names.READY) for pod in pods) >= count

    async def launched_with(self, image: str) -> bool:
        return image in await self.images_ever()

    async def images_ever(self) -> dict[str, int]:
        """The number of instances ever launched with each image."""
        counts: dict[str, int] = {}
        for machine in self.embedded.world.instances():
            counts[machine.image] = counts.get(machine.image, 0) + 1
        return counts

    async def runs_only(self, image: str) -> bool:
        return {machine.image for machine in self.embedded.world.live_instances()} == {image}

    async def set_image(self, image: str) -> None:
        await self.stage.apply({**self.stage.manifests.node_class, "spec": {"image": image}})

    def node_pool(self) -> Json:
        """A NodePool whose budgets would let all nodes leave at once."""
        spec = {
            "nodeClassRef": self.stage.manifests.node_class_ref,
            "requirements": self.stage.manifests.requirements,
            "expireAfter": "720h",
        }
        disruption = {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "Never",
            "budgets": [{"nodes": "100%"}],
        }
        return {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": POOL},
            "spec": {"template": {"spec": spec}, "disruption": disruption},
        }

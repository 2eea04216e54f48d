"""Everything in flight on a simulated world: what holds each workflow in its phase, and how it is let go."""

from typing import Any, Final

from temporalio.client import Client

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.upgrade.crews import Crews
from tests.upgrade.flight import ENDED_SECONDS, REACHED_SECONDS, Flight
from tests.upgrade.scenes import (
    BEGINS_SETTLED,
    CLAIMLESS,
    DELETING,
    DETACHING,
    DRAINED_FIRST,
    DRAINING,
    GIVING_UP,
    HELD,
    INITIALISING,
    JOINING,
    LAUNCHING,
    LEAVING,
    LONG,
    MARKING,
    PAUSED,
    RELEASING,
    REPLACING,
    SCENES,
    SOLD_OUT,
    STOPS_SLOWLY,
    TAINTING,
    TERMINATING,
    UNDOING,
    WAITING,
    Scene,
    attachment,
    claims_of,
    deletes_claim,
    drift,
    is_launched,
    node_without_claim,
    node_without_its_taint,
    pod,
    pool,
)
from worlds.stage.stage import Stage, has_condition, node_class

ALWAYS: Final = 10**6  # more often than any step is tried
OTHERS: Final = "example.com/keeps"


class SimulatedFlight(Flight):
    """All scenes on one stage."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.cluster, SCENES)
        self.stage, self.world = stage, stage.world
        self.kept = ""  # the Node that others hold

    def crews(self) -> Crews:
        return Crews(
            start=lambda command, log, more: self.stage.start_installed(command, log, **more),
            client=self.client,
            folder=self.stage.folder,
            deployment=self.cluster,
        )

    async def client(self) -> Client:
        return await self.stage.client()

    async def claims(self) -> list[Json]:
        return self.stage.claims()

    async def run(self, command: tuple[str, ...]) -> tuple[int, str]:
        code, said, wrong = await self.stage.run_installed(command)
        return code, f"{said}\n{wrong}"

    async def evidence(self) -> str:
        return "\n".join(self.stage.evidence())

    async def doubles(self) -> dict[str, Any]:
        return {uid: count for uid, count in self.stage.instances_by_claim().items() if count != 1}

    async def left(self) -> list[str]:
        standing = [] if self.stage.nothing_left() else ["claims, nodes or instances"]
        return [*self.stage.tainted(), *standing]

    async def begun(self) -> list[str]:
        """No claim for the pod that came since, no delete of the node that a plan would take."""
        found = []
        if claims_of(self.stage, PAUSED):
            found.append("a claim was made for a pod that came during the pause")
        if any("deletionTimestamp" in c["metadata"] for c in claims_of(self.stage, HELD)) or not claims_of(
            self.stage, HELD
        ):
            found.append("the plan that was held was carried out during the pause")
        return found

    # Setting the scenes

    async def take_off(self) -> None:
        await self._settle()
        await self._what_waits()
        await self._what_leaves()
        await self._what_cannot_call()
        await self._what_cannot_write()
        await self._what_is_begun_under_a_pause()

    async def _settle(self) -> None:
        self.world.apply(node_class())
        slow = {scene.pool for scene in SCENES if scene.slow}
        for name in BEGINS_SETTLED:
            self.world.apply(pool(name, sleeps=name == MARKING.pool))
            self.world.apply(pod(name, slow=name in slow))
        count = len(BEGINS_SETTLED)

        async def settled() -> bool:
            return self.stage.running_pods() == count and self.stage.initialised(count)

        await self.until(settled, ENDED_SECONDS, f"{count} pods run, each on its node")

    async def _what_waits(self) -> None:
        """For replacements that never join; one has its replacement and drains. And launches that never join."""
        drift(self.stage, DRAINED_FIRST)
        await self.reach(DRAINED_FIRST)
        self.world.never_join()
        for scene in (WAITING, UNDOING):
            drift(self.stage, scene)
        await self.launch(JOINING, INITIALISING)

        async def launched() -> bool:
            return is_launched(self.stage, INITIALISING)

        await self.until(launched, REACHED_SECONDS, "an instance is launched")
        self.world.apply(node_without_its_taint(self.stage, INITIALISING))
        await self.reach(WAITING, JOINING, INITIALISING)

    async def launch(self, *scenes: Scene) -> None:
        """A pod that needs a node of its pool."""
        for scene in scenes:
            self.world.apply(pool(scene.pool))
            self.world.apply(pod(scene.pool))

    async def _what_leaves(self) -> None:
        """Claims that people delete, and a drifted, empty node: volumes stay on, pods and instances stop slowly."""
        self.world.set(shutdown=LONG)
        [detaching] = claims_of(self.stage, DETACHING.pool)
        self.world.apply(attachment(detaching["status"]["nodeName"]))
        self._keep_node(RELEASING)
        for scene in (DRAINING, DETACHING, TERMINATING, RELEASING):
            deletes_claim(self.stage, scene)
        self.world.apply(node_without_claim(CLAIMLESS.pool))
        stays = pod(CLAIMLESS.pool, slow=True)
        stays["spec"]["nodeName"] = CLAIMLESS.pool
        self.world.apply(stays)
        self.world.delete("Node", CLAIMLESS.pool)
        await self._drift_empty(LEAVING)
        await self.reach(DRAINING, DETACHING, TERMINATING, CLAIMLESS, LEAVING)

    def _keep_node(self, scene: Scene) -> None:
        """By the finalizer of others, beside ours."""
        self.kept = self._node_of(scene)
        self.world.patch("Node", self.kept, {"metadata": {"finalizers": [names.TERMINATION_FINALIZER, OTHERS]}})

    async def _drift_empty(self, scene: Scene) -> None:
        self.world.delete("Pod", scene.pool)

        async def gone() -> bool:
            return self.world.get("Pod", f"default/{scene.pool}") is None

        await self.until(gone, REACHED_SECONDS, f"the pod of {scene.pool} is gone")
        drift(self.stage, scene)

    async def _what_cannot_call(self) -> None:
        """No claim is deleted any more, then no instance launched, then no claim created."""
        self.world.fail("cluster:delete NodeClaim", "before", times=ALWAYS)
        self.world.sell_out(SOLD_OUT)
        await self.launch(GIVING_UP)
        await self._drift_empty(DELETING)
        await self.reach(GIVING_UP, DELETING)
        self.world.fail("cloud:launch", "before", times=ALWAYS)
        await self.launch(LAUNCHING)
        await self.reach(LAUNCHING)
        self.world.fail("cluster:create NodeClaim", "before", times=ALWAYS)
        drift(self.stage, REPLACING)
        await self.reach(REPLACING)

    async def _what_cannot_write(self) -> None:
        """No Node is written any more. Before that a plan is held, because it begins with no write."""
        self.world.apply(pool(MARKING.pool, "green", sleeps=True))

        async def ready() -> bool:
            [claim] = claims_of(self.stage, MARKING.pool)
            return has_condition(claim, names.DRIFTED)

        await self.until(ready, REACHED_SECONDS, "the node that will be marked has drifted")
        self.world.delete("Pod", HELD)

        async def held() -> bool:
            return bool((await self.scheduler())["held"])

        await self.until(held, REACHED_SECONDS, "a plan is held")
        # A slow drain lets the planner launch a node for the pod that leaves: then there are two.
        [released] = [c for c in claims_of(self.stage, RELEASING.pool) if "deletionTimestamp" in c["metadata"]]
        self.world.hasten(released["metadata"]["name"])
        await self.reach(RELEASING)
        self.world.fail("cluster:patch Node", "before", times=ALWAYS)
        drift(self.stage, MARKING)
        self.workflows[UNDOING.pool] = UNDOING.workflow_of(self.cluster, self.stage.claims())
        await self.operator("cancel", self._node_of(UNDOING), "--reason", "the drill")
        deletes_claim(self.stage, TAINTING)
        await self.reach(UNDOING, TAINTING, MARKING)

    def _node_of(self, scene: Scene) -> str:
        [claim] = [c for c in claims_of(self.stage, scene.pool) if c.get("status", {}).get("nodeName")]
        return str(claim["status"]["nodeName"])

    async def _what_is_begun_under_a_pause(self) -> None:
        await self.pause()
        self.world.apply(pool(PAUSED))
        self.world.apply(pod(PAUSED))

    # Landing

    async def land(self) -> None:
        self.world.mend()
        self.world.end_sell_outs()
        self.world.never_join(0)
        self.world.set(shutdown=0.2)
        self.world.hasten()
        self.world.patch("VolumeAttachment", "drill", {"metadata": {"finalizers": []}})
        self.world.patch("Node", self.kept, {"metadata": {"finalizers": []}})
        for scene in (*[s for s in SCENES if s.slow], CLAIMLESS):
            self.world.patch("Pod", scene.pool, {"metadata": {"annotations": {STOPS_SLOWLY: "0"}}})

    async def resume(self) -> None:
        """The pod that came during the pause runs, the plan that was held is carried out."""
        await self.operator("resume")

        async def went_on() -> bool:
            late = self.world.get("Pod", f"default/{PAUSED}") or {}
            return late.get("status", {}).get("phase") == "Running" and not claims_of(self.stage, HELD)

        await self.until(went_on, ENDED_SECONDS, "what was paused has gone on")

    async def clear(self) -> None:
        """All pods and pools go, and with them every node."""
        for body in self.world.objects("Pod"):
            self.world.delete("Pod", f"{body['metadata']['namespace']}/{body['metadata']['name']}")
        for body in self.world.objects("NodePool"):
            self.world.delete("NodePool", body["metadata"]["name"])

        async def cleared() -> bool:
            return self.stage.nothing_left()

        await self.until(cleared, ENDED_SECONDS, "no claim, node or instance is left")

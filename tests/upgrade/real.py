"""A third of the scenes on real servers: etcd and API server, AWS's API, Temporal."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.up import CLUSTER
from tests.cluster.system.scenes import NEVER, boot
from tests.upgrade.crews import Crews
from tests.upgrade.flight import ENDED_SECONDS, REACHED_SECONDS, Flight
from tests.upgrade.scenes import (
    DRAINED_FIRST,
    DRAINING,
    HELD,
    JOINING,
    LAUNCHING,
    PAUSED,
    TERMINATING,
    WAITING,
)
from worlds.cluster.ground import Ground
from worlds.cluster.objects import has_condition, is_tainted, node_pool
from worlds.manifests import pod_manifest

REAL_SCENES: Final = (JOINING, LAUNCHING, DRAINING, TERMINATING, WAITING, DRAINED_FIRST)
SETTLED: Final = (*(scene.pool for scene in REAL_SCENES if scene.settled), HELD)
PODS: Final = "/api/v1/namespaces/default/pods"
OPERATOR: Final = "an-operator"  # who types the commands


class RealFlight(Flight):
    """Those scenes on one set of servers, whose Temporal knows nothing yet."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(CLUSTER, REAL_SCENES)
        self.ground = ground

    def crews(self) -> Crews:
        return Crews(start=self._start, client=self.client, folder=self._folder, deployment="drill")

    @property
    def _folder(self) -> Path:
        return self.ground.everything.folder

    def _start(self, command: Sequence[str], log: str, more: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        (self._folder / log).unlink(missing_ok=True)  # of an earlier play
        everything = self.ground.everything
        changed = replace(everything, environment={**everything.environment, **more})
        worker = changed.start_worker(log, [*command, "worker"])
        self.ground.workers.append(worker)
        return worker

    async def client(self) -> Client:
        return self.ground.client

    async def claims(self) -> list[Json]:
        return await self.ground.claims()

    async def run(self, command: tuple[str, ...]) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **self.ground.environment_of(OPERATOR)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode()

    async def evidence(self) -> str:
        logs = [log.read_text(errors="replace").splitlines()[-25:] for log in self._folder.glob("worker-*.log")]
        return "\n".join([await self.ground.described(), *(line for lines in logs for line in lines)])

    async def doubles(self) -> dict[str, Any]:
        launched: dict[str, list[str]] = {}
        for instance in await self.ground.instances():
            launched.setdefault(instance["tags"].get(names.CLAIM_UID_TAG, ""), []).append(instance["id"])
        return {uid: ids for uid, ids in launched.items() if len(ids) != 1}

    async def left(self) -> list[str]:
        tainted = [n["metadata"]["name"] for n in await self.ground.nodes() if is_tainted(n)]
        return tainted if await self.ground.nothing_left() else [*tainted, await self.ground.described()]

    async def begun(self) -> list[str]:
        claims = await self.claims()
        found = ["a claim was made for a pod that came during the pause"] if of(claims, PAUSED) else []
        if not [c for c in of(claims, HELD) if "deletionTimestamp" not in c["metadata"]]:
            found.append("the plan that was held was carried out during the pause")
        return found

    # Setting the scenes

    async def take_off(self) -> None:
        await self.ground.until(self.ground.class_is_ready, 120, "the class is validated")
        for name in SETTLED:
            await self._wants_a_node(name)
        await self.until(lambda: self.ground.settled(len(SETTLED)), 180, f"{len(SETTLED)} pods run")
        self.ground.world({"bootSeconds": NEVER, "shutdownSeconds": NEVER})
        await self._drain_first()
        await self.ground.apply(no_eviction(DRAINING.pool))
        await self.ground.apply(pool(WAITING.pool, "green"))
        await self._wants_a_node(JOINING.pool)
        for scene in (DRAINING, TERMINATING):
            await self.ground.delete("NodeClaim", of(await self.claims(), scene.pool)[0]["metadata"]["name"])
        await self.reach(WAITING, JOINING, DRAINING, TERMINATING)
        refusal = {"op": "CreateFleet", "code": "InternalError", "status": 500, "dryRun": False}
        self.ground.world({"fail": [refusal]})
        await self._wants_a_node(LAUNCHING.pool)
        await self.reach(LAUNCHING)
        await self._hold()
        await self.pause()
        await self._wants_a_node(PAUSED)

    async def _drain_first(self) -> None:
        """A node whose pods may not be evicted would not be chosen: the budget comes once it is marked."""
        await self.ground.apply(pool(DRAINED_FIRST.pool, "green"))

        async def waits() -> bool:
            launched = [c for c in of(await self.claims(), DRAINED_FIRST.pool) if has_condition(c, names.LAUNCHED)]
            return await self.phase_of(DRAINED_FIRST) == WAITING.phase and len(launched) == 2

        await self.until(waits, REACHED_SECONDS, "the node that is drained first waits for its replacement")
        await self.ground.apply(no_eviction(DRAINED_FIRST.pool))
        await self._boot_all()
        await self.reach(DRAINED_FIRST)

    async def _boot_all(self) -> None:
        for claim in await self.claims():
            launched = "providerID" in claim.get("status", {})
            if launched and not has_condition(claim, names.REGISTERED_CONDITION):
                boot(self.ground, claim)

    async def _wants_a_node(self, name: str) -> None:
        await self.ground.apply(pool(name))
        answer = await self.ground.api.post(PODS, pod(name))
        assert answer.status == 201, answer.text

    async def _hold(self) -> None:
        await self.ground.api.delete(f"{PODS}/{HELD}")

        async def held() -> bool:
            return bool((await self.scheduler())["held"])

        await self.until(held, REACHED_SECONDS, "a plan is held")

    # Landing

    async def land(self) -> None:
        self.ground.world({"fail": [], "bootSeconds": 0, "shutdownSeconds": 1})
        await self._boot_all()
        for instance in await self.ground.instances():
            if instance["state"] == "shutting-down":
                self.ground.cloud.control("PATCH", f"instances/{instance['id']}", {"state": "terminated"})
        for scene in (DRAINING, DRAINED_FIRST):
            await self.ground.delete("PodDisruptionBudget", scene.pool)

    async def resume(self) -> None:
        await self.operator("resume")

        async def went_on() -> bool:
            late = (await self.ground.api.get(f"{PODS}/{PAUSED}")).body
            running = late.get("status", {}).get("phase") == "Running"
            return running and not of(await self.claims(), HELD)

        await self.until(went_on, ENDED_SECONDS, "what was paused has gone on")

    async def clear(self) -> None:
        # One goes on: the one that came last, because where workers are versioned its version has the work.
        self.ground.workers = [worker for worker in reversed(self.ground.workers) if worker.poll() is None]
        for body in await self.ground.objects("Pod"):
            await self.ground.api.delete(f"{PODS}/{body['metadata']['name']}")
        await self.ground.clear()


def of(claims: list[Json], name: str) -> list[Json]:
    """A pool's."""
    return [c for c in claims if c["metadata"]["labels"].get(names.NODE_POOL) == name]


def pool(name: str, colour: str = "blue") -> Json:
    """A pool of one instance type; only the one whose plan is held lets nodes go for being empty."""
    body = node_pool(colour=colour)
    body["metadata"]["name"] = name
    if name != HELD:
        body["spec"]["disruption"]["budgets"] = [{"nodes": "100%"}, {"nodes": "0", "reasons": ["Empty"]}]
    if name == DRAINED_FIRST.pool:
        body["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
    return body


def pod(name: str) -> Json:
    """Has a node of the pool of its name to itself."""
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "3", "memory": "512Mi"}}}
    return pod_manifest(name, {"app": name}, containers=[container], nodeSelector={names.NODE_POOL: name})


def no_eviction(name: str) -> Json:
    """A budget that refuses every eviction of that pool's pod."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
    }

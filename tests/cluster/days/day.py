"""What people and AWS do in a day, and what happens to workers and to Temporal's database."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from dovetail.messages.workflow_types import DISRUPT_NODES
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import no_eviction

TYPES: Final = ("m5.large", "m5.xlarge", "c5.xlarge", "c5.2xlarge")
POOLS: Final = ("left", "right")
WORKLOADS: Final = ("a", "b", "c")
SIZES: Final = ("250m", "700m", "1500m", "3")

Event = Callable[[], Awaitable[str]]


class Day:
    """The events of one day."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground, self.random = ground, random.Random(seed)
        self.wanted = dict.fromkeys(WORKLOADS, 0)
        self.colours = dict.fromkeys(POOLS, 0)
        self.budgets = dict.fromkeys(POOLS, "100%")
        self.sizes = {name: self.random.choice(SIZES) for name in WORKLOADS}
        self.held = False

    @property
    def events(self) -> list[tuple[int, Event]]:
        """What may happen, and how often."""
        return [
            (8, self.scale),
            (4, self.drift),
            (3, self.change_budget),
            (3, self.delete_a_claim),
            (2, self.delete_a_node),
            (2, self.delete_a_pod),
            (3, self.kill_an_instance),
            (3, self.warn_of_spot),
            (2, self.run_short),
            (2, self.boot_slowly),
            (3, self.kill_the_workers),
            (2, self.change_the_number_of_workers),
            (3, self.cancel_a_disruption),
            (1, self.terminate_a_workflow),
            (1, self.lose_the_database),
            (2, self.hold_evictions),
            (2, self.protect_a_pod),
        ]

    async def begin(self) -> None:
        """Two pools, three workloads."""
        for pool in POOLS:
            await self._apply_pool(pool)
        for name in WORKLOADS:
            await self._deploy(name, self.random.randint(1, 4))

    async def end(self) -> None:
        """What people and AWS held up goes on; workers run."""
        self.ground.world({"bootSeconds": 0, "ice": [], "fail": []})
        await self.ground.delete("PodDisruptionBudget", "web")
        for pod in await self.ground.objects("Pod"):
            if names.DO_NOT_DISRUPT in (pod["metadata"].get("annotations") or {}):
                await self._annotate(pod, None)
        for pool in POOLS:
            self.budgets[pool] = "100%"
            await self._apply_pool(pool)
        self.ground.ensure_workers()

    # What happens

    async def scale(self) -> str:
        name = self.random.choice(WORKLOADS)
        pods = self.random.choice((0, 1, 2, 3, 5, 8))
        await self._deploy(name, pods)
        return f"{name} has {pods} pods of {self.sizes[name]}"

    async def drift(self) -> str:
        pool = self.random.choice(POOLS)
        self.colours[pool] += 1
        await self._apply_pool(pool)
        return f"{pool} gets another template"

    async def change_budget(self) -> str:
        pool = self.random.choice(POOLS)
        self.budgets[pool] = self.random.choice(("0", "1", "2", "50%", "100%"))
        await self._apply_pool(pool)
        return f"{pool} lets {self.budgets[pool]} go"

    async def delete_a_claim(self) -> str:
        return await self._delete_one("NodeClaim", await self.ground.claims())

    async def delete_a_node(self) -> str:
        return await self._delete_one("Node", await self._registered())

    async def delete_a_pod(self) -> str:
        pods = await self.ground.objects("Pod")
        if not pods:
            return "no pod to delete"
        pod = self.random.choice(pods)["metadata"]["name"]
        await self.ground.api.delete(f"/api/v1/namespaces/default/pods/{pod}")
        return f"pod {pod} is deleted"

    async def kill_an_instance(self) -> str:
        live = await self.ground.live()
        if not live:
            return "no instance to end"
        identity = self.random.choice(live)
        self.ground.cloud.control("PATCH", f"instances/{identity}", {"state": "terminated"})
        joined = {n["spec"].get("providerID", "").rpartition("/")[2] for n in await self._registered()}
        if identity in joined and self.random.random() < 0.5:
            return f"AWS ends {identity} without a word"
        # One that has not joined is given 15 minutes where AWS does not say that it ended (GCR-2).
        notice = {"kind": "state", "state": "terminated"}
        await asyncio.to_thread(self.ground.cloud.control, "POST", f"instances/{identity}/interrupt", notice)
        return f"AWS ends {identity} and says so"

    async def warn_of_spot(self) -> str:
        claims = [c for c in await self.ground.claims() if c.get("status", {}).get("providerID")]
        if not claims:
            return "no spot node to warn of"
        claim = self.random.choice(claims)
        await self.ground.warn(claim)
        return f"AWS warns of {claim['metadata']['name']}"

    async def run_short(self) -> str:
        short = self.random.sample(TYPES, self.random.randint(0, 3))
        zones = (await asyncio.to_thread(self.ground.cloud.control, "GET", "world"))["zones"]
        pools = [
            {"instanceType": name, "zone": zone, "capacityType": kind}
            for name in short
            for zone in zones
            for kind in ("on-demand", "spot")
        ]
        self.ground.world({"ice": pools})
        return f"AWS is short of {short}"

    async def boot_slowly(self) -> str:
        seconds = self.random.choice((0, 0, 2, 5, 15))
        self.ground.world({"bootSeconds": seconds})
        return f"instances boot in {seconds} s"

    async def kill_the_workers(self) -> str:
        count = max(1, sum(1 for worker in self.ground.workers if worker.poll() is None))
        self.ground.kill_workers()
        pause = self.random.choice((0.0, 0.5, 8.0))
        await asyncio.sleep(pause)
        self.ground.ensure_workers(count)
        return f"{count} workers are killed and start again after {pause} s"

    async def lose_the_database(self) -> str:
        self.ground.kill_workers()
        await self.ground.lose_database()
        self.ground.ensure_workers()
        return "Temporal's database is lost"

    async def change_the_number_of_workers(self) -> str:
        count = self.random.choice((1, 2))
        self.ground.ensure_workers(count)
        return f"{count} workers"

    async def cancel_a_disruption(self) -> str:
        found = await self._a_workflow(f"WorkflowType = '{DISRUPT_NODES}' AND ExecutionStatus = 'Running'")
        if not found:
            return "no disruption to cancel"
        try:
            await self.ground.client.get_workflow_handle(found).signal("cancel", "a whim")
        except (RPCError, WorkflowFailureError) as error:
            return f"{found} ended before its cancel: {error}"
        return f"{found} is cancelled"

    async def terminate_a_workflow(self) -> str:
        found = await self._a_workflow("ExecutionStatus = 'Running'")
        if not found:
            return "no workflow to terminate"
        try:
            await self.ground.client.get_workflow_handle(found).terminate("a person's mistake")
        except RPCError as error:
            return f"{found} ended before: {error}"
        return f"{found} is terminated by a person"

    async def hold_evictions(self) -> str:
        self.held = not self.held
        if self.held:
            budget = no_eviction()
            budget["spec"]["selector"]["matchLabels"] = {"app": self.random.choice(WORKLOADS)}
            await self.ground.apply(budget)
            return f"evictions of {budget['spec']['selector']['matchLabels']['app']} are refused"
        await self.ground.delete("PodDisruptionBudget", "web")
        return "evictions are let through"

    async def protect_a_pod(self) -> str:
        pods = await self.ground.objects("Pod")
        if not pods:
            return "no pod to protect"
        pod = self.random.choice(pods)
        protected = names.DO_NOT_DISRUPT in (pod["metadata"].get("annotations") or {})
        await self._annotate(pod, None if protected else "true")
        return f"pod {pod['metadata']['name']} is {'free again' if protected else 'protected'}"

    # How

    async def _apply_pool(self, name: str) -> None:
        disruption = {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "2s",
            "budgets": [{"nodes": self.budgets[name]}],
        }
        pool = fleet_pool(name, colour=f"c{self.colours[name]}", types=TYPES, disruption=disruption)
        for requirement in pool["spec"]["template"]["spec"]["requirements"]:
            if requirement["key"] == names.CAPACITY_TYPE and name == "right":
                requirement["values"] = ["on-demand", "spot"]
        await self.ground.apply(pool)

    async def _deploy(self, name: str, pods: int) -> None:
        self.wanted[name] = pods
        await self.ground.apply(workload(name, "", pods, self.sizes[name]))

    async def _annotate(self, pod: Json, value: str | None) -> None:
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
        await self.ground.api.patch(path, {"metadata": {"annotations": {names.DO_NOT_DISRUPT: value}}})

    async def _delete_one(self, kind: str, among: list[Json]) -> str:
        if not among:
            return f"no {kind} to delete"
        name = self.random.choice(among)["metadata"]["name"]
        await self.ground.delete(kind, name)
        return f"{kind} {name} is deleted"

    async def _registered(self) -> list[Json]:
        """A claim that has not seen its node yet gives it 15 minutes to come, whoever took it away (LIF-43)."""
        return [n for n in await self.ground.nodes() if names.REGISTERED in n["metadata"]["labels"]]

    async def _a_workflow(self, query: str) -> str:
        found = [run.id async for run in self.ground.client.list_workflows(query)]
        return self.random.choice(sorted(found)) if found else ""

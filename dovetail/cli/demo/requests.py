"""Sends steady requests to a service of the story, at an address that its EndpointSlice calls ready."""

import asyncio
from contextlib import suppress
from typing import Final

import orjson

from dovetail.cli.demo.embedded_stage import EmbeddedStage
from dovetail.model.values.json import Json

EVERY_SECONDS: Final = 0.05
SLICES: Final = "EndpointSlice"


class Requests:
    """Sends requests to a service until it is stopped, and counts them."""

    def __init__(self, stage: EmbeddedStage, service: str) -> None:
        self.world, self.service = stage.world, service
        self.served = self.lost = 0
        self.pods = set[str]()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._ask_for_ever())

    async def stop(self) -> None:
        """Stop; raises the task's error if the world could not be read."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def without_an_address(self) -> tuple[int, int]:
        """How many states of the EndpointSlice since its first ready address had no ready one, and how many there were:
        by the world's ledger, which misses nothing."""
        states = [
            ready_addresses(orjson.loads(entry.detail))
            for entry in self.world.ledger()
            if entry.kind == SLICES and entry.key == f"default/{self.service}" and entry.operation == "cluster:patch"
        ]
        first = next((index for index, ready in enumerate(states) if ready), len(states))
        return sum(not ready for ready in states[first:]), len(states[first:])

    async def _ask_for_ever(self) -> None:
        while True:
            self._ask()
            await asyncio.sleep(EVERY_SECONDS)

    def _ask(self) -> None:
        ready = ready_addresses(self.world.get(SLICES, self.service) or {})
        pod = self.world.get("Pod", ready[0]["targetRef"]["name"]) if ready else None
        if pod is not None and pod["metadata"]["uid"] == ready[0]["targetRef"]["uid"] and _runs(pod):
            self.served += 1
            self.pods.add(pod["metadata"]["uid"])
        else:
            self.lost += 1


def ready_addresses(endpoints: Json) -> list[Json]:
    return [each for each in endpoints.get("endpoints") or [] if each["conditions"]["ready"]]


def _runs(pod: Json) -> bool:
    return bool(pod["status"]["phase"] == "Running")

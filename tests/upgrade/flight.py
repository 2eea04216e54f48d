"""What is in flight, and where it is: asked of the workflows themselves, on whatever cluster it flies."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowQueryFailedError
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from dovetail.messages.workflow_ids import scheduler_id
from dovetail.model.values.json import Json
from tests.upgrade.crews import Crews, Version
from tests.upgrade.scenes import Scene

# Bounds for a machine that is full of other work; on a calm one a tenth of each is enough.
REACHED_SECONDS: Final = 240.0
ENDED_SECONDS: Final = 300.0
ANSWER: Final = timedelta(seconds=30)
LATE: Final = {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED}  # how the SDK calls a query that ran out
LOOK_SECONDS: Final = 0.5
PHASE: Final = SearchAttributeKey.for_keyword("DovetailPhase")  # its name is stored, whatever module has it


class Flight(ABC):
    """All scenes of one cluster, and the workflows that play in them."""

    def __init__(self, cluster: str, scenes: tuple[Scene, ...]) -> None:
        self.cluster, self.scenes = cluster, scenes
        self.version: Version | None = None  # whose command line an operator has
        self.workflows: dict[str, str] = {}  # by scene
        self.paused = False

    # What differs from cluster to cluster

    @abstractmethod
    def crews(self) -> Crews:
        """The workers, none as yet."""

    @abstractmethod
    async def client(self) -> Client:
        """Of its Temporal server."""

    @abstractmethod
    async def claims(self) -> list[Json]:
        """All NodeClaims."""

    @abstractmethod
    async def run(self, command: tuple[str, ...]) -> tuple[int, str]:
        """A command line as an operator types it: its exit code, and all that it said."""

    @abstractmethod
    async def take_off(self) -> None:
        """Every scene in its phase, a plan held, all paused, and a pod that waits for the end of the pause."""

    @abstractmethod
    async def begun(self) -> list[str]:
        """What has begun although all is paused."""

    @abstractmethod
    async def land(self) -> None:
        """What holds the scenes is taken away; all of them end while the pause goes on."""

    @abstractmethod
    async def resume(self) -> None:
        """The pause ends, and what it held back comes about."""

    @abstractmethod
    async def clear(self) -> None:
        """All goes."""

    @abstractmethod
    async def doubles(self) -> dict[str, Any]:
        """Claims for which not exactly one instance was launched, by UID."""

    @abstractmethod
    async def left(self) -> list[str]:
        """What is tainted or left where nothing should be."""

    @abstractmethod
    async def evidence(self) -> str:
        """How things stand, for the reader of a failure."""

    # Looking

    async def until(self, look: Callable[[], Awaitable[object]], seconds: float, words: str) -> None:
        """Until the answer is true."""
        deadline = time.monotonic() + seconds
        while not await look():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"within {seconds:.0f} s it did not come about that {words}\n{await self.evidence()}"
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def phase_of(self, scene: Scene) -> str:
        """What the scene's workflow says of itself; asking replays it on the worker that answers. Empty: not yet."""
        identity = self.workflows.get(scene.pool) or scene.workflow_of(self.cluster, await self.claims())
        if not identity:
            return ""
        handle = (await self.client()).get_workflow_handle(identity)
        try:
            if scene.owner == "node":
                await handle.query("__stack_trace", rpc_timeout=ANSWER)
                return str((await handle.describe()).typed_search_attributes.get(PHASE) or "")
            return str(await handle.query("status", rpc_timeout=ANSWER))
        except RPCError as error:
            if error.status in {RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION}:
                return ""
            raise

    async def phase_in_time(self, scene: Scene) -> str:
        """The same while it is being reached: a worker that is slow to answer is asked again."""
        try:
            return await self.phase_of(scene)
        except RPCError as error:
            if error.status in LATE:
                return "no answer yet"
            raise

    async def told_of(self, scene: Scene) -> str:
        """The same for a table: a workflow that cannot be replayed has an error in place of its phase."""
        try:
            return await self.phase_of(scene)
        except (RPCError, WorkflowQueryFailedError) as error:
            return f"{type(error).__name__}: {error}"[:300]

    async def reach(self, *scenes: Scene) -> None:
        """Until each is in its phase."""
        seen: dict[str, str] = {}

        async def all_there() -> bool:
            for scene in scenes:
                seen[scene.pool] = await self.phase_in_time(scene)
            return all(seen[scene.pool] == scene.phase for scene in scenes)

        try:
            await self.until(all_there, REACHED_SECONDS, f"{[s.pool for s in scenes]} are in their phases")
        except AssertionError as error:
            raise AssertionError(f"{seen}: {error}") from None
        claims = await self.claims()
        for scene in scenes:
            self.workflows[scene.pool] = scene.workflow_of(self.cluster, claims)

    async def scheduler(self) -> dict[str, Any]:
        """What the Scheduler knows."""
        handle = (await self.client()).get_workflow_handle(scheduler_id(self.cluster))
        found: dict[str, Any] = await handle.query("status", rpc_timeout=ANSWER)
        return found

    async def not_ended(self) -> dict[str, str]:
        """The scenes whose workflow, whatever type it has become, has not completed in time; and what they are at."""
        client, deadline, late = await self.client(), time.monotonic() + ENDED_SECONDS, list(self.scenes)
        while late and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
            found = {s: await client.get_workflow_handle(self.workflows[s.pool]).describe() for s in late}
            late = [scene for scene, run in found.items() if run.status != WorkflowExecutionStatus.COMPLETED]
        return {scene.pool: f"did not end: {await self.told_of(scene)}" for scene in late}

    # What people do

    async def operator(self, *arguments: str) -> str:
        """What an operator types, with the command of the version that they have."""
        assert self.version is not None
        code, said = await self.run((*self.version.command, *arguments))
        assert code == 0, f"dovetail {' '.join(arguments)}: {said}"
        return said

    async def pause(self) -> None:
        """Nothing new is to begin."""
        await self.operator("pause", "all", "--reason", "the drill")
        self.paused = True
        await self.until(self._has_acted, REACHED_SECONDS, "the pause has stopped what was about to begin")

    async def _has_acted(self) -> bool:
        """A pause is read by steps that are being tried too: no mark is put any more, a replacement that was
        not created yet is not wanted, and a plan is dropped at its second look, to be made anew after the resume."""
        stopped = [await self.phase_in_time(s) == s.paused_phase for s in self.scenes if s.paused_phase]
        return all(stopped) and not (await self.scheduler())["held"]

    def expected(self, scene: Scene) -> str:
        """The phase in which it stands as long as the pause lasts."""
        return (self.paused and scene.paused_phase) or scene.phase

"""Workers of one version, and the ways in which those of another take their place.

Two workers make a crew, as a Deployment of two pods. A worker that is replaced is asked to stop and has its grace, as a
pod has; where the test says so it is killed. With versions that Temporal knows (Worker Versioning), the old crew stays
until nothing is left that began on it, as the controller does it.
"""

import asyncio
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.api.workflowservice.v1 import (
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client

from tests.waiting import until_version_is_known

CREW = 2
GRACE_SECONDS = 45.0
SERVING_SECONDS = 240.0
LOOK_SECONDS = 0.2
RAMP = (20.0, 60.0)  # per cent of what is new, before the version becomes the current one


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of the product, as it is installed and started."""

    name: str
    command: tuple[str, ...]  # the command line up to the sub-command
    build: str = ""  # where workers are versioned
    more: tuple[tuple[str, str], ...] = ()  # of its environment

    def variables(self, deployment: str) -> dict[str, str]:
        """Its own, and what the controller puts into a worker's environment."""
        if not self.build:
            return dict(self.more)
        return {**dict(self.more), "TEMPORAL_DEPLOYMENT_NAME": deployment, "TEMPORAL_WORKER_BUILD_ID": self.build}


@dataclass(kw_only=True)
class Worker:
    """A worker's process, and what it has said so far."""

    process: "subprocess.Popen[bytes]"
    log: Path

    async def serves(self) -> None:
        """Until it serves."""
        deadline = time.monotonic() + SERVING_SECONDS
        while "serving cluster" not in self.said():
            assert self.process.poll() is None, f"a worker ended with {self.process.returncode}: {self.said()[-2000:]}"
            assert time.monotonic() < deadline, f"a worker does not serve: {self.said()[-2000:]}"
            await asyncio.sleep(LOOK_SECONDS)

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    async def leave(self, with_signal: int) -> None:
        """Stop it, and wait until it is gone."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
            code = await asyncio.to_thread(self.process.wait, GRACE_SECONDS)
            assert code == (0 if with_signal == signal.SIGTERM else -with_signal), (
                f"it ended with {code}: {self.said()[-2000:]}"
            )


# Starts a worker by its command line, into a log file of that name, with these variables.
Start = Callable[[Sequence[str], str, Mapping[str, str]], "subprocess.Popen[bytes]"]


@dataclass(kw_only=True)
class Crews:
    """All workers of one cluster, by the version that they are of."""

    start: Start
    client: Callable[[], Awaitable[Client]]
    folder: Path
    deployment: str
    there: dict[str, list[Worker]] = field(default_factory=dict)
    ever: dict[str, list[Worker]] = field(default_factory=dict)
    started: int = 0
    current: str = ""  # the build that new work goes to

    async def come(self, version: Version, count: int = CREW) -> None:
        """So many more workers of a version, until they serve."""
        new = [self._one(version) for _ in range(count)]
        self.there.setdefault(version.name, []).extend(new)
        self.ever.setdefault(version.name, []).extend(new)
        await asyncio.gather(*[worker.serves() for worker in new])

    async def go(self, version: Version, count: int = CREW, with_signal: int = signal.SIGTERM) -> None:
        """So many workers of a version stop."""
        crew = self.there.get(version.name, [])
        leaving, crew[:] = crew[:count], crew[count:]
        await asyncio.gather(*[worker.leave(with_signal) for worker in leaving])

    def processes_of(self, version: str) -> set[str]:
        """The numbers of all processes that ever were of that version."""
        return {str(worker.process.pid) for worker in self.ever.get(version, [])}

    def _one(self, version: Version) -> Worker:
        self.started += 1
        name = f"worker-{self.started}-{version.name}.log"
        process = self.start(version.command, name, version.variables(self.deployment))
        return Worker(process=process, log=self.folder / name)

    async def route(self, version: Version) -> None:
        """The version that new work goes to; one without a build stands for workers that are not versioned."""
        service, namespace = (await self.client()).workflow_service, (await self.client()).namespace
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=namespace,
            deployment_name=self.deployment,
            build_id=version.build,
            ignore_missing_task_queues=True,
        )
        await until_version_is_known(lambda: service.set_worker_deployment_current_version(request))
        self.current = version.build

    async def ramp(self, version: Version, share: float) -> None:
        """A share of what is new goes to that version."""
        service, namespace = (await self.client()).workflow_service, (await self.client()).namespace
        request = SetWorkerDeploymentRampingVersionRequest(
            namespace=namespace,
            deployment_name=self.deployment,
            build_id=version.build,
            percentage=share,
            ignore_missing_task_queues=True,
        )
        await until_version_is_known(lambda: service.set_worker_deployment_ramping_version(request))


Swap = Callable[[Crews, Version, Version], Awaitable[None]]
BOTH_SERVE_SECONDS = 8.0


async def all_at_once(crews: Crews, before: Version, after: Version) -> None:
    """The old ones stop, then the new ones start."""
    await crews.go(before)
    await crews.come(after)


async def killed(crews: Crews, before: Version, after: Version) -> None:
    """The same with kill -9: nothing is handed over."""
    await crews.go(before, with_signal=signal.SIGKILL)
    await crews.come(after)


async def rolling(crews: Crews, before: Version, after: Version) -> None:
    """One new worker comes before an old one goes; for a while both versions serve."""
    for _ in range(CREW):
        await crews.come(after, 1)
        await asyncio.sleep(BOTH_SERVE_SECONDS)  # a stretch of time in which either may get any task
        await crews.go(before, 1)


async def killed_in_the_middle(crews: Crews, before: Version, after: Version) -> None:
    """Nobody is asked to stop: the old ones are killed while both versions serve, and so is each that has just come."""
    for _ in range(CREW):
        await crews.come(after, 1)
        await asyncio.sleep(BOTH_SERVE_SECONDS)  # a stretch of time in which either may get any task
        await crews.go(before, 1, signal.SIGKILL)
        await crews.there[after.name][-1].leave(signal.SIGKILL)
        crews.there[after.name].pop()
        await crews.come(after, 1)


async def versioned(crews: Crews, before: Version, after: Version) -> None:
    """More and more of what is new goes to the new version. The old one's workers stay, for what is pinned to it;
    those that are not versioned go at once."""
    if after.name not in crews.there or not crews.there[after.name]:
        await crews.come(after)
    if after.build:
        for share in RAMP:
            await crews.ramp(after, share)
    await crews.route(after)
    if not before.build:
        await crews.go(before)


async def ramped(crews: Crews, before: Version, after: Version) -> None:
    """By the ramp alone: all of what is new goes to the new version, which does not become the current one; the way
    back is the ramp's end."""
    if after.build == crews.current:
        await crews.ramp(before, 0.0)
        return
    await crews.come(after)
    for share in (*RAMP, 100.0):
        await crews.ramp(after, share)


WAYS: dict[str, Swap] = {
    "all at once": all_at_once,
    "killed": killed,
    "killed in the middle": killed_in_the_middle,
    "ramped": ramped,
    "rolling": rolling,
    "versioned": versioned,
}

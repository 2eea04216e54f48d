"""One set of servers on which specs run, one after another.

What the suites find in a cluster of their own is played here: kubelets by the test bed's kwok, Karpenter by a worker
whose cloud is kwok. Each spec is a process of the suite's program, so that none takes another with it; one that fails
may leave things behind, so that the servers after it are new.
"""

import asyncio
import os
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from dovetail.answers.failures import CommandFailed
from testbed.peer.specs import Outcome, focus, outcome
from testbed.plane import ApiClient, PlaneError, PlaneSettings
from testbed.up import ROOT, WORKER_USER, Everything, give_rights, start, stop, with_worker

NODE_POOL: Final = Path(__file__).parent / "nodepool.yaml"
_PLAYED: Final = "kwok.x-k8s.io/node=fake"  # as the cloud kwok marks its Nodes
# Heartbeats of a busy machine, as long as four of its own are late; the rest as the suites' own cluster has it.
_PLANE: Final = PlaneSettings(node_grace_seconds=16, played_label=_PLAYED, played_annotation=_PLAYED)
# The gates with which the suites are run upstream (its Makefile).
_SETTINGS: Final = {
    "DOVETAIL_CLOUD": "kwok",
    "FEATURE_GATES": "NodeRepair=true,CapacityBuffer=true,StaticCapacity=true",
}
# The longest spec waits for 17 minutes; the suites' own limit for whatever they await is 15.
_LONGEST_MINUTES: Final = 40


_STARTS: Final = 3
_ALONE: Final = "Chaos "  # each of these specs listens on port 8080, which the suite takes without asking


@dataclass(slots=True, kw_only=True)
class Lane:
    """Servers and a worker; started when they are first needed."""

    folder: Path
    program: Path
    port: asyncio.Lock  # one for all lanes: 8080
    _everything: Everything | None = None

    async def play(self, spec: str) -> Outcome:
        """Run one spec."""
        everything = self._everything or await self._started()
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        begun = time.time()
        log = self.folder / "spec.log"
        async with self.port if spec.startswith(_ALONE) else nullcontext():
            await self._run(everything, spec, report, log)
        found = outcome(report, spec) if report.exists() else None
        if found is None:
            day = time.strftime("%Y-%m-%d", time.gmtime(begun))
            why = "its process ended without a report of it"
            found = Outcome(spec=spec, passed=False, seconds=round(time.time() - begun), day=day, why=why)
        if not found.passed:
            self._keep(spec)
            await self.close()
        return found

    async def close(self) -> None:
        """Stop whatever runs."""
        self._everything = None
        await stop(self.folder)

    async def _started(self) -> Everything:
        """On a busy machine a worker may be ready too late; then everything restarts, a few times."""
        for last in range(1 - _STARTS, 1):
            try:
                return await self._start()
            except (PlaneError, CommandFailed):
                await self.close()
                if not last:
                    raise
        raise AssertionError("it has started or raised")

    async def _start(self) -> Everything:
        everything = await start(self.folder, worker=False, settings=_PLANE)
        async with ApiClient(everything.plane.kubeconfig, user_agent="peer") as api:
            roles = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/kwok.yaml").read_text()))
            await give_rights(api, WORKER_USER, roles)
        environment = {**everything.environment, **_SETTINGS}
        self._everything = await with_worker(replace(everything, environment=environment))
        return self._everything

    async def _run(self, everything: Everything, spec: str, report: Path, log: Path) -> None:
        with log.open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                str(self.program),
                f"-ginkgo.focus={focus(spec)}",
                f"-ginkgo.json-report={report}",
                f"-ginkgo.timeout={_LONGEST_MINUTES}m",
                "-test.timeout=0",
                f"-default-nodepool={NODE_POOL}",
                cwd=self.folder,
                env={**os.environ, "KUBECONFIG": str(everything.plane.kubeconfig)},
                stdout=said,
                stderr=said,
            )
            try:  # Ginkgo ends by itself at its limit
                await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    def _keep(self, spec: str) -> None:
        """Keep the logs of a failure before the next start removes them."""
        kept = self.folder.parent / "failed" / "".join(c if c.isalnum() else "-" for c in spec)[:120]
        kept.mkdir(parents=True, exist_ok=True)
        for name in ("spec.log", "worker.log"):
            if (self.folder / name).exists():
                (self.folder / name).replace(kept / name)
        audit = self.folder / "plane" / "audit.log"
        if audit.exists():
            audit.replace(kept / "audit.log")

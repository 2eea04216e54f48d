"""What the demo's stories share: a stage with a worker, asserted facts, and words for a reader."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dovetail.answers.failures import CommandFailed
from dovetail.cli.demo.stage import Stage
from dovetail.cli.output import say
from dovetail.model import names
from dovetail.model.values.json import Json

LOOK_SECONDS = 0.1
SPEAK_SECONDS = 5.0  # a wait longer than this says that it continues


class Performance:
    """One performance of a story. The first assertion that fails ends it with an error."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.started = time.monotonic()
        self.asserted: list[str] = []
        self.worker: subprocess.Popen[bytes] | None = None

    async def play(self) -> None:
        raise NotImplementedError

    async def leave_running(self) -> None:
        """Leave something to look at, and say how."""
        raise NotImplementedError

    async def open(self, *objects: Json) -> None:
        """Start servers and a worker, apply these objects, and say how to follow."""
        for line in await self.stage.prepare():
            self.say(line)
        self.worker = self.stage.start_worker()
        self.say(f"a worker, process {self.worker.pid}, for cluster {self.stage.cluster}")
        self.say(f"look on: {self.stage.temporal_binary} workflow list --address {self.stage.temporal_address}")
        await self.stage.apply(self.stage.manifests.node_class)
        for body in objects:
            await self.stage.apply(body)
        await self.until(self.pool_ready, 90, "the NodePool is ready")
        self.say("the NodePool is ready")

    def close(self) -> None:
        self.say("what was asserted, on the objects and on the cloud's ledger:")
        for fact in self.asserted:
            say(f"           - {fact}")
        self.say("done")

    async def pool_ready(self) -> bool:
        return all(has_condition(pool, names.READY) for pool in await self.stage.objects("NodePool"))

    async def running(self, count: int) -> bool:
        pods = await self.stage.objects("Pod")
        return sum(1 for p in pods if p.get("status", {}).get("phase") == "Running") >= count

    def kill_the_worker(self) -> None:
        """Kill it without warning, and start another."""
        assert self.worker is not None
        self.worker.kill()
        self.worker.wait()
        self.worker = self.stage.start_worker()
        self.say(f"another worker, process {self.worker.pid}; the killed one's steps are taken up within about 10 s")

    def say(self, text: str) -> None:
        say(f"[{time.monotonic() - self.started:6.1f} s] {text}")

    async def hold(self, fact: bool, words: str) -> None:
        if not fact:
            raise CommandFailed(f"the demo failed: it does not hold that {words}")
        self.asserted.append(words)

    async def until(self, look: Callable[[], Awaitable[Any]], seconds: float, words: str) -> Any:
        deadline = time.monotonic() + seconds
        speaks = time.monotonic() + SPEAK_SECONDS
        while True:
            found = await look()
            if found:
                return found
            if self.worker is not None and self.worker.poll() is not None:
                raise CommandFailed(f"the demo failed: the worker ended with {self.worker.returncode}; see worker.log")
            if time.monotonic() > speaks:
                self.say(f"  … waiting: {words}; at most {deadline - time.monotonic():.0f} s more")
                speaks += SPEAK_SECONDS
            if time.monotonic() > deadline:
                raise CommandFailed(f"the demo failed: within {seconds:.0f} s it did not come about that {words}")
            await asyncio.sleep(LOOK_SECONDS)

    async def dovetail(self, *arguments: str) -> None:
        """Run the command as a person would, and show its output."""
        self.say(f"$ dovetail {' '.join(arguments)}")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dovetail.cli.main", *arguments),
            env={**os.environ, **self.stage.looks_by()},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise CommandFailed(f"dovetail {' '.join(arguments)}: {output.decode().strip()}")
        for line in output.decode().splitlines():
            say(f"           {line}")

    async def temporal(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            str(self.stage.temporal_binary),
            *arguments,
            "--address",
            self.stage.temporal_address,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise CommandFailed(f"temporal {' '.join(arguments)}: {output.decode().strip()}")

    def how_to_look(self, node: str) -> None:
        """The commands to try while it is left running."""
        set_by = " ".join(f"{name}={value}" for name, value in self.stage.looks_by().items())
        web_ui = f"Web UI: {self.stage.temporal_ui}" if self.stage.temporal_ui else ""
        lines = ["source .venv/bin/activate", f"export {set_by}", "dovetail status", f"dovetail explain node {node}"]
        lines += [f"dovetail history {node}", f"dovetail cancel {node} --reason 'not now'", "dovetail doctor"]
        lines += ["dovetail top", "dovetail top --web"]
        say("\n".join(["", *(f"    {line}" for line in lines), "", f"    {web_ui}"]))


def has_condition(body: Json, kind: str) -> bool:
    conditions = body.get("status", {}).get("conditions") or []
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)

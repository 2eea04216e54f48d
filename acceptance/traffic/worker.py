"""The product's worker as a process, in the environment that a case declares.

A worker that refuses to start is reported, not raised, because some cases expect it.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from acceptance.traffic.lane import Lane
from dovetail.cli.demo.temporal_server import stop_process
from worlds.loaded.processes import start_process

SERVING: Final = "serving cluster"
START_SECONDS: Final = 150.0  # three alone
_STEERING: Final = ("TEMPORAL_", "DOVETAIL_", "AWS_", "KUBECONFIG")

# The README's usual settings; everything else is the product's default.
USUAL: Final = {
    "CLUSTER_NAME": "dovetail",
    "CLUSTER_ENDPOINT": "https://cluster.example",
    "CLUSTER_CA_BUNDLE": "Y2EtYnVuZGxl",
    "INTERRUPTION_QUEUE": "dovetail",
    "AWS_REGION": "us-west-2",
    "VM_MEMORY_OVERHEAD_PERCENT": "0.075",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
UNSET: Final = "~"


def environment(lane: Lane, temporal: str, declared: dict[str, Any]) -> dict[str, str]:
    """What the worker is given: the usual settings, changed as the case says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_STEERING)}
    given = {
        **USUAL,
        "KUBECONFIG": str(lane.kubeconfig),
        "TEMPORAL_ADDRESS": temporal,
        "AWS_ENDPOINT_URL": lane.cloud.endpoint,
    }
    for name, value in declared.items():
        if value is None or value == UNSET:
            given.pop(name, None)
        else:
            given[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return {**kept, **given}


@dataclass(slots=True)
class PlayedWorker:
    """One worker at a time, started again where a case says so."""

    environment: dict[str, str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    async def start(self) -> bool:
        """Whether it came to serve; False where it ended of itself."""
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "dovetail.cli.main", "worker"]
            self.process = start_process(command, self.environment, log)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if SERVING.encode() in self.log.read_bytes()[before:]:
                return True
            if self.process.poll() is not None:
                return False
            await asyncio.sleep(0.05)
        raise RuntimeError(f"the worker does not serve after {START_SECONDS:.0f} s: {self.last_words()}")

    async def stop(self, with_signal: int = signal.SIGTERM) -> None:
        """End it: as an operator would, or at once where its end is not looked at."""
        if self.process is not None:
            await asyncio.to_thread(stop_process, self.process, with_signal)
        self.process = None

    def last_words(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return lines[-1][:300] if lines else "it said nothing"

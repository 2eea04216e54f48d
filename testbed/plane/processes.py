"""Starts processes, knows whether they still run, and ends them.

A process id alone is not an identity: it may be given to another process after ours has gone. So each is kept with the
moment it began, and nothing is signalled that does not match both.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.02
KILL_SECONDS = 5.0  # after SIGKILL; only a process stuck in the kernel takes longer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process id and the moment its process began, in the system's own notation."""

    pid: int
    began: str

    def is_running(self) -> bool:
        return _began(self.pid) == self.began


def identify(pid: int) -> ProcessIdentity | None:
    """None when there is no such process (any more)."""
    began = _began(pid)
    return None if began is None else ProcessIdentity(pid=pid, began=began)


def spawn(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process that outlives its starter: a session of its own, its output in a file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


async def stop_process(process: ProcessIdentity, grace_seconds: float) -> None:
    """SIGTERM, then SIGKILL; returns when it has gone, and raises TimeoutError should even that not help."""
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, KILL_SECONDS)):
        if not _signal(process, number) or await _gone_within(process, seconds):
            return
    raise TimeoutError(f"process {process.pid} does not end")


async def kill_process(process: ProcessIdentity) -> None:
    """SIGKILL at once; returns when it has gone."""
    if _signal(process, signal.SIGKILL) and not await _gone_within(process, KILL_SECONDS):
        raise TimeoutError(f"process {process.pid} does not end")


def _signal(process: ProcessIdentity, number: signal.Signals) -> bool:
    if not process.is_running():
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


async def _gone_within(process: ProcessIdentity, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not process.is_running():
            return True
        await asyncio.sleep(POLL_SECONDS)
    return False


def _began(pid: int) -> str | None:
    """None for a process that has ended, also when its parent has not yet asked for its exit status."""
    if Path("/proc/self/stat").exists():
        try:
            # The second field is the program's name in parentheses and may hold anything; what follows is regular.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = answer.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else began.strip()

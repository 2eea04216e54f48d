"""Starts and stops an AWS server for a Python program.

`CloudServer.start(folder, …)` returns when the server answers; several run side by side, each with its own folder and
port. A process id may be given to another process later, so before anything is killed its command line is read.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.cloud.json_object import Json

ROOT = Path(__file__).resolve().parents[2]
READY_WITHIN = 60.0  # 1.5 s alone; a loaded machine takes longer
GONE_WITHIN = 10.0


class CloudError(RuntimeError):
    """The server did not start, or refused a control request; the message says why."""


def _start(module: str, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # it outlives the command that started it, and its Ctrl-C
        )


def _is_ours(pid: int) -> bool:
    try:
        return b"testbed.cloud" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _ended(pid: int) -> bool:
    try:  # our child's exit code is taken, so that it does not linger, and what it cost is counted
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # someone else's child, which is what `make down` sees
        return not _is_ours(pid)


def stop_processes(pids: list[int]) -> None:
    """Ask each to end, then insist. Ids that are no longer ours are left alone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            if _is_ours(pid):
                os.kill(pid, number)
        until = time.monotonic() + GONE_WITHIN
        while time.monotonic() < until:
            if all(_ended(pid) for pid in pids):
                return
            time.sleep(0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudServer:
    """A running server: where it listens, what it wrote, which processes it is."""

    folder: Path
    endpoint: str
    pids: dict[str, int]

    @property
    def ledger(self) -> Path:
        """Every AWS call, one JSON object a line."""
        return self.folder / "ledger.jsonl"

    @staticmethod
    def start(
        folder: Path,
        *,
        kubeconfig: Path | None = None,
        world: Json | None = None,
        options: tuple[str, ...] = (),
        kubelet_options: tuple[str, ...] = (),
    ) -> "CloudServer":
        """Start a server, and with a kubeconfig the process that makes its instances join that cluster.

        `world` is merged into the default world; `options` are further arguments of `python -m testbed.cloud`,
        `kubelet_options` of `python -m testbed.cloud.kubelets`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        arguments = ["--state", str(folder), *options]
        if world:
            declared = folder / "world.json"
            declared.write_text(json.dumps(world), encoding="utf-8")
            arguments += ["--world", str(declared)]
        (folder / "endpoint").unlink(missing_ok=True)  # a killed server leaves its own behind
        log = folder / "cloud.log"
        process = _start("testbed.cloud", arguments, log)
        endpoint = _endpoint_of(process, folder / "endpoint", log)
        pids = {"cloud": process.pid}
        if kubeconfig is not None:
            given = ["--cloud", endpoint, "--kubeconfig", str(kubeconfig), *kubelet_options]
            pids["kubelets"] = _start("testbed.cloud.kubelets", given, folder / "kubelets.log").pid
        (folder / "pids.json").write_text(json.dumps(pids), encoding="utf-8")
        return CloudServer(folder=folder, endpoint=endpoint, pids=pids)

    @staticmethod
    def at(folder: Path) -> "CloudServer":
        """The server that an earlier command started in this folder.

        Its endpoint is empty when it ended since; the other processes may still be there to be stopped.
        """
        written = folder / "endpoint"
        endpoint = written.read_text(encoding="utf-8").strip() if written.exists() else ""
        pids: dict[str, int] = json.loads((folder / "pids.json").read_text(encoding="utf-8"))
        return CloudServer(folder=folder, endpoint=endpoint, pids=pids)

    def stop(self) -> None:
        """End its processes, the kubelets first."""
        stop_processes([*reversed(self.pids.values())])

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """One control request: `control("PATCH", "world", {...})`, `control("GET", "ledger?since=10")`."""
        request = urllib.request.Request(
            f"{self.endpoint}/_dovetail/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise CloudError(f"{method} {path}: {refused.read().decode()}") from refused

    def calls(self, operation: str | None = None, since: int = 0) -> list[Json]:
        """The ledger's entries, all or of one operation."""
        entries: list[Json] = self.control("GET", f"ledger?since={since}")["entries"]
        return [each for each in entries if operation in (None, each["op"])]

    def instances(self) -> list[Json]:
        """All instances ever launched, as the control API shows them."""
        found: list[Json] = self.control("GET", "instances")["instances"]
        return found


def _endpoint_of(process: subprocess.Popen[bytes], written: Path, log: Path) -> str:
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until and process.poll() is None:
        if written.exists() and (endpoint := written.read_text(encoding="utf-8").strip()):
            return endpoint
        time.sleep(0.02)
    if process.poll() is None:
        process.kill()
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    raise CloudError(f"the AWS server did not start: {last[0] if last else 'it said nothing'}; see {log}")

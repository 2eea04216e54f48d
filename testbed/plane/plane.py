"""Starts and stops a control plane.

Start writes what it has started into the state file before it waits for anything, and takes everything down again when
it fails. A port that was free when it was chosen may be taken when it is used: then the start chooses again instead of
failing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from testbed.plane.api import ApiClient
from testbed.plane.binaries import Binaries
from testbed.plane.folder import describe, prepare
from testbed.plane.kubeconfig import write_kubeconfig
from testbed.plane.parts import COMMANDS, PlaneSettings, Ports, Site
from testbed.plane.processes import ProcessIdentity, identify, spawn, stop_process
from testbed.plane.state import FILE_NAME, PlaneState, read_state, write_state

SERVING = ("etcd", "kube-apiserver")  # what answers requests; the others ask
PORT_ATTEMPTS = 5
READY_SECONDS = 90.0  # it takes 4 to 5 s; the rest is for a machine that compiles something else meanwhile
ANSWER_SECONDS = 2.0  # for one question; another process on our port may accept and then say nothing
STOP_SECONDS = 5.0  # nothing is worth waiting for: the data is thrown away


class PlaneError(Exception):
    """A part did not come up. The text names the part and the end of its log."""


class PortTakenError(Exception):
    """Another process was quicker. Never leaves this module."""


def choose_ports() -> Ports:
    """All three held at once, so that they differ; released only when each is known."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    etcd, etcd_peer, api = (server.getsockname()[1] for server in held)
    for server in held:
        server.close()
    return Ports(etcd=etcd, etcd_peer=etcd_peer, api=api)


class ControlPlane:
    """One control plane in one folder."""

    def __init__(
        self,
        folder: Path,
        binaries: Binaries,
        settings: PlaneSettings | None = None,
        choose_ports: Callable[[], Ports] = choose_ports,
    ) -> None:
        self.folder = folder.resolve()
        self._binaries = binaries
        self._settings = settings or PlaneSettings()
        self._choose_ports = choose_ports
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    async def start(self, owner: ProcessIdentity | None = None) -> PlaneState:
        """A fresh plane, ready for use. PlaneError, with nothing left running, when it does not come up."""
        with _one_starter(self.folder):
            return await self._start(owner)

    async def _start(self, owner: ProcessIdentity | None) -> PlaneState:
        found = read_state(self.folder)
        if found is not None and found.is_running():
            raise PlaneError(f"a control plane is already running in {self.folder}")
        await stop_plane(self.folder)
        try:
            for _ in range(PORT_ATTEMPTS):
                try:
                    return await self._bring_up(owner)
                except PortTakenError:
                    await stop_plane(self.folder)
            raise PlaneError(f"no free ports after {PORT_ATTEMPTS} attempts")
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        await stop_plane(self.folder)
        for child in self._children.values():
            child.poll()  # ended: this only takes the exit status, so that no zombie stays
        self._children.clear()

    def kubeconfig_for(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig of a new identity. It has no rights but those that RBAC gives to the user or its groups."""
        state = read_state(self.folder)
        if state is None:
            raise PlaneError(f"no control plane runs in {self.folder}")
        path = self.folder / "kubeconfigs" / f"{user}.kubeconfig"
        return write_kubeconfig(path, state.server, self.folder / "pki", user, groups)

    async def stop_part(self, part: str) -> None:
        """Stop one part, as a failure would; `start_part` restarts it with the same data."""
        state = read_state(self.folder)
        if state is not None:
            await stop_process(dict(state.processes)[part], STOP_SECONDS)

    async def start_part(self, *parts: str) -> None:
        """Restart these, in this order; those that depend on the API server once it serves."""
        state = read_state(self.folder)
        if state is None:
            raise PlaneError(f"no control plane runs in {self.folder}")
        commands = json.loads((self.folder / "commands.json").read_text())
        for part in parts:
            if part not in SERVING:
                await self._until_serving(state.only(SERVING))
            state = self._spawn(part, commands[part], state)
        await self._until_serving(state.only({*SERVING, *parts}))

    async def _bring_up(self, owner: ProcessIdentity | None) -> PlaneState:
        ports = self._choose_ports()
        site = Site(folder=self.folder, binaries=self._binaries, ports=ports, settings=self._settings)
        prepare(site)
        state = write_state(describe(site, owner))
        commands = {part: make(site) for part, make in COMMANDS.items()}
        (self.folder / "commands.json").write_text(json.dumps(commands, indent=1))
        for part in SERVING:
            state = self._spawn(part, commands[part], state)
        await self._until_serving(state)
        for part in ("kube-controller-manager", "kube-scheduler", "kwok"):
            state = self._spawn(part, commands[part], state)
        await self._until_controllers_work(state)
        return write_state(dataclasses.replace(state, ready=True))

    def _spawn(self, part: str, command: list[str], state: PlaneState) -> PlaneState:
        child = spawn(command, self.folder / "logs" / f"{part}.log")
        self._children[part] = child
        identity = identify(child.pid)
        if identity is None:
            raise self._why_ended(part)
        return write_state(state.with_process(part, identity))

    async def _until_serving(self, state: PlaneState) -> None:
        async with ApiClient(state.kubeconfig) as api:
            deadline = time.monotonic() + READY_SECONDS
            while not await _answers(api, "/readyz"):
                await self._pause(state, deadline, "the API server is not ready")

    async def _until_controllers_work(self, state: PlaneState) -> None:
        """Pods are refused until the namespace has its service account, which a controller makes."""
        async with ApiClient(state.kubeconfig) as api:
            deadline = time.monotonic() + READY_SECONDS
            while not await _answers(api, "/api/v1/namespaces/default/serviceaccounts/default"):
                await self._pause(state, deadline, "the controllers do not work")

    async def _pause(self, state: PlaneState, deadline: float, complaint: str) -> None:
        for part, process in state.processes:
            if not process.is_running():
                raise self._why_ended(part)
        if time.monotonic() > deadline:
            raise PlaneError(f"{complaint} after {READY_SECONDS:.0f} s; logs in {self.folder / 'logs'}")
        await asyncio.sleep(0.05)

    def _why_ended(self, part: str) -> Exception:
        log = self.folder / "logs" / f"{part}.log"
        text = log.read_text(errors="replace")
        if "address already in use" in text:
            return PortTakenError()
        return PlaneError(f"{part} ended at once: {(text.strip().splitlines() or ['no output'])[-1]} (log: {log})")


async def stop_plane(folder: Path) -> bool:
    """Stop whatever runs in this folder, last started first; False when nothing is known of it. Logs stay."""
    state = read_state(folder)
    if state is None:
        return False
    for _, process in reversed(state.processes):
        await stop_process(process, STOP_SECONDS)
    (state.folder / FILE_NAME).unlink(missing_ok=True)
    return True


async def stop_abandoned(sessions: Path) -> None:
    """Below this folder lies one folder for each session: stop the planes whose owner has ended.

    What such a session left is removed with it, and so is the evidence that an earlier one kept of its failures.
    """
    for folder in await asyncio.to_thread(lambda: sorted(sessions.glob("*/plane"))):
        state = read_state(folder)
        if state is not None and state.owner is not None and state.owner.is_running():
            continue
        if state is None and identify(int(folder.parent.name)) is not None:
            continue
        await stop_plane(folder)
        shutil.rmtree(folder.parent, ignore_errors=True)


@contextmanager
def _one_starter(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlaneError(f"another start is under way in {folder}") from None
        yield


async def _answers(api: ApiClient, path: str) -> bool:
    """False while nothing listens, or another process does: a foreign certificate is refused, silence is cut off."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return (await api.get(path)).status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False

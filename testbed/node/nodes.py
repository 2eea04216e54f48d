"""Real nodes around a control plane: starts them, says where they are, and ends them without a trace.

What is started is written down before anything is waited for, so that a stop finds it. The set's tag, from which every
name on the machine is made (namespaces, groups of processes), comes from its folder.
"""

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from testbed.node import cgroups, network
from testbed.node.archives import short_name
from testbed.node.configuration import names, written
from testbed.node.machine import Machine
from testbed.plane import ApiClient, ApiResponse, PlaneError, PlaneState
from testbed.plane.kubeconfig import write_kubeconfig
from testbed.plane.processes import ProcessIdentity, identify, spawn, stop_process
from testbed.pod_network import inside

FILE: Final = "nodes.json"
READY_SECONDS: Final = 120.0
OUTSIDE: Final = f"https://{network.HUB}:{network.API_PORT}"  # the API server, as nodes see it
_KEPT_SECONDS: Final = 30.0  # a process that is killed while the kernel writes for it takes that long
_SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes of one control plane."""

    folder: Path  # of everything
    plane: PlaneState
    programs: Path
    images: tuple[Path, ...]
    numbers: dict[str, int] = field(default_factory=dict)  # of each node that runs
    # None is given twice: whoever still knows an address of a node that is gone must not reach another.
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 250)))

    @property
    def tag(self) -> str:
        return tag_of(self.folder)

    async def start(self) -> None:
        """The network, what leads through it, and the names of Services; no node yet."""
        _note(self.folder, {})
        network.make_hub(self.tag)
        pki, files = self.plane.folder / "pki", self.plane.folder / "kubeconfigs"
        for user, groups in (("system:kube-proxy", ()), ("dns", ("system:masters",))):
            write_kubeconfig(files / f"{user}.kubeconfig", OUTSIDE, pki, user, groups)
        leads = [
            str(self.plane.folder / "network.sock"),
            network.hub_of(self.tag),
            self.plane.server.rpartition(":")[2],
        ]
        self._spawn("network", [sys.executable, "-m", "testbed.node.network", *leads])
        corefile = written(self.folder / "nodes" / "Corefile", names(files / "dns.kubeconfig"))
        program = [str(self.programs / "coredns"), "-conf", str(corefile)]
        self._spawn("dns", [*inside(network.hub_of(self.tag)), *program])
        async with ApiClient(self.plane.kubeconfig, user_agent="dovetail-testbed") as api:
            answer = await api.post(_SLICES, _api_servers_slice())
            if answer.status != 201:
                raise PlaneError(f"the Service of the API server: {answer.status} {answer.text[:300]}")

    def boot(self, name: str, images: Sequence[str] = ()) -> None:
        """A machine that becomes, or takes over, the Node of that name. `images`: only these, by their short names."""
        number = next(self._numbers)
        self.numbers[name] = number
        network.add_node(self.tag, number)
        pki, files = self.plane.folder / "pki", self.plane.folder / "kubeconfigs"
        write_kubeconfig(files / f"{name}.kubeconfig", OUTSIDE, pki, f"system:node:{name}", ("system:nodes",))
        machine = Machine(
            tag=self.tag,
            name=name,
            number=number,
            folder=self.folder / "nodes" / name,
            pki=pki,
            kubeconfigs=files,
            programs=self.programs,
            images=tuple(each for each in self.images if not images or short_name(each) in images),
        )
        machine.folder.mkdir(parents=True, exist_ok=True)
        self._spawn(name, machine.command())

    async def switch_off(self, name: str) -> None:
        """At once, as a machine that loses its power, with all that it leaves on this one."""
        await _end(self.folder, name, self.tag)
        await _removed(self.folder / "nodes" / name)
        network.remove_node(self.tag, self.numbers.pop(name))

    async def until_ready(self, name: str) -> None:
        """Its kubelet says so; PlaneError with the end of its log where it does not."""
        process = _known(self.folder)[name]
        log = self.folder / "nodes" / f"{name}.log"
        deadline = time.monotonic() + READY_SECONDS
        async with ApiClient(self.plane.kubeconfig, user_agent="dovetail-testbed") as api:
            while not _is_ready(await api.get(f"/api/v1/nodes/{name}")):
                if not process.is_running() or time.monotonic() > deadline:
                    raise PlaneError(f"{name} is not ready: {log.read_text().strip()[-300:]} (logs beside {log})")
                await asyncio.sleep(0.1)

    def processes(self) -> dict[str, int]:
        """Who plays what, by process id."""
        return {name: process.pid for name, process in _known(self.folder).items()}

    def _spawn(self, name: str, command: list[str]) -> None:
        log = self.folder / "nodes" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        process = identify(spawn(command, log).pid)
        if process is None:
            raise PlaneError(f"{name} ended at once: {log.read_text().strip()[-300:]}")
        _note(self.folder, {**_known(self.folder), name: process})


def tag_of(folder: Path) -> str:
    """Short, since names of network devices are."""
    return hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]


async def stop_nodes(folder: Path) -> bool:
    """End all of a set: nodes, namespaces, groups, files. Whether there was anything."""
    if not (folder / FILE).exists():
        return False
    known, tag = _known(folder), tag_of(folder)
    for name in reversed(known):
        await _end(folder, name, tag)
    network.remove_all(tag)
    cgroups.remove(tag)
    await asyncio.gather(*map(_removed, (folder / "nodes").glob("*")))
    await _removed(folder / "nodes")
    (folder / FILE).unlink()
    return True


async def _end(folder: Path, name: str, tag: str) -> None:
    known = _known(folder)
    await stop_process(known.pop(name), 0)
    deadline = time.monotonic() + _KEPT_SECONDS
    while cgroups.processes(tag, name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of {name} do not end: {cgroups.processes(tag, name)}")
        await asyncio.sleep(0.05)
    cgroups.remove(tag, name)
    _note(folder, known)


async def _removed(place: Path) -> None:
    """Images are some ten thousand files; meanwhile others may go on."""
    removing = await asyncio.create_subprocess_exec("rm", "-rf", str(place))
    if await removing.wait():
        raise OSError(f"{place} cannot be removed")


def _is_ready(answer: ApiResponse) -> bool:
    if answer.status != 200:
        return False
    conditions = answer.body.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _api_servers_slice() -> dict[str, object]:
    """The API server announces no address on loopback; this is where it is led in."""
    return {
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": network.API_PORT, "protocol": "TCP"}],
        "endpoints": [{"addresses": [network.HUB], "conditions": {"ready": True}}],
    }


def _known(folder: Path) -> dict[str, ProcessIdentity]:
    file = folder / FILE
    found = json.loads(file.read_text()) if file.exists() else {}
    return {name: ProcessIdentity(**process) for name, process in found.items()}


def _note(folder: Path, processes: Mapping[str, ProcessIdentity]) -> None:
    content = {name: {"pid": each.pid, "began": each.began} for name, each in processes.items()}
    (folder / FILE).write_text(json.dumps(content) + "\n")

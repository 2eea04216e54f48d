"""`python -m testbed.node.machine FILE`: one real node, as process 1 of its own namespaces; the file says which.

Its usual folders are its own (a memory file system and overlays stand before the machine's), so nothing that a kubelet,
containerd or a plugin writes is seen outside, and all of it is gone with its process 1. That is how a node is ended:
switched off.
"""

import dataclasses
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from testbed.node import cgroups, configuration
from testbed.node.network import address_of, namespace_of
from testbed.pod_network import inside

READY_SECONDS: Final = 60.0
_APART: Final = ("unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc")
_OVERLAID: Final = ("/etc", "/var/lib", "/var/log")
# No overlay beneath these: containerd lays its own on top, and the kubelet asks for the disk.
_REAL: Final = ("/var/lib/containerd", "/var/lib/kubelet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What makes one node."""

    tag: str  # of the set of nodes
    name: str
    number: int
    folder: Path  # its files
    pki: Path
    kubeconfigs: Path
    programs: Path
    images: tuple[Path, ...]

    @classmethod
    def read(cls, file: Path) -> Self:
        """As `command` wrote it."""
        found = json.loads(file.read_text())
        found.update({key: Path(found[key]) for key in ("folder", "pki", "kubeconfigs", "programs")})
        return cls(**{**found, "images": tuple(map(Path, found["images"]))})

    def command(self) -> list[str]:
        """What starts it. SIGKILL ends it, with all that runs on it."""
        file = configuration.written(self.folder / "machine.json", json.dumps(dataclasses.asdict(self), default=str))
        program = [sys.executable, "-m", "testbed.node.machine", str(file)]
        return [*inside(namespace_of(self.tag, self.number)), *_APART, *program]

    @property
    def cgroup(self) -> str:
        return cgroups.group_of(self.tag, self.name)

    def file(self, name: str) -> Path:
        return self.folder / name


def run(machine: Machine) -> None:
    """Start the node's parts, and wait for whatever ends; never returns while one of them runs."""
    cgroups.enter(machine.tag, machine.name)
    _own_folders(machine)
    os.environ["PATH"] = f"{machine.programs}:{os.environ['PATH']}"
    written = configuration.written
    written(Path("/etc/cni/net.d/10-pods.conflist"), configuration.pods_network(machine.number))
    runtime = written(machine.file("containerd.toml"), configuration.containerd(machine.programs))
    kubeconfig = machine.kubeconfigs / "system:kube-proxy.kubeconfig"
    proxy = written(machine.file("proxy.json"), configuration.proxy(machine.name, machine.number, kubeconfig))
    own = configuration.kubelet(machine.number, machine.pki, machine.cgroup)
    kubelet = written(machine.file("kubelet.json"), own)

    parts = {_start(machine, "containerd", "--config", str(runtime)): "containerd"}
    _answers(Path(configuration.SOCKET))
    for image in machine.images:
        subprocess.run(["ctr", "-n", "k8s.io", "images", "import", "--local", str(image)], check=True)
    parts[_start(machine, "kube-proxy", "--config", str(proxy))] = "kube-proxy"
    words = ["--config", str(kubelet), "--kubeconfig", str(machine.kubeconfigs / f"{machine.name}.kubeconfig")]
    words += ["--hostname-override", machine.name, "--node-ip", address_of(machine.number), "--v=2"]
    parts[_start(machine, "kubelet", *words)] = "kubelet"
    while True:
        ended, status = os.wait()  # process 1 also inherits those whose parents have ended
        if ended in parts:
            print(f"{parts[ended]} ended: {os.waitstatus_to_exitcode(status)}", flush=True)


def _start(machine: Machine, program: str, *words: str) -> int:
    with machine.file(f"{program}.log").open("ab") as log:
        started = subprocess.Popen([program, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    return started.pid


def _answers(socket: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while subprocess.run(["ctr", "version"], capture_output=True, check=False).returncode:
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing answers at {socket} after {READY_SECONDS:.0f} s")
        time.sleep(0.1)


def _own_folders(machine: Machine) -> None:
    _mount("--make-rshared", "/")
    _mount("-t", "tmpfs", "-o", "mode=755", "run", "/run")
    for place in _OVERLAID:
        name = place.strip("/").replace("/", "-")
        parts = [machine.file(f"layers/{name}/{part}") for part in ("upper", "work")]
        for part in parts:
            part.mkdir(parents=True, exist_ok=True)
        _mount("-t", "overlay", "overlay", "-o", f"lowerdir={place},upperdir={parts[0]},workdir={parts[1]}", place)
    for place in _REAL:
        own = machine.file(Path(place).name)
        for folder in (own, Path(place)):
            folder.mkdir(parents=True, exist_ok=True)
        _mount("--bind", str(own), place)
    for name, value in configuration.MACHINES.items():
        stands = configuration.written(machine.file(f"sysctl/{name}"), value + "\n")
        _mount("--bind", str(stands), f"/proc/sys/{name}")


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


if __name__ == "__main__":
    run(Machine.read(Path(sys.argv[1])))

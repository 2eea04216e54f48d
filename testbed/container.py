"""Runs a pod's container from the image's file tree, as a kubelet and its runtime would, where there is neither.

Its own mount and process namespaces; the tree read-only beneath them; the pod's user, without root's rights or a way to
get them; the pod's variables, arguments and volumes; the network of pod_network.py. Needs root on Linux, for the
namespaces. Other work of a container runtime (cgroups, seccomp) is not done.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deploy.image.layout import ENVIRONMENT
from dovetail.model.values.json import Json
from testbed.pod_network import PodNetwork, can_make, inside

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_APART: Final = ("unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child")
_DEVICES: Final = ("null", "zero", "random", "urandom")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a kubelet adds to the pod's spec."""

    image: Path  # the tree
    folder: Path  # of this container
    files: Mapping[str, Path] = field(default_factory=dict)  # folders of Secrets and the account, by where they appear
    environment: Mapping[str, str] = field(default_factory=dict)  # of the service of the API server
    network: PodNetwork | None = None  # without one: the machine's

    @property
    def address(self) -> str:
        return self.network.address if self.network else "127.0.0.1"


def can_run() -> str:
    """Empty, or why no container can run here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces and mounts need root on Linux"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True, check=False
    )
    return tried.stderr.strip() if tried.returncode else can_make()


def start_container(pod: Json, around: Surroundings) -> "subprocess.Popen[bytes]":
    """The first container of the pod. Ending the process ends all of it; a TERM reaches the container's own process."""
    container = pod["spec"]["containers"][0]
    security = container["securityContext"]
    who = f"{security['runAsUser']} {security['runAsGroup']}"
    entry = ["/usr/local/bin/dovetail", *container.get("args", [])]
    variables = {**ENVIRONMENT, **around.environment, **_variables(pod, container, around.address)}
    words = " ".join(shlex.quote(f"{name}={value}") for name, value in sorted(variables.items()))
    root = shlex.quote(str(around.folder / "root"))
    script = "\n".join(
        [
            "set -e",
            *_mounts(pod, container, around),
            *(["mount -o remount,ro " + root] if security["readOnlyRootFilesystem"] else []),
            f"exec chroot {root} /usr/bin/python3.11 -c {shlex.quote(_ENTER)} {who} {words} -- {shlex.join(entry)}",
        ]
    )
    for name in ("upper", "work", "root"):
        (around.folder / name).mkdir(parents=True, exist_ok=True)
    with (around.folder / "log").open("ab") as log:
        return subprocess.Popen(
            [*(inside(around.network.pod) if around.network else ()), *_APART, "bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


# From root to the pod's user: no right can be had again. The machine's variables end here, the container has its own.
_NO_NEW_PRIVILEGES: Final = 38
_DROP_FROM_BOUNDING_SET: Final = 24
_LAST_CAPABILITY: Final = 40
_SIGNAL_WHEN_PARENT_ENDS: Final = 1
_ENTER: Final = (
    "import ctypes, os, sys\n"
    "control = ctypes.CDLL(None).prctl\n"
    f"for number in range({_LAST_CAPABILITY} + 1):\n"
    f"    control({_DROP_FROM_BOUNDING_SET}, number, 0, 0, 0)\n"
    f"control({_NO_NEW_PRIVILEGES}, 1, 0, 0, 0)\n"
    "user, group = int(sys.argv[1]), int(sys.argv[2])\n"
    "os.setgroups([])\n"
    "os.setresgid(group, group, group)\n"
    "os.setresuid(user, user, user)\n"
    # unshare has asked for this signal, and a change of user takes it back.
    f"control({_SIGNAL_WHEN_PARENT_ENDS}, {signal.SIGKILL.value}, 0, 0, 0)\n"
    "os.chdir('/')\n"
    "cut = sys.argv.index('--')\n"
    "given = dict(word.split('=', 1) for word in sys.argv[3:cut])\n"
    "os.execve(sys.argv[cut + 1], sys.argv[cut + 1:], given)\n"
)


def _mounts(pod: Json, container: Json, around: Surroundings) -> list[str]:
    root = around.folder / "root"
    layers = f"lowerdir={around.image},upperdir={around.folder / 'upper'},workdir={around.folder / 'work'}"
    lines = [f"mount -t overlay overlay -o {shlex.quote(layers)} {shlex.quote(str(root))}"]
    lines += [f"mount -t proc proc {root}/proc", f"mount -t tmpfs -o mode=755 dev {root}/dev"]
    lines += [f"touch {root}/dev/{name} && mount --bind /dev/{name} {root}/dev/{name}" for name in _DEVICES]
    lines += [f"touch {root}/etc/hosts {root}/etc/resolv.conf"]
    lines += [f"mount --bind /etc/{name} {root}/etc/{name}" for name in ("hosts", "resolv.conf")]
    for at, folder in around.files.items():
        lines += [f"mkdir -p {root}{at}", f"mount --bind {shlex.quote(str(folder))} {root}{at}"]
        lines += [f"mount -o remount,ro,bind {root}{at}"]
    empty = {volume["name"] for volume in pod["spec"].get("volumes", []) if "emptyDir" in volume}
    for mount in container.get("volumeMounts", []):
        if mount["name"] in empty:
            place = root / str(mount["mountPath"]).lstrip("/")
            lines += [f"mkdir -p {place}", f"mount -t tmpfs -o mode=1777 {mount['name']} {place}"]
    return lines


def _variables(pod: Json, container: Json, address: str) -> dict[str, str]:
    """The container's variables, with the fields of the pod that they name."""
    fields = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "status.podIP": address,
    }
    found: dict[str, str] = {}
    for variable in container["env"]:
        source = variable.get("valueFrom")
        found[variable["name"]] = fields[source["fieldRef"]["fieldPath"]] if source else str(variable.get("value", ""))
    return found

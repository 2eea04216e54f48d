"""The network of real nodes: a namespace for each, and one that joins them, the hub.

Nothing of it has an address of the machine's, so several sets run side by side, and nothing in it reaches out. The
control plane listens on the machine's loopback as ever: at the hub's address its API server is led in, and what it asks
of kubelets and pods (its socket, testbed/plane/network.py) is dialled from the hub.
"""

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

from testbed.plane.network import ClusterNetwork, Streams
from testbed.pod_network import inside, led_to, made_in

HUB: Final = "10.99.0.254"
API_PORT: Final = 6443
PODS: Final = "10.244.0.0/16"
_FOLDER: Final = Path("/run/netns")


def address_of(number: int) -> str:
    """A node's."""
    return f"10.99.0.{number}"


def pods_of(number: int) -> str:
    """The addresses that its pods get."""
    return f"10.244.{number}.0/24"


def hub_of(tag: str) -> str:
    """The namespace that joins a set's nodes."""
    return f"dovetail-{tag}-hub"


def namespace_of(tag: str, number: int) -> str:
    """A node's."""
    return f"dovetail-{tag}-{number}"


def make_hub(tag: str) -> None:
    """The switch between the nodes."""
    hub = hub_of(tag)
    _ip(f"netns add {hub}", f"-n {hub} link set lo up", f"-n {hub} link add lan type bridge")
    _ip(f"-n {hub} addr add {HUB}/24 dev lan", f"-n {hub} link set lan up")
    _sysctl(hub, "net.ipv4.ip_forward=1")


def add_node(tag: str, number: int) -> None:
    """A node's namespace, joined to the others."""
    hub, node = hub_of(tag), namespace_of(tag, number)
    _ip(f"netns add {node}", f"-n {node} link set lo up")
    _ip(f"link add up0 netns {node} type veth peer name node{number} netns {hub}")
    _ip(f"-n {hub} link set node{number} master lan up", f"-n {node} addr add {address_of(number)}/24 dev up0")
    _ip(f"-n {node} link set up0 up", f"-n {node} route add default via {HUB}")
    _ip(f"-n {hub} route add {pods_of(number)} via {address_of(number)}")
    _sysctl(node, "net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1")


def remove_node(tag: str, number: int) -> None:
    """With what leads to it; nothing where it is gone."""
    if (_FOLDER / namespace_of(tag, number)).exists():
        _ip(f"netns del {namespace_of(tag, number)}", f"-n {hub_of(tag)} route del {pods_of(number)}")


def remove_all(tag: str) -> None:
    """All namespaces of that set."""
    for found in sorted(_FOLDER.glob(f"dovetail-{tag}-*")):
        _ip(f"netns del {found.name}")


def _ip(*lines: str) -> None:
    for line in lines:
        done = subprocess.run(["ip", *line.split()], check=False, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"ip {line}: {done.stderr.strip()}")


def _sysctl(namespace: str, *settings: str) -> None:
    subprocess.run([*inside(namespace), "sysctl", "-qw", *settings], check=True, capture_output=True)


class FromHub(ClusterNetwork):
    """Whatever address the API server asks for is dialled from the hub."""

    def __init__(self, path: Path, hub: str) -> None:
        super().__init__(path, {})
        self._hub = hub

    async def _dial(self, target: str) -> Streams | None:
        host, _, port = target.rpartition(":")
        made = await asyncio.to_thread(made_in, self._hub, socket.socket)
        made.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(made, (host, int(port)))
        except OSError:
            made.close()
            return None
        return await asyncio.open_connection(sock=made)


async def play(socket_path: Path, hub: str, port: int) -> None:
    """Lead in and out, until it is stopped. `port`: of the API server, on the machine's loopback."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    listening = await asyncio.to_thread(made_in, hub, lambda: socket.create_server((HUB, API_PORT)))
    server = await asyncio.start_server(led_to(port), sock=listening)
    async with FromHub(socket_path, hub):
        await stopped.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))

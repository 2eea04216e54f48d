"""The probes of a container, as a kubelet asks them: over HTTP, at the pod's address, from the node's network."""

import asyncio
import subprocess
import time
from dataclasses import dataclass, field
from typing import Final

from dovetail.model.values.json import Json
from testbed.container import Surroundings
from testbed.pod_network import PodNetwork, inside

KINDS: Final = ("livenessProbe", "readinessProbe")
# What Kubernetes takes where a probe does not say it.
DEFAULTS: Final = {"initialDelaySeconds": 0, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3}


@dataclass(slots=True, kw_only=True)
class Probe:
    """One of them. `passes`: by its last answer, or while fewer answers have failed than count."""

    network: PodNetwork
    url: str
    seconds: Json  # and the threshold
    passes: bool = False
    fails: bool = False
    _failed: int = 0
    _next: float = field(init=False)

    def __post_init__(self) -> None:
        self._next = time.monotonic() + self.seconds["initialDelaySeconds"]

    async def ask(self) -> None:
        """If it is time to."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self.seconds["periodSeconds"]
        if await asyncio.to_thread(answers, self.network, self.url, self.seconds["timeoutSeconds"]):
            self.passes, self._failed = True, 0
            return
        self._failed += 1
        if self._failed >= self.seconds["failureThreshold"]:
            self.passes, self.fails = False, True


def probes_of(pod: Json, around: Surroundings) -> dict[str, Probe]:
    """Those of the pod's first container, by their name in its spec."""
    container = pod["spec"]["containers"][0]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert around.network is not None
    return {
        kind: Probe(
            network=around.network,
            url=url_of(around.network.address, ports, container[kind]["httpGet"]),
            seconds={**DEFAULTS, **container[kind]},
        )
        for kind in KINDS
    }


def url_of(address: str, ports: Json, asked: Json) -> str:
    """Where a probe's httpGet leads, at the pod's address."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{ports.get(asked['port'], asked['port'])}{asked['path']}"


def answers(network: PodNetwork, url: str, seconds: float) -> bool:
    """Whether it does, with a status below 400."""
    asking = ["curl", "--silent", "--fail", "--globoff", "--max-time", str(seconds), url]
    return subprocess.run([*inside(network.node), *asking], capture_output=True, check=False).returncode == 0

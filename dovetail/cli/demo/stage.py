"""Where the demo's story is played: a cluster, a cloud, a Temporal server, workers that can be killed.

The embedded stage is in this package; the one on a real control plane is in the test bed, which no product code
imports.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dovetail.model.values.json import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """What differs between stages in the objects that the story applies."""

    node_class: Json
    node_class_ref: dict[str, str]
    requirements: list[Json]


class Stage(Protocol):
    """A cluster and its cloud, as the story sees them."""

    cluster: str
    manifests: Manifests
    temporal_address: str
    temporal_ui: str
    temporal_binary: Path

    async def prepare(self) -> list[str]:
        """Start every server, with a line each for the reader."""

    async def apply(self, body: Json) -> None:
        """Create or change an object."""

    async def scale(self, deployment: str, replicas: int) -> None:
        """Set a Deployment's replicas."""

    async def objects(self, kind: str) -> list[Json]:
        """All objects of a kind, as Kubernetes JSON."""

    async def live_instances(self) -> int:
        """Instances that are not gone."""

    async def launches(self) -> dict[str, int]:
        """How many instances were launched for each claim UID, by the cloud's own ledger."""

    async def set_boot_delay(self, seconds: float) -> None:
        """How long the next instances take to boot."""

    def looks_by(self) -> dict[str, str]:
        """The variables with which `dovetail` finds this stage."""

    def start_worker(self) -> "subprocess.Popen[bytes]":
        """Start another worker, as a process of its own."""

    async def close(self) -> None:
        """Stop everything."""

"""What a world must offer so that the contracts of the ports can be checked against it.

The ports are what is judged; everything else here is the other side: a person with kubectl. Worlds are shared by all
tests of a session, so each test makes names of its own (`unique`).
"""

import asyncio
import uuid
from collections.abc import Callable
from typing import Protocol, TypeVar

from dovetail.model.values.json import Json
from dovetail.ports.objects import NodeClaims, NodePools, Nodes, Notices, Pods
from dovetail.ports.view import ClusterLookups, ClusterView

Found = TypeVar("Found")

PATIENCE_SECONDS = 90.0  # a control plane on two crowded cores; nothing here takes a second on an idle machine


class World(Protocol):
    """The ports of one implementation, and the means to act on its cluster from outside."""

    view: ClusterView
    lookups: ClusterLookups
    claims: NodeClaims
    nodes: Nodes
    pods: Pods
    pools: NodePools
    notices: Notices

    async def apply(self, body: Json) -> Json:
        """Create the object, or merge into the one of its name; its status too. The object as stored."""

    async def get(self, kind: str, key: str) -> Json | None:
        """One object by name or namespace/name."""

    async def delete(self, kind: str, key: str) -> None:
        """Delete it as kubectl does; one that is gone already is no error."""

    async def events_about(self, kind: str, name: str) -> list[Json]:
        """The core/v1 Events about an object."""


def unique(prefix: str) -> str:
    """A name that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


async def eventually(look: Callable[[], Found]) -> Found:
    """The first true answer; the last one where patience runs out, so that the assertion shows it."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        found = look()
        if found or asyncio.get_running_loop().time() > deadline:
            return found
        await asyncio.sleep(0.02)

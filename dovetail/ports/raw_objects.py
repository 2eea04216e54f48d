"""Objects that decisions do not read and that therefore have no port of their own, as raw JSON.

A cloud needs some: its NodeClasses, the ConfigMap in which it remembers shortages, the Service of the cluster's DNS;
and, where its instances are objects of the cluster, the Nodes.
"""

from typing import Protocol

from dovetail.model.values.json import Json


class RawObjects(Protocol):
    """The objects of one kind, in one namespace or cluster-wide."""

    async def read(self, name: str) -> Json | None:
        """The object as it is now; None where there is none."""

    async def patch(self, raw: Json, change: Json, subresource: str = "") -> Json | None:
        """Merge a change into the object at the version of `raw`; None where it is gone, Conflict where it has
        changed."""

    async def merge(self, name: str, change: Json) -> None:
        """Merge a change into the object at whatever version; fields that are None are taken away."""


class MadeObjects(RawObjects, Protocol):
    """Objects that a cloud makes itself."""

    async def create(self, name: str, body: Json) -> Json | None:
        """Create it; None where there is one of that name."""

    async def list_labelled(self, selector: str) -> tuple[Json, ...]:
        """The objects with these labels, as the API server has them now."""

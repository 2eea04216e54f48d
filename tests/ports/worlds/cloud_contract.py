"""What a cloud must offer so that the contracts of its ports can be checked against it.

The two ports are what is judged; everything else here is the other side: the cloud's own switches, and a person who
changes a NodeClass. A cloud is shared by all tests of a session, so each test works on claims and classes of its own.
"""

from typing import Protocol

from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pools import NodePool
from dovetail.ports.cloud import Catalogues, Cloud, Instance


class CloudWorld(Protocol):
    """The ports of one cloud, and the means to act on it from outside."""

    cloud: Cloud
    catalogues: Catalogues

    async def node_class(self, name: str) -> NodeClassRef:
        """A NodeClass of that name that is ready."""

    async def claim(self, node_class: NodeClassRef) -> NodeClaim:
        """A NodeClaim of that class that several instance types satisfy, not launched."""

    async def pool(self, node_class: NodeClassRef) -> NodePool:
        """A NodePool of that class."""

    async def change_class(self, node_class: NodeClassRef) -> None:
        """Change the class so that instances bought before have drifted."""

    async def remove_class(self, node_class: NodeClassRef) -> None:
        """Delete the class."""

    async def spoil_class(self, node_class: NodeClassRef) -> None:
        """Its condition Ready turns False."""

    async def starve(self, instance: Instance | None) -> None:
        """The capacity pool of an instance has nothing to sell from now on; all pools where none is given."""

    async def feed(self) -> None:
        """Every pool sells again."""

    async def stranger(self) -> str:
        """An instance of another cluster: its provider id."""

    async def bought(self) -> int:
        """How many instances were ever bought, by the cloud's own account."""

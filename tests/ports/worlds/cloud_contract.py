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
        """Change the class so that instances launched before have drifted."""

    async def remove_class(self, node_class: NodeClassRef) -> None:
        """Delete the class."""

    async def make_class_unready(self, node_class: NodeClassRef) -> None:
        """Its condition Ready becomes False."""

    async def make_short(self, instance: Instance | None) -> None:
        """The capacity pool of an instance has no capacity from now on; none has any where no instance is given."""

    async def end_shortages(self) -> None:
        """Every capacity pool has capacity again."""

    async def foreign_instance(self) -> str:
        """An instance of another cluster: its provider id."""

    async def launches(self) -> int:
        """How many instances were ever launched, by the cloud's own account."""

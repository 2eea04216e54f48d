"""NodeClasses kept true by the cloud that they belong to.

The trap avoided: a cloud whose classes nobody resolves, which then has nothing to launch into.
"""

from typing import Protocol


class NodeClassKeeping(Protocol):
    """One look at all classes."""

    async def keep(self) -> float:
        """Resolve, validate, write and clean up what is due; the moment (epoch seconds) at which to look again."""

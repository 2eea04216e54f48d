"""Where the product keeps what outlives Temporal's retention: whole objects by name, written once and read often."""

from collections.abc import Sequence
from typing import Protocol


class KeptObjects(Protocol):
    """Objects whose names have slashes. Two writers of one name write the same, and either may win."""

    async def put(self, name: str, data: bytes) -> None:
        """Whole or not at all; one of that name is replaced."""

    async def get(self, name: str) -> bytes | None:
        """Its content; None where there is none."""

    async def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """The content of each, in that order: cheaper than one by one."""

    async def names(self, prefix: str) -> tuple[str, ...]:
        """The names of all objects that begin so, sorted."""

    async def delete(self, name: str) -> None:
        """Away with it; it may be gone already."""

    async def close(self) -> None:
        """End what was opened."""

"""Names in a sentence: the first few of them, so that a cluster of any size is one line."""

from collections.abc import Iterable


def shown(items: Iterable[str], most: int = 5, between: str = ", ") -> str:
    """The first of them, and how many more there are."""
    every = list(items)
    return between.join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")

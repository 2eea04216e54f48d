"""Which resources does placement count?

Only what a pod asks for and some node or instance type lists, because every table has a column for each. Anybody who
may create a pod may ask for ten thousand resources that exist nowhere: together they are one more column, of which
nothing has any.
"""

from collections.abc import Iterable
from typing import Final

from dovetail.model.values.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources

ORDINARY: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})  # what each node has some of

_NOWHERE: Final = ""  # no resource has this name


class Dimensions:
    """The resources of one snapshot, in a fixed order."""

    def __init__(self, asked: Iterable[Resources], listed: Iterable[Resources]) -> None:
        """`listed`: what nodes and types have; looked at only where something is asked for that is not ordinary."""
        every = {name for amounts in asked for name in amounts}
        self._nowhere = every - ORDINARY
        for amounts in listed if self._nowhere else ():
            self._nowhere.difference_update(amounts)
            if not self._nowhere:
                break
        self.names = (*sorted(every - self._nowhere), *([_NOWHERE] if self._nowhere else ()))

    def of(self, requests: Resources) -> tuple[int, ...]:
        """The requests as amounts in this order."""
        amounts = tuple([requests.get(name, 0) for name in self.names])
        if self._nowhere and any(amount > 0 and name in self._nowhere for name, amount in requests.items()):
            return (*amounts[:-1], 1)
        return amounts

"""The pods and the instance types of a pass, as arrays.

What can be said in numbers about where pods may go together, so that thousands of combinations can be looked at in a
second. It may leave rules out or be stricter than they are: whatever is found here is a proposal, and the pass places
every pod anew by its own rules.
"""

from dataclasses import dataclass

import numpy as np

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostRules:
    """What pods ask of the other pods on their node: counts per group that must stay below a limit.

    A group refuses a pod that it binds from `full_at` counted pods on (by whether the pod counts itself), and one that
    it counts while a pod that it binds is there and the count has come to `closed_at`.
    """

    full_at: Integers  # (groups, 2)
    closed_at: Integers  # (groups,)
    bound: tuple[tuple[int, ...], ...]  # per item the groups that bind it
    counted: tuple[tuple[int, ...], ...]  # per item the groups that count it
    checks: Integers  # (items, most checks of an item): columns of `refusing`

    @property
    def groups(self) -> int:
        return len(self.closed_at)

    def refusing(self, count: Integers, binding: Flags) -> Flags:
        """Per node, by column: the group is full for pods that do not count themselves, for those that do, is closed to
        those that it counts; and a last column that is never set."""
        full = count[:, :, None] >= self.full_at[None, :, :]
        closed = binding & (count >= self.closed_at[None, :])
        never = np.zeros((len(count), 1), dtype=bool)
        return np.concatenate([full[:, :, 0], full[:, :, 1], closed, never], axis=1)

    def refusing_one(self, check: int, count: Integers, binding: Flags) -> Flags:
        """One column of `refusing`."""
        kind, group = divmod(check, self.groups)
        refused: Flags = np.zeros(len(count), dtype=bool)
        if kind == 2:
            refused = binding[:, group] & (count[:, group] >= self.closed_at[group])
        elif kind < 2:
            refused = count[:, group] >= self.full_at[group, kind]
        return refused


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """Items are pods that are alike in all that is known here; choices are instance types with an offering."""

    sizes: Floats  # (items, resources)
    stock: Integers  # pods of each item
    need: Integers  # per item its row in `suits`
    colour: Integers  # per item; two that differ and are not 0 are never put together
    room: Floats  # (choices, resources), next to DaemonSets
    price: Floats  # per choice, the price of a node included; the cheapest comes first
    suits: Flags  # (needs, choices)
    hosts: HostRules | None
    conflicts: Floats  # per item, how many of the other pods it keeps off its node
    exclusive: Integers | None  # (items, groups): of which groups each of the pods needs a node of its own

"""What pods ask of the other pods on their node, as counts that must stay below a limit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.placement.constraints.topology_groups import HostGroup
from dovetail.placement.cost.problem import Floats, HostRules, Integers


@dataclass(frozen=True, slots=True, eq=False)
class HostNeeds:
    """The groups that bind one item's pods, with whether they count themselves, and the groups that count them."""

    binding: Sequence[tuple[HostGroup, bool]]
    counting: Sequence[HostGroup]
    pods: int


def host_rules(needs: Sequence[HostNeeds]) -> HostRules | None:
    """The rules for all items; None: there are none."""
    numbers: dict[HostGroup, int] = {}
    for need in needs:
        for group, _ in need.binding:
            numbers.setdefault(group, len(numbers))
    if not numbers:
        return None
    count = len(numbers)
    full = np.array([[_full_at(group, False), _full_at(group, True)] for group in numbers], dtype=np.int64)
    closed = np.array([group.term.max_skew if group.term.kind == "spread" else 0 for group in numbers], dtype=np.int64)
    bound, counted, checks = [], [], []
    for need in needs:
        mine = [numbers[group] for group in need.counting if group in numbers]
        bound.append(tuple(numbers[group] for group, _ in need.binding))
        counted.append(tuple(mine))
        checks.append(
            [numbers[group] + (count if own else 0) for group, own in need.binding] + [g + 2 * count for g in mine]
        )
    most = max(1, *(len(each) for each in checks))
    padded = np.array([each + [3 * count] * (most - len(each)) for each in checks], dtype=np.int64)
    return HostRules(full_at=full, closed_at=closed, bound=tuple(bound), counted=tuple(counted), checks=padded)


def conflicts(needs: Sequence[HostNeeds]) -> Floats:
    """Per item, how many of the other pods it keeps off its node."""
    sizes: dict[HostGroup, int] = {}
    for need in needs:
        for group in need.counting:
            sizes[group] = sizes.get(group, 0) + need.pods
    return np.array([float(sum(sizes.get(group, 0) for group, _ in need.binding)) for need in needs])


def exclusive(hosts: HostRules, items: int) -> Integers:
    """For each item, the groups of which each of its pods needs a node of its own, because it is kept apart from its
    like."""
    found = np.zeros((items, hosts.groups), dtype=np.int64)
    for item in range(items):
        for group in set(hosts.bound[item]) & set(hosts.counted[item]):
            found[item, group] = hosts.full_at[group, 1] == 1
    return found


def _full_at(group: HostGroup, own: bool) -> int:
    if group.term.kind == "spread":
        return max(0, group.term.max_skew - own + 1)
    return 1

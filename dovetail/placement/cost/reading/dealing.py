"""Deals the zones of spread pods anew, in the order in which the kube-scheduler binds.

Karpenter places the largest pods first, and does not count a pod whose node may still be in several zones. The
kube-scheduler takes pods as they came and counts all of them. A zone that a spread allowed in the one order may be
refused in the other, and then the pod waits for a second round. So each pod that spreads alone bind or count gets a
zone that holds in the kube-scheduler's order, its own if that one does. (Decision record 148.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dovetail.model.pods import Pod
from dovetail.placement.constraints.topology_groups import DomainGroup
from dovetail.placement.cost.reading.compiled import Fixed
from dovetail.placement.cost.reading.pods_read import Member, PodReader


def turn(pod: Pod) -> tuple[int, float, str]:
    """When the kube-scheduler takes the pod up: the most important first, then as they came."""
    return -(pod.priority or 0), pod.created, pod.name


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """The domain groups of one pod, all of them spreads over one key."""

    key: str
    binding: Sequence[tuple[DomainGroup, bool]]
    counting: Sequence[DomainGroup]


class Dealer:
    """Deals the zones of the pods that may move; all others are counted where they are."""

    def __init__(self, reader: PodReader, members: Iterable[Member]) -> None:
        self._reader = reader
        self._members = sorted(members, key=lambda member: turn(member.pod))
        self._counts: dict[DomainGroup, dict[str, int]] = {}
        for member in self._members:
            self._count(member, -1)

    def dealt(self) -> list[Member]:
        """The pods, each with the zone that it gets."""
        found = []
        for member in self._members:
            groups = self._groups(member)
            dealt = member if groups is None else self._with_a_zone(member, groups)
            self._count(dealt, 1)
            found.append(dealt)
        return found

    def _count(self, member: Member, pods: int) -> None:
        fixed = dict(member.fixed)
        for group in self._reader.domain_groups(member.demand.shape):
            value = fixed.get(group.term.key)
            if value is not None:
                counts = self._counts_of(group)
                counts[value] = counts.get(value, 0) + pods

    def _counts_of(self, group: DomainGroup) -> dict[str, int]:
        return self._counts.setdefault(group, dict(group.counts))

    def _groups(self, member: Member) -> _Groups | None:
        """The pod's domain groups; None where it has none, or others than spreads over one key."""
        binding, counting = member.demand.shape.domains, self._reader.domain_groups(member.demand.shape)
        every = [*(group for group, _ in binding), *counting]
        keys = {group.term.key for group in every}
        if len(keys) != 1 or any(group.term.kind != "spread" for group in every):
            return None
        return _Groups(keys.pop(), binding, counting)

    def _with_a_zone(self, member: Member, groups: _Groups) -> Member:
        """A pod that a spread binds in the zone that it has if that one holds, else where the fewest are; one that is
        counted alone where the fewest are, so that those which follow have every zone to choose from."""
        own = dict(member.fixed).get(groups.key)
        known = {domain for group in groups.counting for domain in self._counts_of(group)}
        known |= {domain for group, _ in groups.binding for domain in self._counts_of(group)}
        best, lowest = member, None
        for domain in known:
            fixed: Fixed = tuple(sorted({**dict(member.fixed), groups.key: domain}.items()))
            need = self._reader.need(member.demand.shape, fixed, member.kept, member.weight)
            if need < 0:
                continue
            moves, load = domain != own, self._load(groups, domain)
            score = (self._beyond(groups, domain), *((moves, load) if groups.binding else (load, moves)), domain)
            if lowest is None or score < lowest:
                best, lowest = replace(member, fixed=fixed, need=need), score
        return best

    def _beyond(self, groups: _Groups, domain: str) -> int:
        """How many pods the spreads that bind the pod would be exceeded by there."""
        found = 0
        for group, counts_itself in groups.binding:
            counts = self._counts_of(group)
            after = counts.get(domain, 0) + counts_itself
            found += max(0, after - min(counts.values(), default=0) - group.term.max_skew)
        return found

    def _load(self, groups: _Groups, domain: str) -> int:
        return sum(self._counts_of(group).get(domain, 0) for group in groups.counting)

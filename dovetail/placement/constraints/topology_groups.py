"""How many counted pods are in each place, and which places are left?

For pods with spread or (anti-)affinity (PLC-171 to PLC-181). There are two families of groups. Those on the hostname
keep a mask of nodes and one of drafts per count, because there are thousands of hosts; those on any other key keep a
count per domain. A group belongs to one pass and starts from counts that all passes share.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from dovetail.model.scheduling.requirements import Requirement
from dovetail.placement.constraints.topology_terms import Term
from dovetail.placement.facts.masks import mask_of


class DomainGroup:
    """Counts per domain of a key other than the hostname."""

    __slots__ = ("_by_count", "_limits", "_within", "counts", "every_value", "filled", "term", "version")

    def __init__(self, term: Term, counts: Mapping[str, int]) -> None:
        self.term = term
        # Rises whenever an answer may change, so that a remembered one is seen to be old: with every count of a spread,
        # for the other kinds only when a domain gets its first pod.
        self.version = 0
        self._by_count = term.kind == "spread"
        self.every_value = term.kind in ("anti", "inverse")  # PLC-181: a pod counts for all values that are left
        self._limits: dict[tuple[int, bool], int] = {}  # the highest count that keeps the skew, for this version
        # The domains that a requirement allows, by name; kept with how many were known by then.
        self._within: dict[int, tuple[int, Requirement | None, list[str]]] = {}
        self.counts = dict(counts)
        self.filled = sum(1 for count in self.counts.values() if count)

    def record(self, domain: str) -> None:
        """Count one more pod there; a new domain becomes known."""
        counts = self.counts
        count = counts.get(domain)
        if not count:
            self.filled += 1
            self.version += 1
            self._limits.clear()
            counts[domain] = 1
            return
        counts[domain] = count + 1
        if self._by_count:
            self.version += 1
            self._limits.clear()

    def record_placement(self, final: Requirement | None) -> None:
        """Count a pod on a node with these values (PLC-181): anti-affinity counts all, other kinds only a single
        one."""
        if final is not None and (self.every_value or (len(final.values) == 1 and not final.complement)):
            for value in final.values:
                self.record(value)

    def _minimum(self, wanted: Requirement | None) -> int:
        """The smallest count over the known domains that the pod itself allows (PLC-175)."""
        allowed: Collection[int] = self.counts.values()
        if wanted is not None:
            allowed = [count for domain, count in self.counts.items() if wanted.has(domain)]
        few = self.term.min_domains is not None and len(allowed) < self.term.min_domains
        return 0 if few else min(allowed, default=0)

    def within_skew(self, wanted: Requirement | None, have: Requirement | None, own: bool) -> dict[str, int]:
        """The domains that the node may have and that keep the skew, each with its count (PLC-177)."""
        most = self.most(wanted, own)
        return {d: n for d, n in self.counts.items() if n <= most and (have is None or have.has(d))}

    def most(self, wanted: Requirement | None, own: bool) -> int:
        """The highest count with which a domain of a spread may take another pod (PLC-177)."""
        key = (id(wanted), own)
        most = self._limits.get(key)
        if most is None:
            most = self._limits[key] = self.term.max_skew + self._minimum(wanted) - own
        return most

    def lowest_within_skew(self, wanted: Requirement | None, have: Requirement | None, own: bool) -> tuple[str, ...]:
        """The domains of the lowest count, by name, if they keep the skew (PLC-177), for a spread that is the only one
        on its key."""
        counts = self.counts
        known = self._within.get(id(have))
        if known is None or known[0] != len(counts):
            allowed = sorted(counts) if have is None else [domain for domain in sorted(counts) if have.has(domain)]
            known = self._within[id(have)] = (len(counts), have, allowed)
        allowed = known[2]
        here = [counts[domain] for domain in allowed]
        least = min(here, default=None)
        if least is None or least > self.most(wanted, own):
            return ()
        return tuple([domain for domain, count in zip(allowed, here, strict=True) if count == least])

    def filled_domains(self, wanted: Requirement | None, have: Requirement | None) -> list[str]:
        """The domains with a pod that this one must be near (PLC-179)."""
        return [
            d
            for d, n in self.counts.items()
            if n and (wanted is None or wanted.has(d)) and (have is None or have.has(d))
        ]

    def may_start(self, wanted: Requirement | None) -> bool:
        """Whether no allowed domain holds such a pod yet, so a pod that selects itself may be the first (PLC-179)."""
        return not self.filled or not any(n and (wanted is None or wanted.has(d)) for d, n in self.counts.items())

    def known_domains(self, wanted: Requirement | None, have: Requirement | None) -> list[str]:
        """The known domains that the pod and the node allow."""
        return [d for d in self.counts if (wanted is None or wanted.has(d)) and (have is None or have.has(d))]

    def empty_domains(self, wanted: Requirement | None, have: Requirement | None) -> list[str]:
        """The known domains without a pod to keep away from (PLC-180)."""
        return [
            d
            for d, n in self.counts.items()
            if not n and (wanted is None or wanted.has(d)) and (have is None or have.has(d))
        ]


class Levels:
    """How many pods are on each host: for each count k, the hosts that have more than k, as a mask.

    Copies share the counts that they started from and keep only what has changed since.
    """

    __slots__ = ("_base", "_changed", "_masks")  # the list of masks is changed, never replaced: see `masks`

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._base: Mapping[int, int] = counts or {}
        self._changed: dict[int, int] = {}
        self._masks: list[int] = []
        if self._base:
            self._masks = _masks(self._base)

    def record(self, host: int) -> int:
        """Count one more pod there; returns how many there were before."""
        changed, masks = self._changed, self._masks
        count = changed.get(host)
        if count is None:
            count = self._base.get(host, 0)
        changed[host] = count + 1
        if count == len(masks):
            masks.append(1 << host)
        else:
            masks[count] |= 1 << host
        return count

    def remove(self, host: int) -> None:
        """Count one pod less there."""
        count = self.count(host) - 1
        self._changed[host] = count
        self._masks[count] &= ~(1 << host)

    @property
    def masks(self) -> list[int]:
        """The hosts with more than k pods, for each k. The list stays the same object, for callers that ask very
        often."""
        return self._masks

    def at_least(self, count: int) -> int:
        """The hosts with that many pods or more; the count is at least 1."""
        return self._masks[count - 1] if count <= len(self._masks) else 0

    def count(self, host: int) -> int:
        found = self._changed.get(host)
        return self._base.get(host, 0) if found is None else found

    def copy(self) -> "Levels":
        """An independent copy of levels that have not changed since they were made."""
        other = Levels()
        other._base, other._masks = self._base, list(self._masks)
        return other


def _masks(counts: Mapping[int, int]) -> list[int]:
    """The hosts with more than k pods, for each k. By numpy: setting a single bit of an integer would copy all of
    it."""
    by_host = np.zeros(max(counts) + 1, dtype=np.int64)
    by_host[list(counts)] = list(counts.values())
    return [mask_of(by_host > count) for count in range(int(by_host.max()))]


class HostGroup:
    """Counts per host: existing nodes by their number, drafts by theirs."""

    __slots__ = ("drafts", "filled", "hosted", "nodes", "term")

    def __init__(self, term: Term, nodes: Levels, filled: int, hosted: bool) -> None:
        self.term = term
        self.nodes = nodes
        self.drafts = Levels()
        self.filled = filled  # hosts with at least one pod, also those of leaving nodes
        self.hosted = hosted  # affinity to a DaemonSet's pods: one comes to each new host that its template admits

    def record(self, levels: Levels, host: int) -> None:
        """Count one more pod on a host."""
        if not levels.record(host):
            self.filled += 1

    def record_draft(self) -> Callable[[int], object]:
        """A function that counts one more pod on a draft; only affinity needs to know how many hosts have any."""
        if self.term.kind != "affinity":
            return self.drafts.record
        return lambda draft: self.record(self.drafts, draft)

    def rejects(self, levels: Levels, own: bool, every: int) -> int:
        """The hosts in `every` that may not take the pod (PLC-176, PLC-178, PLC-180)."""
        kind = self.term.kind
        if kind == "spread":
            limit = self.term.max_skew - own + 1  # from this count on the skew would be broken
            return levels.at_least(limit) if limit > 0 else every
        if kind == "affinity":
            if self.hosted and levels is self.drafts:
                return 0
            if not self.filled:
                return 0 if own else every
            return every ^ (levels.at_least(1) & every)
        return levels.at_least(1)

    def full_from(self, own: bool) -> int:
        """The count from which on a host rejects the pod, whatever is on other hosts.

        0 if its own count does not decide: for affinity, and for a spread that no host could satisfy.
        """
        kind = self.term.kind
        if kind == "spread":
            return max(0, self.term.max_skew - own + 1)
        return 0 if kind == "affinity" else 1

    def accepts_new(self, own: bool) -> bool:
        """Whether a host that does not exist yet may take the pod."""
        kind = self.term.kind
        if kind == "spread":
            return own <= self.term.max_skew
        return kind != "affinity" or self.hosted or (own and not self.filled)


Group = DomainGroup | HostGroup

# A group that binds a pod, with whether the group counts the pod itself.
OwnDomainGroup = tuple[DomainGroup, bool]
OwnHostGroup = tuple[HostGroup, bool]


def add_counts(counts: dict[str, int], domains: Iterable[str], amount: int) -> None:
    for domain in domains:
        counts[domain] = counts.get(domain, 0) + amount

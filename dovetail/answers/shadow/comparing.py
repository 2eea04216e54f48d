"""Compares what Dovetail would have decided with what Karpenter did on the same cluster.

Pure: the caller passes what was seen and when. Launches are compared by their pods, departures by the node. A command
of Dovetail alone counts once it has lasted as long as its second look would take, and for as long as it lasts.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from dovetail.messages.plans import DisruptionCommand

HOUR: Final = 3600.0
MOST: Final = 500  # comparisons kept; older ones remain in the sums
REMEMBERED_SECONDS: Final = HOUR  # for so long, Karpenter's taking a node after Dovetail would have counts as the same
EXAMPLES: Final = 3
SAME_PRICE: Final = 0.01  # prices that differ by at most this share are the same

Way = Literal["both", "karpenter", "dovetail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedNode:
    """A node that one of them makes. `price`: dollars an hour; None if not known."""

    pool: str
    type: str
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchComparison:
    """What one batch of waiting pods got."""

    at: float
    pods: int
    examples: tuple[str, ...]
    dovetail: tuple[LaunchedNode, ...]
    karpenter: tuple[LaunchedNode, ...]
    saving: float | None = None  # by which Dovetail's nodes would have been cheaper; None if a price is not known
    differs: str = ""  # in what, in words; empty where both agree


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartureComparison:
    """A node that one or both of them take away. `saving`: of Dovetail's command, for all its nodes together."""

    claim: str
    node: str
    pool: str
    way: Way
    dovetail: str = ""  # the reason
    dovetail_since: float | None = None
    karpenter: str = ""  # the reason
    karpenter_at: float | None = None
    with_nodes: int = 1  # how many nodes Dovetail's command takes together
    replacements: int = 0
    saving: float | None = None
    differs: str = ""  # in what, in words; empty where both agree


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowTotals:
    """Sums since the worker began to look."""

    launches_alike: int = 0
    launches_unlike: int = 0
    departures_alike: int = 0
    departures_unlike: int = 0  # both took the node, for different reasons
    only_karpenter: int = 0
    only_dovetail: int = 0  # at present
    dropped: int = 0  # that Dovetail would have begun, but that lapsed before Karpenter did anything
    not_compared: int = 0  # nodes that left without a disruption: by a person or an interruption
    launches_saving: float = 0.0  # dollars an hour by which Dovetail's launches would have been cheaper
    saving_now: float = 0.0  # dollars an hour of what Dovetail alone would do now
    saved: float = 0.0  # dollars: the same, over the time that it lasted


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowReport:
    """All comparisons, newest last."""

    since: float
    now: float
    looks: int  # decisions about disruption so far
    totals: ShadowTotals
    launches: tuple[LaunchComparison, ...] = ()
    departures: tuple[DepartureComparison, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneClaim:
    """A claim that Karpenter or somebody else began to delete. `reason`: empty if no disruption marked it."""

    claim: str
    node: str
    pool: str
    reason: str


@dataclass(slots=True, kw_only=True)
class _Wish:
    """A command that Dovetail would begin."""

    command: DisruptionCommand
    since: float
    hold: float  # seconds until it would have been begun
    until: float | None = None  # None: it still lasts
    met: bool = False  # Karpenter has taken one of its nodes

    def begun(self, now: float) -> bool:
        """Whether it lasted until its second look."""
        return (now if self.until is None else self.until) - self.since >= self.hold


@dataclass(slots=True)
class Comparing:
    since: float
    looks: int = 0
    launches: deque[LaunchComparison] = field(default_factory=lambda: deque(maxlen=MOST))
    departures: deque[DepartureComparison] = field(default_factory=lambda: deque(maxlen=MOST))
    _counts: Counter[str] = field(default_factory=Counter)
    _launches_saving: float = 0.0
    _saved: float = 0.0
    _counted_to: float = 0.0  # savings are summed up to this time
    _standing: dict[tuple[str, ...], _Wish] = field(default_factory=dict)
    _ended: "OrderedDict[tuple[str, ...], _Wish]" = field(default_factory=OrderedDict)

    def decided(self, commands: Iterable[DisruptionCommand], hold: float, now: float) -> None:
        """A look at disruption: these commands would begin, after `hold` seconds."""
        self._count_savings(now)
        self.looks += 1
        found = {tuple(target.claim for target in command.targets): command for command in commands}
        for key in [key for key in self._standing if key not in found]:
            self._end(key, now)
        for key, command in found.items():
            known = self._standing.get(key)
            if known is None:
                self._standing[key] = _Wish(command=command, since=now, hold=hold)
            else:
                known.command = command
        self._forget(now)

    def launched(self, comparison: LaunchComparison) -> None:
        """A batch of pods has its nodes."""
        if not comparison.dovetail and not comparison.karpenter:
            return
        self.launches.append(comparison)
        self._counts["launches_unlike" if comparison.differs else "launches_alike"] += 1
        self._launches_saving += comparison.saving or 0.0

    def left(self, gone: GoneClaim, now: float) -> None:
        if not gone.reason:
            self._counts["not_compared"] += 1
            return
        self._count_savings(now)
        wish = self._wish_for(gone.claim)
        if wish is None:
            compared = DepartureComparison(
                claim=gone.claim,
                node=gone.node,
                pool=gone.pool,
                way="karpenter",
                karpenter=gone.reason,
                karpenter_at=now,
                differs="Dovetail had not planned it",
            )
        else:
            wish.met = True
            compared = _compared(wish, gone.claim, gone, now)
        self.departures.append(compared)
        self._counts[_counted_as(compared)] += 1

    def report(self, now: float, notes: tuple[str, ...] = ()) -> ShadowReport:
        """The whole comparison, with what Dovetail alone would do now."""
        self._count_savings(now)
        alone = [wish for wish in self._standing.values() if wish.begun(now) and not wish.met]
        only = tuple(
            _compared(wish, target.claim, None, now)
            for wish in sorted(alone, key=lambda wish: wish.since)
            for target in wish.command.targets
        )
        counts = {name: self._counts[name] for name in _COUNTED}
        totals = ShadowTotals(
            **counts,
            only_dovetail=len(only),
            launches_saving=self._launches_saving,
            saving_now=sum(wish.command.savings for wish in alone),
            saved=self._saved,
        )
        return ShadowReport(
            since=self.since,
            now=now,
            looks=self.looks,
            totals=totals,
            launches=tuple(self.launches),
            departures=(*self.departures, *only),
            notes=notes,
        )

    def _count_savings(self, now: float) -> None:
        """Add the savings since the last time, for as long as each command lasted."""
        for wish in self._standing.values():
            begun = max(self._counted_to, wish.since + wish.hold)
            if not wish.met and now > begun:
                self._saved += wish.command.savings * (now - begun) / HOUR
        self._counted_to = now

    def _end(self, key: tuple[str, ...], now: float) -> None:
        wish = self._standing.pop(key)
        wish.until = now
        self._ended[key] = wish
        self._ended.move_to_end(key)

    def _forget(self, now: float) -> None:
        """Drop what ended so long ago that the same act of Karpenter's would be another decision."""
        for key, wish in list(self._ended.items()):
            if wish.until is None or now - wish.until <= REMEMBERED_SECONDS:
                break
            del self._ended[key]
            if wish.begun(now) and not wish.met:
                self._counts["dropped"] += 1

    def _wish_for(self, claim: str) -> _Wish | None:
        """The newest command that would take that node."""
        for wishes in (self._standing, self._ended):
            for key in reversed(list(wishes)):
                if claim in key:
                    return wishes[key]
        return None


_COUNTED: Final = (
    "launches_alike",
    "launches_unlike",
    "departures_alike",
    "departures_unlike",
    "only_karpenter",
    "dropped",
    "not_compared",
)


def _compared(wish: _Wish, claim: str, gone: GoneClaim | None, now: float) -> DepartureComparison:
    command = wish.command
    target = next(each for each in command.targets if each.claim == claim)
    return DepartureComparison(
        claim=claim,
        node=target.node,
        pool=target.pool,
        way="dovetail" if gone is None else "both",
        differs=_difference(command.reason, gone),
        dovetail=command.reason,
        dovetail_since=wish.since,
        karpenter=gone.reason if gone is not None else "",
        karpenter_at=now if gone is not None else None,
        with_nodes=len(command.targets),
        replacements=len(command.replacements),
        saving=command.savings,
    )


def _difference(ours: str, gone: GoneClaim | None) -> str:
    if gone is None:
        return "Karpenter leaves it"
    return "" if ours == gone.reason else f"for {ours} instead of {gone.reason}"


def _counted_as(compared: DepartureComparison) -> str:
    if compared.way == "karpenter":
        return "only_karpenter"
    return "departures_unlike" if compared.differs else "departures_alike"


def compared_launch(
    at: float, pods: Sequence[str], dovetail: tuple[LaunchedNode, ...], karpenter: tuple[LaunchedNode, ...]
) -> LaunchComparison:
    """What a batch of pods, by name, would have got and has got."""
    ours, theirs = price_of(dovetail), price_of(karpenter)
    saving = None if theirs is None or ours is None else theirs - ours
    differs = ""
    if (would := Counter(node.pool for node in dovetail)) != (has := Counter(node.pool for node in karpenter)):
        differs = f"{nodes_text(would)} instead of {nodes_text(has)}"
    elif saving is not None and theirs is not None and abs(saving) > SAME_PRICE * theirs:
        differs = f"${ours:.4f}/h instead of ${theirs:.4f}/h"
    return LaunchComparison(
        at=at,
        pods=len(pods),
        examples=tuple(sorted(pods)[:EXAMPLES]),
        dovetail=dovetail,
        karpenter=karpenter,
        saving=saving,
        differs=differs,
    )


def price_of(nodes: Iterable[LaunchedNode]) -> float | None:
    """The total price; None if one is not known."""
    prices = [node.price for node in nodes]
    return None if None in prices else sum(price for price in prices if price is not None)


def nodes_text(pools: Mapping[str, int]) -> str:
    """2 of default, 1 of gpu."""
    return ", ".join(f"{count} of {pool}" for pool, count in sorted(pools.items())) or "none"

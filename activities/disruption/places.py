"""Takes places in a NodePool's rates for nodes that are about to be marked, and gives back those that are not used.

The one place that an open breaker leaves for a try is taken in the same way.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.shared.writes.pool_revisions import Annotations, changed, revise_pool
from dovetail.messages.plans import Target
from dovetail.model.pools import NodePool
from dovetail.ports.objects import NodePools
from dovetail.rules.brake.breakers import breaker_of, probe_of, with_breaker, without_probe
from dovetail.rules.brake.hold import by_breaker, left_of_breaker
from dovetail.rules.rate.hold import by_rate, left_of_rates
from dovetail.rules.rate.rates import begins, with_begun, without_begun
from dovetail.rules.said import Cause, Said


class Places:
    """The places that NodePools remember. One write at a time: the marks of one plan would otherwise conflict with each
    other."""

    def __init__(self, pools: NodePools, pauses: LivePauses, now: Callable[[], float]) -> None:
        self.pools, self.pauses, self.now = pools, pauses, now
        self._one = asyncio.Lock()

    async def take(self, owner: str, cause: Cause, targets: Sequence[Target], *, whole: bool) -> dict[str, str]:
        """Take a place for each claim; answers the claims without one, and why. `whole`: for all claims of a pool, or
        for none. A retry moves its places to this moment, because the marks come after it."""
        why_not: dict[str, str] = {}
        for pool, uids in _by_pool(targets):
            async with self._one:
                why_not.update(await self._take(_Asked(pool, owner, cause, whole), uids))
        return why_not

    async def give_back(self, owner: str, cause: Cause, unused: Sequence[Target], begun: frozenset[str]) -> None:
        """Give back the places of nodes that were not marked after all. `begun`: pools whose try continues with other
        nodes."""
        for name, uids in _by_pool(unused):
            async with self._one:
                pool = await self.pools.read(name)
                if pool is not None:
                    keeps = name in begun
                    await revise_pool(self.pools, pool, partial(_without_change, owner, uids, cause, keeps))

    async def _take(self, of: "_Asked", uids: dict[str, str]) -> dict[str, str]:
        said, cause = await self.pauses.said(of.pool), of.cause
        pool = said.pool
        why_not: dict[str, str] = {}
        if pool is None:
            return why_not

        def change_of(found: NodePool) -> Annotations:
            now, free = self.now(), _without(found, of.owner, uids.values(), cause)
            asked = replace(said, now=now, pool=free)
            left = min(
                (n for n in (left_of_rates(asked, cause), left_of_breaker(asked, cause)) if n is not None), default=None
            )
            granted = len(uids) if left is None else min(left, len(uids))
            granted = 0 if of.whole and granted < len(uids) else granted
            held = by_breaker(asked, cause) or by_rate(asked, cause)
            words = held.message if held else f"rates of NodePool {of.pool} let {left} more nodes begin for {cause} now"
            why_not.clear()
            why_not.update(dict.fromkeys(list(uids)[granted:], words))
            new = [begins(of.owner, uid, cause, now) for uid in list(uids.values())[:granted]]
            taken = with_begun(free, new, said.periods, now) if said.periods else free
            known = breaker_of(taken, cause)
            if granted and known is not None and left_of_breaker(asked, cause):
                taken = with_breaker(taken, replace(known, probe=probe_of(of.owner, now)))
            return changed(found, taken)

        await revise_pool(self.pools, pool, change_of)
        return why_not


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which pool's places are asked for, by which disruption, for what, and whether for all nodes or for none."""

    pool: str
    owner: str
    cause: Cause
    whole: bool


def takes_places(said: Said, cause: Cause) -> bool:
    """Whether the NodePool must remember the disruption before the mark."""
    return bool(said.periods) or left_of_breaker(said, cause) is not None


def without_own(said: Said, owner: str, cause: Cause, targets: Sequence[Target]) -> Said:
    """The pool without the places of these claims, so that those of an earlier attempt do not block the next one."""
    if said.pool is None or not takes_places(said, cause):
        return said
    uids = [target.claim_uid for target in targets]
    return replace(said, pool=_without(said.pool, owner, uids, cause))


def _by_pool(targets: Sequence[Target]) -> list[tuple[str, dict[str, str]]]:
    """The UIDs of each pool's claims, by name."""
    grouped = groupby(sorted(targets, key=lambda t: t.pool), key=lambda t: t.pool)
    return [(pool, {t.claim: t.claim_uid for t in found}) for pool, found in grouped]


def _without(pool: NodePool, owner: str, uids: Iterable[str], cause: Cause) -> NodePool:
    return without_probe(without_begun(pool, owner, uids), cause, owner)


def _without_change(owner: str, uids: dict[str, str], cause: Cause, keeps_try: bool, known: NodePool) -> Annotations:
    free = without_begun(known, owner, uids.values())
    return changed(known, free if keeps_try else without_probe(free, cause, owner))

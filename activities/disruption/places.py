"""Takes places in a NodePool's rates for nodes that are about to be marked, and gives back those that are not used."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from dovetail.activities.shared.live_pauses import LivePauses
from dovetail.activities.shared.pool_revisions import Annotations, revise_pool
from dovetail.messages.plans import Target
from dovetail.model import names
from dovetail.model.beginnings import Cause, Said, by_rate, left_of_rates
from dovetail.model.pools import NodePool
from dovetail.model.rates import BegunNodes, begun_mark, with_begun, without_begun
from dovetail.ports.objects import NodePools


class Places:
    """The places as NodePools remember them. One write at a time: the marks of one plan would refuse each other's."""

    def __init__(self, pools: NodePools, pauses: LivePauses, now: Callable[[], float]) -> None:
        self.pools, self.pauses, self.now = pools, pauses, now
        self._one = asyncio.Lock()

    async def take(self, owner: str, cause: Cause, targets: Sequence[Target], *, whole: bool) -> dict[str, str]:
        """A place for each, or for which claims there is none, and why. `whole`: for all of a pool's, or for none. A
        second try moves its places to this moment: the marks come after it."""
        why_not: dict[str, str] = {}
        for pool, marks in _by_pool(owner, targets):
            async with self._one:
                why_not.update(await self._take(pool, cause, marks, whole))
        return why_not

    async def give_back(self, owner: str, targets: Sequence[Target]) -> None:
        """The places of nodes that were not marked after all."""
        for name, marks in _by_pool(owner, targets):
            async with self._one:
                pool = await self.pools.read(name)
                if pool is not None:
                    await revise_pool(self.pools, pool, partial(_without, frozenset(marks.values())))

    async def _take(self, name: str, cause: Cause, marks: dict[str, str], whole: bool) -> dict[str, str]:
        said = await self.pauses.said(name)
        pool = said.pool
        why_not: dict[str, str] = {}
        if pool is None:
            return why_not

        def change_of(found: NodePool) -> Annotations:
            now, free = self.now(), without_begun(found, marks.values())
            asked = replace(said, now=now, pool=free)
            left = left_of_rates(asked, cause)
            granted = len(marks) if left is None else min(left, len(marks))
            granted = 0 if whole and granted < len(marks) else granted
            held = by_rate(asked, cause)
            words = held.message if held else f"rates of NodePool {name} let {left} more nodes begin for {cause} now"
            why_not.clear()
            why_not.update(dict.fromkeys(list(marks)[granted:], words))
            new = [BegunNodes(now, cause, mark) for mark in list(marks.values())[:granted]]
            return _change(found, with_begun(free, new, said.periods, now))

        await revise_pool(self.pools, pool, change_of)
        return why_not


def without_own(said: Said, owner: str, targets: Sequence[Target]) -> Said:
    """As if these had no place yet, so that the places of an earlier try do not hold the next one."""
    if said.pool is None or not said.periods:
        return said
    marks = [begun_mark(owner, target.claim_uid) for target in targets]
    return replace(said, pool=without_begun(said.pool, marks))


def _by_pool(owner: str, targets: Sequence[Target]) -> list[tuple[str, dict[str, str]]]:
    """For each pool the marks of its claims."""
    grouped = groupby(sorted(targets, key=lambda t: t.pool), key=lambda t: t.pool)
    return [(pool, {t.claim: begun_mark(owner, t.claim_uid) for t in found}) for pool, found in grouped]


def _without(marks: frozenset[str], known: NodePool) -> Annotations:
    return _change(known, without_begun(known, marks))


def _change(known: NodePool, new: NodePool) -> Annotations:
    text = new.annotations.get(names.BEGUN)
    return {} if text == known.annotations.get(names.BEGUN) else {names.BEGUN: text}

"""No disruption beyond a budget: looks twice a second at the marks, beside everything else that happens.

A mark is judged when it is new. Between a plan and its marks lie seconds, and more while servers are ill, so what a
budget has let go at any moment of the last minute is allowed, of the most nodes that the pool had in that minute.
"""

import math
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cluster.days.looks import looked_at
from worlds.cluster.ground import Ground
from worlds.cluster.objects import owner_of

WINDOW_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What held of a pool from some moment on."""

    at: float
    pool: str
    budget: str = ""
    nodes: int = 0


class BudgetWatch:
    """The budgets and sizes of all pools in the last minute, and every mark that was too much."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moments: list[Moment] = []
        self._known: set[str] | None = None
        self.looks = self.marks = 0
        self.exceeded: list[str] = []

    def allow(self, pool: str, budget: str) -> None:
        """From now on the pool has this budget."""
        self._moments.append(Moment(at=self._clock(), pool=pool, budget=budget))

    def forget(self) -> None:
        """What is marked at the next look is not new: the objects are others."""
        self._known = None

    def look(self, claims: list[Json]) -> None:
        """Judge the marks that are new."""
        self.looks += 1
        by_pool: dict[str, list[Json]] = {}
        for claim in claims:
            by_pool.setdefault(claim["metadata"]["labels"][names.NODE_POOL], []).append(claim)
        marked = {c["metadata"]["uid"] for c in claims if owner_of(c)}
        new = marked - self._known if self._known is not None else set()
        self._known, self.marks = marked, self.marks + len(new)
        for pool, among in by_pool.items():
            self._moments.append(Moment(at=self._clock(), pool=pool, nodes=len(among)))
            self._judge(pool, among, new)

    def _judge(self, pool: str, claims: list[Json], new: set[str]) -> None:
        mine = [c for c in claims if owner_of(c)]
        if not new & {c["metadata"]["uid"] for c in mine}:
            return
        most = self._most(pool)
        if len(mine) > most:
            marked = {c["metadata"]["name"]: owner_of(c) for c in mine}
            self.exceeded.append(f"{pool} lets {most} go, and {len(mine)} are marked: {marked}")

    def _most(self, pool: str) -> int:
        """How many the pool has let go at some moment of the window."""
        now, mine = self._clock(), [m for m in self._moments if m.pool == pool]
        nodes = max((m.nodes for m in mine if m.at > now - WINDOW_SECONDS), default=0)
        budgets = [m for m in mine if m.budget]
        before = [m.budget for m in budgets if m.at <= now - WINDOW_SECONDS][-1:]  # still held when the window began
        within = [m.budget for m in budgets if m.at > now - WINDOW_SECONDS]
        return max((_let_go(budget, nodes) for budget in (*before, *within)), default=0)


def _let_go(budget: str, nodes: int) -> int:
    if budget.endswith("%"):
        return math.ceil(int(budget.removesuffix("%")) * nodes / 100)
    return int(budget)


def watched(ground: Ground, watch: BudgetWatch) -> AbstractAsyncContextManager[None]:
    """It looks within the block."""
    return looked_at(ground, "NodeClaim", watch.look)

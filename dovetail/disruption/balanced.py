"""Whether a consolidation is worth its disturbance, as the policy Balanced weighs it (DIS-120 to DIS-131).

The share of a pool's cost that a command saves is compared with the share of the pool that it disturbs; half as much is
enough. The totals cover all candidates and all nodes of the pool, not only those that a method considers.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dovetail.disruption.commands import Command, Move
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.nodes.costs import pool_cost, reschedule_cost
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.model.objects.pod_rules import is_daemon, is_terminal

POLICY: Final = "Balanced"
WEIGHT: Final = 2  # k: a command may disturb k times the share that it saves
THRESHOLD: Final = 1.0 / WEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one pool costs, and what disturbing all of it would cost."""

    cost: float
    disruption: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    pool: str
    score: float
    savings: float  # as shares of the pool's totals
    disruption: float

    @property
    def is_approved(self) -> bool:
        """Whether the score reaches the threshold (DIS-124)."""
        return self.score >= THRESHOLD

    @property
    def text(self) -> str:
        """The score in upstream's words (DIS-127)."""
        score = "+Inf" if math.isinf(self.score) else f"{self.score:.2f}"
        shares = f"savings {100 * self.savings:.1f}%, disruption {100 * self.disruption:.1f}%"
        return f"score {score} >= threshold {THRESHOLD:.2f} (k: {WEIGHT}, {shares})"


def moves_of(command: Command, scores: Iterable[Score]) -> tuple[Move, ...]:
    """How each pool of the command judges it."""
    by_pool = {score.pool: score for score in scores}
    approved = all(score.is_approved for score in by_pool.values())
    policies = {c.pool.name: c.pool.disruption.policy for c in command.candidates}
    return tuple(
        Move(
            pool=pool,
            policy=policy,
            approved=approved,
            score=by_pool[pool].score if pool in by_pool else None,
            pool_approves=pool not in by_pool or by_pool[pool].is_approved,
        )
        for pool, policy in sorted(policies.items())
    )


class Scales:
    """The totals of a round, and the scores of commands by them."""

    def __init__(self, fleet: Fleet, candidates: tuple[Candidate, ...]) -> None:
        self._fleet = fleet
        self._candidates = candidates

    @cached_property
    def totals(self) -> dict[str, Totals]:
        """The totals of each pool that has a candidate (DIS-121)."""
        by_pool: dict[str, list[Candidate]] = {}
        for candidate in self._candidates:
            by_pool.setdefault(candidate.pool.name, []).append(candidate)
        costs = {c.name: c.cost for c in self._candidates}
        return {
            pool: Totals(cost=self._cost(pool, found), disruption=self._disruption(pool, costs))
            for pool, found in by_pool.items()
        }

    def _cost(self, pool: str, candidates: list[Candidate]) -> float:
        tracked = self._tracked(pool) if self._fleet.settings.profile.weighs_every_claim else 0.0
        return tracked if tracked > 0 else sum(c.price for c in candidates)

    def _tracked(self, pool: str) -> float:
        """What the pool's claims cost (DIS-122)."""
        return pool_cost(pool, self._fleet.snapshot.claims.values(), self._fleet.types_of(pool))

    def _disruption(self, pool: str, costs: dict[str, float]) -> float:
        managed = self._fleet.settings.manages_deletion_costs
        return sum(costs.get(m.name, 0.0) or _disturbance(m, managed) for m in self._fleet.by_pool.get(pool, ()))

    def scores(self, command: Command) -> tuple[Score, ...]:
        """One score for each Balanced pool of the command, by name (DIS-123)."""
        pools = sorted({c.pool.name for c in command.candidates if c.pool.disruption.policy == POLICY})
        return tuple(self._score(pool, command) for pool in pools)

    def _score(self, pool: str, command: Command) -> Score:
        ours = [c for c in command.candidates if c.pool.name == pool]
        savings = command.savings
        if len(ours) < len(command.candidates):
            price = command.price
            savings = savings * (sum(c.price for c in ours) / price) if price > 0 else 0.0
        return self._weigh(pool, savings, sum(c.cost for c in ours))

    def _weigh(self, pool: str, savings: float, disruption: float) -> Score:
        totals = self.totals.get(pool)
        if totals is None or totals.cost <= 0 or totals.disruption <= 0:
            return Score(pool=pool, score=0.0, savings=0.0, disruption=0.0)
        saved, disturbed = savings / totals.cost, disruption / totals.disruption
        if saved <= 0:
            score = 0.0
        elif disturbed == 0:
            score = math.inf
        else:
            score = saved / disturbed
        return Score(pool=pool, score=score, savings=saved, disruption=disturbed)

    def is_worth_simulating(self, candidate: Candidate) -> bool:
        """Whether deleting the candidate could be approved; replacing it saves less (DIS-125)."""
        if candidate.pool.disruption.policy != POLICY:
            return True
        totals = self.totals.get(candidate.pool.name)
        if totals is None or totals.cost <= 0:
            return True
        return self._weigh(candidate.pool.name, candidate.price, candidate.cost).is_approved


def _disturbance(member: Member, managed: bool) -> float:
    """The disturbance of a node that is no candidate: its pods except ended ones and those of DaemonSets (DIS-121)."""
    pods = (p for p in member.pods if not is_terminal(p) and not is_daemon(p))
    return reschedule_cost(pods, managed)

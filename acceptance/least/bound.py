"""A bound on what an answer costs, whoever gives it.

Two steps. First pods are poured: a node may hold any part of a pod, and costs what it holds. Then what each kind is
worth there is asked of whole pods: the most that fits on a node of each choice, solved as a whole-number program, says
how much too high those worths are, and their sum divided by that is a bound (Farley's). Patterns found on the way
change the worths, and the best bound of all rounds is kept.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from acceptance.least.programs import Entries, NotSolved, Program, solve
from acceptance.least.reading import Floats, Question

_NEAR = 1.003  # patterns in part that cost no more than this over the bound: there is nothing left to look for
_INWARD = 0.5  # worths are asked between the newest and those of the best bound, or they would swing
_MOST_RULED = 100_000
_KNAPSACK = 5.0  # seconds for one of them; its own bound holds if it takes longer


@dataclass(frozen=True)
class Least:
    """No answer costs less; and what patterns cost that may be used in part, once there are enough of them."""

    dollars: float
    in_part: float | None


def least_of(question: Question, seconds: float, pouring: float = 600.0) -> Least:
    """The best bound that is found in so many seconds of the processor, once pods are poured. Pouring ends, or
    nothing is known, after `pouring` of the clock."""
    until = time.process_time() + seconds
    poured, worth = _poured(question, pouring)
    if time.process_time() >= until:
        return Least(poured, None)
    return _Rounds(question, poured, worth).run(until)


def _poured(question: Question, seconds: float) -> tuple[float, Floats]:
    """What poured pods cost, and what a pod of each kind is worth. A flow is a part of a kind on a choice."""
    choice, kind = np.nonzero(question.suits)
    # Of very many flows the rules of one node are left out here: they come back with whole pods.
    ruled = len(choice) <= _MOST_RULED
    held = np.concatenate([question.sizes, question.apart.T], axis=1) if ruled else question.sizes
    holds = np.concatenate([question.room, np.tile(question.most, (len(question.price), 1))], axis=1)
    kinds, parts, flows = len(held), held.shape[1], len(choice)
    rows, columns, values = [kind], [np.arange(flows)], [np.ones(flows)]
    for part in range(parts):
        of_choice = kinds + np.arange(len(question.price)) * parts + part
        some = np.flatnonzero(held[kind, part])
        rows += [of_choice[choice[some]], of_choice]
        columns += [some, flows + np.arange(len(question.price))]
        values += [-held[kind[some], part], holds[:, part]]
    low = np.concatenate([question.stock, np.zeros(len(question.price) * parts)])
    found = solve(
        Program(
            cost=np.concatenate([np.zeros(flows), question.price]),
            upper=np.full(flows + len(question.price), np.inf),
            rows=Entries(np.concatenate(rows), np.concatenate(columns), np.concatenate(values)),
            low=low,
            high=np.full(len(low), np.inf),
        ),
        seconds=seconds,
    )
    return found.least, np.maximum(found.worth[:kinds], 0.0)


@dataclass
class _Rounds:
    """Rounds of patterns and worths."""

    question: Question
    best: float
    centre: Floats
    patterns: list[Floats] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)
    most: Floats = field(init=False)

    def __post_init__(self) -> None:
        asked = self.question
        sizes = np.where(asked.sizes > 0, asked.sizes, 1e-12)
        fit = np.floor((asked.room[:, None, :] / sizes[None] + 1e-9).min(axis=2))
        for rule, most in zip(asked.apart, asked.most, strict=True):
            fit = np.where(rule[None, :] > 0, np.minimum(fit, most), fit)
        self.most = np.minimum(fit, asked.stock[None, :]) * asked.suits
        each = np.where(self.most > 0, asked.price[:, None] / np.maximum(self.most, 1), np.inf)
        for kind, choice in enumerate(each.argmin(axis=0).tolist()):
            alone = np.zeros(len(asked.stock))
            alone[kind] = self.most[choice, kind]
            self._add(alone, choice)

    def run(self, until: float) -> Least:
        """Until the patterns cost no more than the bound, nothing new is found, or the time is over."""
        worth, in_part = self.centre, None
        while time.process_time() < until:
            try:
                found = list(self._dearest(worth, until))
                over = max([ratio for ratio, _, _ in found], default=0.0)
                if not found or time.process_time() >= until:
                    break
                bound = float(worth @ self.question.stock) / over
                if bound > self.best:
                    self.best, self.centre = bound, worth / over
                for _, choice, pattern in found:
                    self._add(pattern, choice)
                in_part, newest = self._mixed()
            except NotSolved:
                break  # what has been found holds
            if in_part <= self.best * _NEAR:
                break
            worth = _INWARD * newest + (1 - _INWARD) * self.centre
        return Least(self.best, in_part)

    def _add(self, pattern: Floats, choice: int) -> None:
        self.patterns.append(pattern)
        self.prices.append(float(self.question.price[choice]))

    def _mixed(self) -> tuple[float, Floats]:
        """What the patterns cost, used in part, and what a pod of each kind is worth there."""
        stock, rows = self.question.stock, np.array(self.patterns).T
        free, high = np.full(len(self.prices), np.inf), np.full(len(stock), np.inf)
        found = solve(Program(cost=np.array(self.prices), upper=free, rows=Entries.of(rows), low=stock, high=high))
        return found.least, np.maximum(found.worth, 0.0)

    def _dearest(self, worth: Floats, until: float) -> Iterator[tuple[float, int, Floats]]:
        """Choices with the pods that are worth most on them, over their price; those that cannot be the dearest are
        passed over."""
        prices = self.question.price
        upper = np.array([self._poured_into(choice, worth) for choice in range(len(prices))]) / prices
        dearest = 0.0
        for choice in np.argsort(-upper).tolist():
            if upper[choice] <= max(dearest, 1e-9) or time.process_time() >= until:
                break
            program, kinds = self._knapsack(choice, worth)
            found = solve(program, whole=True, seconds=_KNAPSACK)
            pattern = np.zeros(len(worth))
            pattern[kinds] = np.rint(found.amounts)
            ratio = -found.least / float(prices[choice])
            dearest = max(dearest, ratio)
            yield ratio, choice, pattern

    def _poured_into(self, choice: int, worth: Floats) -> float:
        program, kinds = self._knapsack(choice, worth)
        return -solve(program).least if len(kinds) else 0.0

    def _knapsack(self, choice: int, worth: Floats) -> tuple[Program, list[int]]:
        asked = self.question
        kinds = np.flatnonzero((worth > 1e-12) & (self.most[choice] > 0))
        rows = np.concatenate([asked.sizes[kinds].T, asked.apart[:, kinds]])
        high = np.concatenate([asked.room[choice] + 1e-9, asked.most])
        low = np.full(len(high), -np.inf)
        return Program(
            cost=-worth[kinds], upper=self.most[choice, kinds], rows=Entries.of(rows), low=low, high=high
        ), kinds.tolist()

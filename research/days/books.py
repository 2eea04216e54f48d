"""A week with its books: what `dovetail savings` counts, against the cloud's bill without any move.

`python -m research.days.books --hours 168 --nodes 8`: plays the same week twice under each policy, with moves
and without, and prints the two bills, what lies between them and what the record makes of it. There are spot nodes that
the cloud takes back, a static pool whose image changes, an overlay that corrects a price, workers that are killed for
some minutes, and moves that are called off. Prices stand still: the record has prices of now and no others.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final

from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.lives import joined
from dovetail.answers.record.savings import SavingsAnswer, savings_from
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.messages.plans import DisruptionPlan, ProposedNode
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.pods import Expression
from dovetail.model.pools import Budget
from dovetail.model.reasons.endings import Ending
from dovetail.placement.overlays import overlay
from research.days.fleet import Standing, a_pool
from research.days.load import MINUTE, START
from research.days.market import Key
from research.days.play import INTERRUPTED, Course, Play, Running

STATIC: Final = "static"
REPLICAS: Final = 3
_STATIC_TYPE: Final = "m6i.2xlarge"
_OVERLAID: Final = ("m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "m5.8xlarge")
_KILLED_EVERY: Final = 7 * 60 + 11  # minutes
_AWAY: Final = 3  # minutes, until another worker has taken over
_CALLED_OFF: Final = 9  # each ninth move with replacements
_DRIFTS_AT: Final = (9, 33, 105)  # hours after the beginning


Losses = dict[float, list[Key]]  # what the cloud took back, and when


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """What is played beside load and market."""

    course: Course
    interrupted: float = INTERRUPTED  # of the spot pools, an hour
    static: bool = True
    kills: bool = True


class Books(Play):
    """A play that keeps the record that workflows would leave behind."""

    def __init__(self, week: Week, losses: Losses | None = None) -> None:
        """`losses`: of the week with moves."""
        super().__init__(week.course)
        self._losses, self.losses = losses, Losses()
        self.week = week
        self.entries: list[Entry] = []
        self.bill = 0.0  # of the cloud
        self._minutes = 0
        self._moves: dict[int, int] = {}  # by the command that runs: the place of its entry
        self._begun = 0
        self._with_replacements = 0
        self._because = ""
        self._unlucky: set[int] = set()  # commands that somebody will call off
        self._overlay()
        self.market.steady = True

    def savings(self) -> SavingsAnswer:
        """As the command has it."""
        now, began = self._now(), START + self.course.first_hour * 3600
        return savings_from(
            "bench", Period(since=began), Entries(entries=joined(self.entries)), now, self.fleet.snapshot(now)
        )

    def _now(self) -> float:
        return START + self._minutes * MINUTE

    def _overlay(self) -> None:
        only = Expression(key=names.INSTANCE_TYPE, operator="In", values=_OVERLAID)
        cheaper = NodeOverlay(name="discount", requirements=(only,), price="-25%")
        pool = a_pool()
        found = overlay([cheaper], {pool.name: pool}, {pool.name: self.market.catalogue})
        assert found.verdicts == {"discount": "applied"}
        self.market.take(found.catalogues[pool.name])

    def _minute(self, minute: int, is_first: bool) -> None:
        self._minutes = minute + 1
        first = self.course.first_hour * 60
        if is_first and self.week.static:
            self._static(START + minute * MINUTE)
        if minute - first in [60 * hour for hour in _DRIFTS_AT]:
            self._drift(START + minute * MINUTE)
        super()._minute(minute, is_first)
        if minute >= first:
            self.bill += self.fleet.dollars() / 60

    def _is_away(self) -> bool:
        return self.week.kills and self._minutes % _KILLED_EVERY < _AWAY

    def _provision(self, now: float) -> None:
        if not self._is_away():
            super()._provision(now)

    def _look_again(self, now: float) -> None:
        if not self._is_away():
            super()._look_again(now)

    def _decide(self, now: float) -> None:
        if not self._is_away():
            super()._decide(now)

    # --- what is launched and what ends

    def _launch(self, proposed: Sequence[tuple[ProposedNode, tuple[str, ...]]], plan: str, now: float) -> list[str]:
        launched = super()._launch(proposed, plan, now)
        self.entries += [self._entry("launch", name, now, self.fleet.nodes[name]) for name in launched]
        return launched

    def _end(self, node: str, now: float) -> None:
        standing = self.fleet.nodes[node]
        ended = self._entry("termination", node, now, standing)
        because = self._because or ("" if names.OWNER in standing.claim.annotations else Ending.SPOT.value)
        launched = standing.claim.created
        self.entries.append(replace(ended, outcome="terminated", instance_gone=now, launched=launched, reason=because))
        super()._end(node, now)

    def _entry(self, kind: str, name: str, now: float, standing: Standing) -> Entry:
        instance_type, zone, capacity_type = standing.key
        return Entry(
            kind="launch" if kind == "launch" else "termination",
            workflow=f"{kind}/{name}",
            run="1",
            began=now,
            ended=now,
            outcome="initialised",
            pool=standing.claim.labels[names.NODE_POOL],
            claims=(name,),
            instance_type=instance_type,
            zone=zone,
            capacity_type=capacity_type,
        )

    def _interrupt(self, now: float) -> None:
        """The cloud takes spot nodes back: without moves, at the same moments, one of each kind that it took."""
        spot = [name for name, each in self.fleet.nodes.items() if each.key[2] == names.CAPACITY_SPOT and each.node]
        if self._losses is None:
            taken = [name for name in spot if self._chance.random() < self.week.interrupted / 60]
        else:
            kinds = {self.fleet.nodes[name].key: name for name in reversed(spot)}
            taken = [kinds.pop(key) for key in self._losses.get(now, ()) if key in kinds]
        for name in taken:
            self.losses.setdefault(now, []).append(self.fleet.nodes[name].key)
            self.figures.interrupted += 1
            self._evict(name, now)
            self._end(name, now)

    # --- moves

    def _begin(self, plan: DisruptionPlan, now: float) -> None:
        before = len(self._running)
        super()._begin(plan, now)
        for running in self._running[before:]:
            command = running.command
            self._begun += 1
            entry = Entry(
                kind="disruption",
                workflow=f"disruption/{self._begun}",
                run="1",
                began=now,
                ended=None,
                outcome="running",
                reason=command.reason,
                method=command.method,
                pool=command.targets[0].pool,
                nodes=tuple(each.node for each in command.targets),
                claims=tuple(each.claim for each in command.targets),
                replacements=tuple(running.replacements),
                pods=sum(len(each.pods) for each in command.targets),
                price_before=command.price or None,
                price_after=command.price - command.savings,
                saved=command.savings,
            )
            self._with_replacements += bool(running.replacements)
            if running.replacements and self._with_replacements % _CALLED_OFF == 4:
                self._unlucky.add(id(running))
            self._moves[id(running)] = len(self.entries)
            self.entries.append(entry)

    def _drain(self, now: float) -> None:
        if self._is_away():
            return
        if self.week.kills:
            self._call_off(now)
        before = list(self._running)
        super()._drain(now)
        for running in before:
            if all(running is not each for each in self._running):
                self._over(running, "done", now)

    def _over(self, running: Running, outcome: str, now: float) -> None:
        place = self._moves.pop(id(running))
        self.entries[place] = replace(self.entries[place], outcome=outcome, ended=now)

    def _call_off(self, now: float) -> None:
        """Somebody ends a move whose replacements have been launched: they go, and its nodes stay."""
        for running in list(self._running):
            targets = [each.claim for each in running.command.targets]
            up = [name for name in running.replacements if name in self.fleet.nodes]
            if id(running) in self._unlucky and all(name in self.fleet.nodes for name in targets):
                self._unlucky.discard(id(running))
                self._running.remove(running)
                self.fleet.reopen(targets)
                self._because = Ending.GIVEN_BACK.value
                for name in up:
                    self._evict(name, now)
                    self._end(name, now)
                self._because = ""
                self._over(running, "cancelled", now)

    # --- a static pool

    def _static(self, now: float) -> None:
        pool = a_pool()
        only = Expression(key=names.INSTANCE_TYPE, operator="In", values=(_STATIC_TYPE,))
        on_demand = Expression(key=names.CAPACITY_TYPE, operator="In", values=(names.CAPACITY_ON_DEMAND,))
        template = replace(pool.template, requirements=(only, on_demand))
        disruption = replace(pool.disruption, budgets=(Budget(nodes="1"),))
        found = replace(pool, name=STATIC, uid=STATIC, template=template, replicas=REPLICAS, disruption=disruption)
        self.fleet.pools[STATIC] = found
        self._launch([(node_from_template(found), ())] * REPLICAS, "static", now)

    def _drift(self, now: float) -> None:
        """The image of the static pool has changed."""
        for each in self.fleet.nodes.values():
            if each.claim.labels[names.NODE_POOL] == STATIC:
                drifted = Condition(type=names.DRIFTED, status="True", reason="ImageDrift", changed=now)
                each.claim = replace(each.claim, conditions=(*each.claim.conditions, drifted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One policy's week: the cloud's bill with moves and without, and what the record says."""

    policy: str
    bill: float
    without: float
    answer: SavingsAnswer
    interrupted: int
    others: tuple[float, ...] = ()  # bills without moves, where the kube-scheduler drew otherwise among equal nodes

    @property
    def between(self) -> float:
        """Dollars that the cloud was paid less."""
        return self.without - self.bill

    @property
    def off(self) -> float:
        """By which share of these the record is wrong."""
        return self.answer.total.saved / self.between - 1

    @property
    def beside_bill(self) -> float:
        """By which share the time without moves, as the record has it, is dearer than it was."""
        return (self.bill + self.answer.total.saved) / self.without - 1

    @property
    def chance(self) -> str:
        """How far the weeks without moves lie apart, and where what is claimed lies among them."""
        saved = [bill - self.bill for bill in (self.without, *self.others)]
        mean, claimed = fmean(saved), self.answer.total.saved
        return (
            f"In {len(saved)} weeks without moves that differ in ties ${min(saved):.2f} to ${max(saved):.2f} were "
            f"saved, ±{stdev(saved) / mean:.1%} of the mean: `savings` is {claimed / mean - 1:+.1%} beside that, "
            f"{(claimed - mean) / (mean + self.bill):+.1%} of the bill without."
        )

    @property
    def text(self) -> str:
        total = self.answer.total
        text = (
            f"{self.policy}: ${self.bill:.2f} with moves, ${self.without:.2f} without: ${self.between:.2f} less. "
            f"`savings` says ${total.saved:.2f} beside a bill of ${total.bill or 0:.2f}: {self.off:+.1%} of what was "
            f"saved, {self.beside_bill:+.1%} of the bill without. {total.moves} nodes moved, "
            f"{total.undone} called off, {total.back} came back, {self.interrupted} interrupted."
        )
        return f"{text} {self.chance}" if self.others else text


def compared(week: Week, ties: int = 0) -> Compared:
    """The same week with moves and without, and without once more for so many other ties."""
    moving = Books(week)
    figures = moving.run(lambda _: None)
    without, *others = (_without(week, moving.losses, number) for number in range(ties + 1))
    return Compared(
        policy="cost" if week.course.cost else "default",
        bill=moving.bill,
        without=without,
        answer=moving.savings(),
        interrupted=figures.interrupted,
        others=tuple(others),
    )


def _without(week: Week, losses: Losses, ties: int) -> float:
    """The bill of the cloud."""
    still = Books(replace(week, course=replace(week.course, moves=False, ties=ties)), losses)
    still.run(lambda _: None)
    return still.bill


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(prog="python -m research.days.books")
    parser.add_argument("--policy", choices=("default", "cost", "both"), default="both")
    parser.add_argument("--hours", type=int, default=168)
    parser.add_argument("--nodes", type=float, default=8.0, help="of 16 cpus, that the load fills at its peak")
    parser.add_argument("--steps", type=int, default=30, help="of a search, for each thousand of pods begun")
    parser.add_argument("--every", type=int, default=20, help="minutes between decisions about disruption")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interrupted", type=float, default=0.002, help="of the spot pools, an hour")
    parser.add_argument("--ties", type=int, default=0, help="more weeks without moves, that differ in ties alone")
    given = parser.parse_args()
    for policy in ("default", "cost") if given.policy == "both" else (given.policy,):
        course = Course(
            cost=policy == "cost",
            hours=given.hours,
            nodes=given.nodes,
            steps=given.steps,
            every=given.every,
            seed=given.seed,
        )
        print(compared(Week(course=course, interrupted=given.interrupted), given.ties).text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

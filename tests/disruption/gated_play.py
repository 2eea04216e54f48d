"""Plays of roll-outs with gates that ask, an order and a longest time, on the stage of `fraction_play.py`.

Prometheus passes, fails, is silent, answers what is no number, and flaps. Two workers ask it, each for itself; what one
was told dies with it. What was answered is kept here as it was, so that no gate is judged by the product's own verdict.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, nan
from typing import Final

from dovetail.activities.upkeep.time_rules import questions_of
from dovetail.model import names
from dovetail.model.own.gates import AlertsRule, Answer, AskedGate, QueryRule, Series
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollouts import BEGUN, Intent, Order, Rollout, RolloutPlan
from dovetail.model.snapshot import Snapshot
from tests.disruption.fraction_play import Play, a_policy, play_on

HOUR: Final = 3600.0
WORKERS: Final = 2
MOODS: Final = ("well", "well", "well", "ill", "silent", "odd", "flapping")
ERRORS: Final = AskedGate(name="slo", query=QueryRule(expression="errors", most=0.01))
ALERTS: Final = AskedGate(name="alerts", alerts=AlertsRule())


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was true of a question when it was answered."""

    at: float
    answer: str = ""  # "well", "ill", or something that is neither
    ill: int = 0  # how many were, without one that was well


@dataclass
class GatedPlay(Play):
    """With what Prometheus says, and what has been written down of it."""

    moods: dict[str, str] = field(default_factory=dict)  # by question
    wind: float = 0.0  # how often one changes
    told: list[dict[str, Answer]] = field(default_factory=lambda: [{} for _ in range(WORKERS)])
    was: dict[tuple[str, float], str] = field(default_factory=dict)  # what was true of the answer of that moment
    using: Mapping[str, Answer] = field(default_factory=dict)  # by the worker that looks now
    written: dict[str, Told] = field(default_factory=dict)  # by question, the latest that was
    failed_at: float = -inf  # when it was last written down that a gate fails
    about: tuple[str, float] = "", 0.0  # the roll-out and its beginning that this is written of
    results: set[str] = field(default_factory=set)

    # What Prometheus and the workers do.

    def others(self) -> None:
        """Workers ask what is due, whether Temporal is there or not; the weather changes, and workers die."""
        wanted = questions_of(self.world({}, self.pool, self.rollouts))
        for answers in self.told:
            if self.chosen.random() < self.wind / 5:
                answers.clear()
            for question, every in wanted.items():
                if question not in answers or self.now - answers[question].at >= every:
                    answers[question] = self.asked(question)
        for question in wanted:
            if self.chosen.random() < self.wind:
                self.moods[question] = self.chosen.choice(MOODS)

    def asked(self, question: str) -> Answer:
        """What Prometheus answers now. At one moment it says one thing."""
        mood, at = self.moods.get(question, "well"), float(ceil(self.now))
        truth = self.was.setdefault((question, at), self.chosen.choice(["well", "ill"]) if mood == "flapping" else mood)
        is_query = question == ERRORS.question
        if truth == "silent" or (truth == "odd" and not is_query):
            return Answer(at=at, fault="it did not answer")
        if truth == "odd":
            return Answer(at=at, samples=(Series(value=0.001), Series(value=nan))[:: self.chosen.choice([1, -1])])
        if is_query:
            return Answer(at=at, samples=(Series(value=0.5 if truth == "ill" else 0.001),))
        return Answer(at=at, samples=(Series(labels=(("alertname", "Down"),), value=1.0),) if truth == "ill" else ())

    def answers(self) -> Mapping[str, Answer]:
        """Those of the worker that looks."""
        self.using = self.chosen.choice(self.told)
        return self.using

    def write(self, rollout: Rollout) -> None:
        """A step goes on only by answers that are well, and after a whole soak in which none has failed."""
        live = self.rollouts.get(rollout.name)
        if live is not None and live.status is not rollout.status:
            if rollout.status.state in BEGUN:
                self.notes(rollout)
            known = [each.name for each in live.steps]
            before, after = live.status.step, rollout.status.step
            if before in known and after in known[known.index(before) + 1 :] and rollout.wants != Intent.PROMOTE:
                self.goes_on(live, known.index(before))
        self.results |= {str(each.result) for each in rollout.status.asked}
        super().write(rollout)

    def notes(self, rollout: Rollout) -> None:
        """What is written down of the answers that were used; another target forgets those of the one before."""
        about = rollout.uid, rollout.status.begun
        if about != self.about:
            self.about, self.written, self.failed_at = about, {}, -inf
            if not rollout.status.asked:
                return
        for gate in rollout.gates:
            answer, known = self.using.get(gate.question), self.written.get(gate.question, Told(at=-inf))
            if answer is None or answer.at <= known.at:
                continue
            truth = self.was[(gate.question, answer.at)]
            ill = known.ill + 1 if truth == "ill" else 0 if truth == "well" else known.ill
            self.written[gate.question] = Told(at=answer.at, answer=truth, ill=ill)
            if truth == "ill" and ill >= gate.failures:
                self.failed_at = self.now

    # What holds.

    def goes_on(self, live: Rollout, number: int) -> None:
        """Its next step begins."""
        late = self.why_late(live) or self.why_blind(live)
        assert not late, f"a step goes on: {late}\n{self.told_so_far}"
        soaked = self.now - self.failed_at
        is_taken_back = self.target == ("1", "image-1")  # what nodes ran before the first change needs no canary
        assert is_taken_back or soaked >= live.steps[number].soak, f"a gate failed {soaked} s ago\n{self.told_so_far}"

    def why_blind(self, live: Rollout) -> str:
        """Which gate nothing good is known of, or only something old."""
        for gate in live.gates:
            known = self.written.get(gate.question)
            if known is None or known.answer != "well" or self.now - known.at > 2 * gate.every + 60.0:
                return f"{gate.name}: {known}"
        return ""

    def why_late(self, live: Rollout) -> str:
        """That it has gone on for too long."""
        end = inf if live.longest is None else live.status.begun + live.longest
        return f"its end was {self.now - end} s ago" if self.now >= end else ""

    def holds(self, act: str, was: int) -> None:
        """Nor is a node marked while a gate does not pass, or once the roll-out has gone on for too long."""
        super().holds(act, was)
        for live in self.rollouts.values():
            if act == "mark" and live.status.state in BEGUN and live.wants != Intent.PROMOTE:
                why = self.why_late(live) or self.why_blind(live)
                assert not why, f"a node is marked: {why}\n{self.told_so_far}"

    def takes(self, world: Snapshot, claims: Sequence[str]) -> None:
        """In its order: none stays that comes before one of these."""
        ours = [each for each in world.rollouts.values() if not each.is_over and not each.goes_back]
        if not claims or len(ours) != 1:
            return
        taken = self.taken(world)
        plans = {world.claims[name].annotations[names.OWNER].rpartition("/")[2] for name in taken}

        def place(name: str) -> tuple[str, float, str]:
            claim = world.claims[name]
            return claim.labels[names.ZONE] if ours[0].order == Order.ZONE else "", claim.created, claim.node_name

        stay = [
            name
            for name, claim in world.claims.items()
            if claim.is_true(names.DRIFTED) and name not in taken and self.plan_of(claim) not in plans
        ]
        first = sorted(stay, key=place)[: len(claims)]
        assert set(first) == set(claims), f"{first} come before {claims}\n{self.told_so_far}"

    @staticmethod
    def taken(world: Snapshot) -> set[str]:
        """What has a mark."""
        return {name for name, claim in world.claims.items() if names.OWNER in claim.annotations}

    @property
    def told_so_far(self) -> str:
        """The story."""
        return "\n".join(self.story)

    # What people do.

    def zone(self) -> str:
        """Any."""
        return self.chosen.choice(["z1", "z2", "z3"])

    def restep(self) -> None:
        """Somebody edits steps, how often a gate asks, or how long it may last."""
        super().restep()
        for rollout in list(self.rollouts.values()):
            gates = tuple(replace(gate, every=self.chosen.choice([15.0, 60.0, 600.0])) for gate in rollout.gates)
            longest = self.chosen.choice([rollout.longest, None, 6 * HOUR])
            self.write(replace(rollout, gates=gates, longest=longest, generation=rollout.generation + 1))


def a_gated_policy(chosen: random.Random) -> Policy:
    """Any of them, with at least one gate."""
    policy = a_policy(approve=chosen.random() < 0.2, stable=chosen.random() < 0.7)
    which = chosen.choice([[ERRORS], [ALERTS], [ERRORS, ALERTS]])
    gates = [replace(g, every=chosen.choice([15.0, 60.0, 300.0]), failures=chosen.choice([1, 1, 3])) for g in which]
    plan = replace(
        policy.rollout or RolloutPlan(),
        gates=tuple(gates),
        order=chosen.choice([Order.AGE, Order.ZONE]),
        longest=chosen.choice([None, None, 1.5 * HOUR, 6 * HOUR]),
        rolls_back=chosen.random() < 0.3,
    )
    return replace(policy, rollout=plan)


def gated(seed: str) -> GatedPlay:
    """One of them, to its end; the seed repeats it."""
    chosen = random.Random(seed)
    play = GatedPlay(chosen, a_gated_policy(chosen), wind=chosen.choice([0.0, 0.005, 0.02, 0.1]))
    play_on(play)
    return play

"""What is asked of the one Prometheus in the worker's settings, and what an answer means for a roll-out or for nodes.

A rule names alerts or an expression, never an address. The unknown never passes: no answer, an empty one, no number.
Each answer is judged once, and the verdict is kept in the status of the object that asks, with the moment of the
answer: for every reader, one that is too old lets nothing begin.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isnan
from typing import Annotated, Final

from dovetail.model.own.forms import Form, Key, Moment, MomentIfEver, Number, between
from dovetail.model.values.listing import shown
from dovetail.model.values.quoting import one_line
from dovetail.model.values.time import format_time

EVERY: Final = 60.0  # seconds between two questions, unless a rule says otherwise
NOT_ASKED: Final = "it has not been asked yet"
WRITTEN: Final = 60.0  # seconds for which an unchanged verdict is not written again
_GRACE: Final = 60.0  # seconds beyond two questions for which an answer counts
_NAMED: Final = 3
_WORDS: Final = 250  # characters of what an answer says: each gate of a roll-out has its own in the status
_ALERT: Final = "alertname"


class GateResult(StrEnum):
    PASSING = "Passing"
    UNKNOWN = "Unknown"  # which never passes
    FAILING = "Failing"


_WORST_FIRST: Final = (GateResult.FAILING, GateResult.UNKNOWN, GateResult.PASSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of an answer: its labels, and its value now."""

    labels: tuple[tuple[str, str], ...] = ()
    value: float

    def label(self, name: str) -> str:
        """The label's value; empty if it has none."""
        return dict(self.labels).get(name, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a question. `at`: when, in whole seconds; `fault`: why nothing is known."""

    at: float
    samples: tuple[Series, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """What a gate says by the last answer. `asked`: when that was; `failed`: how often it has failed since an
    answer that passed; `since`: since when the verdict is the same."""

    name: str
    result: GateResult = GateResult.UNKNOWN
    asked: MomentIfEver = 0.0
    since: Moment | None = None
    failed: int = 0
    message: Annotated[str, Key(absent="")] = NOT_ASKED

    @property
    def words(self) -> str:
        """The verdict for people; empty if there is nothing to say."""
        return f"gate {self.name} is {self.result}: {self.message}" if self.message else ""


def _alerts(selector: str) -> str:
    if "alertstate" in selector:
        raise ValueError("alertstate cannot be chosen, alerts that fire are meant")
    return selector


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsRule:
    """No alert with the labels of `firing` fires, except those with the labels of `ignore`."""

    firing: Annotated[str, Form(_alerts)] = "{}"
    ignore: Annotated[str, Form(_alerts)] = ""

    @property
    def question(self) -> str:
        ours = f"ALERTS{_firing(self.firing)}"
        return f"{ours} unless ALERTS{_firing(self.ignore)}" if self.ignore else ours

    def finds(self, samples: Sequence[Series]) -> tuple[GateResult, str]:
        """Passing if nothing fires."""
        firing = Counter(each.label(_ALERT) for each in samples)
        if not firing:
            return GateResult.PASSING, ""
        named = [f"{name} ({number})" if number > 1 else name for name, number in sorted(firing.items())]
        return GateResult.FAILING, one_line(f"alerts fire: {shown(named, _NAMED)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRule:
    """Every value of the expression is at least and at most that."""

    expression: Annotated[str, Key("expr")]
    least: Annotated[Number | None, Key("min")] = None
    most: Annotated[Number | None, Key("max")] = None

    def finds(self, samples: Sequence[Series]) -> tuple[GateResult, str]:
        """The worst of them; if one is no number, nothing is known."""
        if not samples:
            return GateResult.UNKNOWN, "the answer is empty: no series has a value now"
        if any(isnan(each.value) for each in samples):
            return GateResult.UNKNOWN, "the answer is no number"
        low, high = min(each.value for each in samples), max(each.value for each in samples)
        if self.most is not None and high > self.most:
            return GateResult.FAILING, f"{high:g} is more than {self.most:g}"
        if self.least is not None and low < self.least:
            return GateResult.FAILING, f"{low:g} is less than {self.least:g}"
        return GateResult.PASSING, f"{high:g}" if low == high else f"{low:g} to {high:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGate:
    """One question of an object, about alerts or a query. `failures`: how many failing answers in a row fail it."""

    name: str
    alerts: AlertsRule | None = None
    query: QueryRule | None = None
    every: Annotated[float, Key("query.every"), between("15s", "10m")] = EVERY
    failures: Annotated[int, Key("query.failures")] = 1

    @property
    def question(self) -> str:
        if self.query is not None:
            return self.query.expression
        return (self.alerts or AlertsRule()).question

    @property
    def counts_for(self) -> float:
        """How many seconds an answer counts for."""
        return 2 * self.every + _GRACE

    def judged(self, known: GateVerdict | None, answer: Answer | None, now: float) -> GateVerdict:
        """What it says now. An answer that is the same as one a moment ago is not written again."""
        if answer is None or (known is not None and answer.at <= known.asked <= now):  # later ones: of a wrong clock
            return known or GateVerdict(name=self.name, since=float(int(now)))
        result, words = self._finds(answer)
        failed = known.failed if known is not None else 0
        if result == GateResult.FAILING:
            failed = min(failed + 1, self.failures)
            if failed < self.failures:
                result, words = GateResult.UNKNOWN, f"{words}, {failed} of {self.failures} times"
        elif result == GateResult.PASSING:
            failed = 0
        same = known is not None and (known.result, known.failed) == (result, failed)
        goes_on = known is not None and known.result == result and answer.at - known.asked <= self.counts_for
        since = known.since if known is not None and goes_on else answer.at
        found = GateVerdict(name=self.name, result=result, asked=answer.at, since=since, failed=failed, message=words)
        if known is None or not same or answer.at - known.asked >= WRITTEN:
            return found
        passes = result == GateResult.PASSING
        return known if passes or replace(found, asked=known.asked) == known else found

    def _finds(self, answer: Answer) -> tuple[GateResult, str]:
        if answer.fault:
            return GateResult.UNKNOWN, one_line(answer.fault)[:_WORDS]
        rule = self.query or self.alerts or AlertsRule()
        result, words = rule.finds(answer.samples)
        return result, words[:_WORDS]

    def failed_for(self, known: GateVerdict, now: float) -> float:
        """How many seconds it has failed for, from its first answer to its last; none once that is too old."""
        counts = known.result == GateResult.FAILING and now - known.asked <= self.counts_for
        return known.asked - known.since if counts and known.since is not None else 0.0

    def why_not(self, known: GateVerdict | None, now: float) -> str:
        """Why it lets nothing begin now; empty if it passes."""
        if known is None:
            return f"gate {self.name} is Unknown: {NOT_ASKED}"
        if known.result != GateResult.PASSING:
            return known.words
        if now - known.asked > self.counts_for:
            return f"gate {self.name} is Unknown: the last answer is of {format_time(known.asked)}"
        return ""


def worst(verdicts: Sequence[GateVerdict]) -> GateVerdict:
    """The worst verdict, which counts; of equals one that has something to say."""
    return min(verdicts, key=lambda each: (_WORST_FIRST.index(each.result), not each.message))


def _firing(selector: str) -> str:
    """A selector of series, as one of firing alerts."""
    inner = selector.strip().removeprefix("{").removesuffix("}").strip().rstrip(",")
    return f'{{alertstate="firing"{"," + inner if inner else ""}}}'

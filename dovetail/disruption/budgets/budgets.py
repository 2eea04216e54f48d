"""How many nodes of a pool may be disrupted now, for one reason, and which budget decides that (DIS-49 to DIS-62).

A fault in any schedule of a pool, or in the value of any budget that is active now, closes the pool for every reason
(DIS-54). Windows are in UTC, and percentages are computed without floats. This is the only file that uses croniter.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from croniter import CroniterBadDateError, croniter

from dovetail.disruption.budgets.schedules import EVERY, Calendar, Every, ScheduleError, parse_schedule
from dovetail.model.pools import Budget
from dovetail.model.values.digits import in_32_bits, integer
from dovetail.model.values.quoting import shown

UNBOUNDED: Final = 2147483647  # upstream's MaxInt32: no budget limits this reason

_YEARS_TO_LOOK: Final = 5  # as far as upstream's cron library looks before it gives up
_OVERLAPS_TO_FOLLOW: Final = 64  # if more hits extend a window, its end is worked out again when it comes


class BudgetError(ValueError):
    """A budget that cannot be evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """One budget at one moment. `until`: when its window opens or closes, if it has one."""

    budget: Budget
    active: bool
    error: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a pool's budgets allow for one reason, before the nodes already disrupted are subtracted."""

    allowed: int
    binding: Budget | None
    errors: tuple[str, ...] = ()


def judge_budgets(budgets: tuple[Budget, ...], now: float) -> tuple[BudgetState, ...]:
    """Which of a pool's budgets are active now."""
    return tuple(_judge(budget, now) for budget in budgets)


def limit_for(states: tuple[BudgetState, ...], reason: str, nodes: int) -> Limit:
    """The least that any active budget for this reason allows; 0 if anything is wrong with any active one."""
    errors = [v.error for v in states if v.error]
    allowed, binding = UNBOUNDED, None
    for state in states:
        if not state.active:
            continue
        try:
            amount = allowed_nodes(state.budget.nodes, nodes)
        except BudgetError as error:
            errors.append(str(error))
            continue
        if (state.budget.reasons is None or reason in state.budget.reasons) and amount < allowed:
            allowed, binding = amount, state.budget
    if errors:
        return Limit(allowed=0, binding=None, errors=tuple(errors))
    return Limit(allowed=allowed, binding=binding)


def allowed_nodes(text: str, nodes: int) -> int:
    """How many nodes the text means: a number, of which upstream keeps 32 bits, or a percentage of them rounded up
    (DIS-53)."""
    number = integer(text.removesuffix("%"))
    if number is None:
        raise BudgetError(f"invalid nodes value of a budget: {shown(text)}")
    return -(-number * nodes // 100) if text.endswith("%") else in_32_bits(number)


def _judge(budget: Budget, now: float) -> BudgetState:
    if budget.schedule is None and budget.duration is None:
        return BudgetState(budget=budget, active=True)
    try:
        schedule = parse_schedule(budget.schedule or "")
    except ScheduleError as error:
        return BudgetState(budget=budget, active=False, error=f"invalid cron, {error}")
    duration = budget.duration or 0.0
    hit = first_hit_after(schedule, now - duration)
    if hit is None:
        return BudgetState(budget=budget, active=True)  # a date that never comes is always active (DIQ-20)
    if hit > now:
        return BudgetState(budget=budget, active=False, until=hit)
    return BudgetState(budget=budget, active=True, until=_end_of_window(schedule, hit, duration))


def _end_of_window(schedule: Calendar | Every, hit: float, duration: float) -> float:
    end = hit + duration
    for _ in range(_OVERLAPS_TO_FOLLOW):
        following = first_hit_after(schedule, hit)
        if following is None or following >= end:
            return end
        hit, end = following, following + duration
    return end


def first_hit_after(schedule: Calendar | Every, moment: float) -> float | None:
    """The first hit strictly after a moment, in UTC; None if there is none."""
    second = int(moment // 1)
    if isinstance(schedule, Every):
        return float(second + schedule.seconds)
    if schedule.never:
        return None
    try:
        hit = _cron(schedule, second).get_next(float)
    except CroniterBadDateError:
        return None
    return float(hit)


def _cron(calendar: Calendar, second: int) -> "croniter[float]":
    days, weekdays = calendar.day, calendar.weekday
    if not days.any and not weekdays.any and (len(days.values) == 31 or len(weekdays.values) == 7):
        # Either day is enough, and one of them admits all: croniter would take the full list for a star.
        days = weekdays = EVERY
    elif not days.any and not weekdays.any:  # if one admits nothing, the other decides
        days, weekdays = (each if each.values else EVERY for each in (days, weekdays))
    fields = (calendar.minute, calendar.hour, days, calendar.month, weekdays)
    text = " ".join("*" if f.any else ",".join(map(str, sorted(f.values))) for f in fields)
    start = datetime.fromtimestamp(second, UTC)
    return croniter(text, start, ret_type=float, day_or=True, max_years_between_matches=_YEARS_TO_LOOK)

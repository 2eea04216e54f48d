"""Plays the cases of some files on some lanes and reports the result of each.

A case that cannot be played counts as failed, with one line why; the others go on. Long cases are begun first, so that
no lane is left with seven idle minutes at the end.
"""

import asyncio
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from acceptance.traffic.cases import Case
from acceptance.traffic.comparing.case import compare
from acceptance.traffic.comparing.found import Found
from acceptance.traffic.comparing.timing import OTHER_STEP, joined
from acceptance.traffic.lane import Lane, open_lane
from acceptance.traffic.named import Facts, Named, sort_out
from acceptance.traffic.playing import Played, keep, kept, play

LINES_PER_CASE: Final = 8
_PLAYED: Final = "played.json"
_OVERHEAD: Final = 10.0  # a case's own servers and worker
_OVERDUE: Final = 3.0  # a case that takes this many times as long as it should is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one case."""

    case: Case
    seconds: float
    differences: tuple[Found, ...] = ()
    trouble: str = ""  # why it could not be played
    named: Counter[str] = field(default_factory=Counter)
    phases: str = ""  # how long each took

    @property
    def passed(self) -> bool:
        """Equal, or different only as named."""
        return not self.differences and not self.trouble

    def lines(self) -> list[str]:
        """Its line, and what differed."""
        verdict = "passed" if self.passed else "FAILED"
        lines = [f"  {verdict}  {self.seconds:6.1f} s  {self.case.file} {self.case.id}: {self.case.words}"]
        if self.trouble:
            lines.append(f"      could not be played: {self.trouble}")
        lines += [f"      {each.line()}" for each in self.differences[:LINES_PER_CASE]]
        more = len(self.differences) - LINES_PER_CASE
        return [*lines, *([f"      and {more} more"] if more > 0 else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to play, where, and by which list of named differences."""

    cases: Sequence[Case]
    named: list[Named]
    folder: Path
    lanes: int = 2
    verbose: bool = True
    again: bool = False  # compare what an earlier run in that folder has played


def run(plan: Plan) -> list[Result]:
    """All cases; prints each as it ends."""
    return asyncio.run(_stoppable(plan))


async def _stoppable(plan: Plan) -> list[Result]:
    """Ending this process must not leave its servers behind: SIGTERM cancels, which stops them."""
    playing = asyncio.ensure_future(play_all(plan))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, playing.cancel)
    return await playing


async def play_all(plan: Plan) -> list[Result]:
    """All cases on as many lanes as the plan says, in the order of the plan."""
    if plan.again:
        return [await _reported(case, None, plan) for case in plan.cases if (_folder(case, plan) / _PLAYED).exists()]
    waiting = sorted(plan.cases, key=_expected_seconds)
    count = max(1, min(plan.lanes, len(waiting)))
    results: list[Result] = []
    async with AsyncExitStack() as stack:
        lanes = [await stack.enter_async_context(open_lane(plan.folder / f"lane{n}")) for n in range(1, count + 1)]
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(_serve(lane, waiting, (plan, results)))
    order = {(case.file, case.id): number for number, case in enumerate(plan.cases)}
    return sorted(results, key=lambda each: order[(each.case.file, each.case.id)])


def _expected_seconds(case: Case) -> float:
    return sum(case.seconds(phase) for phase in case.phases)


async def _serve(lane: Lane, waiting: list[Case], shared: tuple[Plan, list[Result]]) -> None:
    plan, results = shared
    while waiting:
        results.append(await _reported(waiting.pop(), lane, plan))


async def _reported(case: Case, lane: Lane | None, plan: Plan) -> Result:
    result = await _one(case, lane, plan)
    if plan.verbose or not result.passed:
        print("\n".join(result.lines()))
        sys.stdout.flush()
    return result


def _folder(case: Case, plan: Plan) -> Path:
    return plan.folder / "cases" / f"{case.file}-{case.id}"


async def _one(case: Case, lane: Lane | None, plan: Plan) -> Result:
    began = time.monotonic()
    folder = _folder(case, plan)
    try:
        if lane is None:
            return _judged(case, kept(folder / _PLAYED), plan, began)
        async with asyncio.timeout(120 + _OVERDUE * (_expected_seconds(case) + _OVERHEAD)):
            played = await play(case, lane, folder)
        keep(played, folder / _PLAYED)
        return _judged(case, played, plan, began)
    except Exception as error:  # one broken case must not end the run of all others
        (folder / "trouble.txt").parent.mkdir(parents=True, exist_ok=True)
        (folder / "trouble.txt").write_text(traceback.format_exc())
        words = f"{type(error).__name__}: {error}"
        return Result(case=case, seconds=time.monotonic() - began, trouble=words[:400])


def _judged(case: Case, played: Played, plan: Plan, began: float) -> Result:
    rest, met = judge(case, played, plan.named)
    took = " ".join(f"{each.name} {each.seconds:.1f}" for each in played.phases)
    return Result(
        case=case,
        seconds=time.monotonic() - began,
        differences=tuple(rest),
        named=met,
        phases=f"prepared {played.prepared:.1f} {took}",
    )


def judge(case: Case, played: Played, named: list[Named]) -> tuple[list[Found], Counter[str]]:
    """What differs and is not meant, phase by phase; where that differs, with all steps as one."""
    facts = Facts.of(case)
    rest, met = sort_out(compare(case, played), named, facts)
    again = joined(case, played) if rest else None
    if again is None:
        return rest, met
    left, met_later = sort_out([*compare(*again), OTHER_STEP], named, facts)
    return (rest, met) if left else (left, met_later)


def report(results: Sequence[Result], file: Path) -> None:
    """Everything that differed, in full."""
    with file.open("w", encoding="utf-8") as out:
        for each in results:
            out.write(f"== {each.case.file} {each.case.id}: {'passed' if each.passed else 'FAILED'} ==\n")
            if each.trouble:
                out.write(f"could not be played: {each.trouble}\n")
            for found in each.differences:
                out.write(f"{found.line(20000)}\n")
            out.write(f"seconds: {each.phases}\n")
            for name, count in sorted(each.named.items()):
                out.write(f"named: {name} ({count})\n")

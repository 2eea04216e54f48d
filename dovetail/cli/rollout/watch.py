"""`dovetail rollout status NAME --watch`: one picture, renewed until the roll-out ends; the exit code says how it
ended.

In a pipe or a file each line is written with its time when it changes, so that it reads as a log.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.screen import screen
from dovetail.cli.output import NEEDS_PERSON, complain, say
from dovetail.cli.shown.watching import CLEAR
from dovetail.model.own.rollouts import Intent, Rollout, RolloutState
from dovetail.model.values.time import format_time
from dovetail.ports.failures import Failure

if TYPE_CHECKING:
    from dovetail.ports.objects import TimeObjects

Picture = Callable[[Rollout], Iterable[str]]


async def watch_rollout(times: "TimeObjects", found: Rollout, every: float, picture: Picture) -> int:
    """Watch until it is complete (0), its target is refused or held for good (4), or it is gone. If it is stuck for
    another reason the watch continues: somebody may fix that."""
    seen: list[str] = []
    silent = False
    while True:
        seen = _shown(list(picture(found)), seen)
        code = _ended(found)
        if code is not None:
            return code
        await asyncio.sleep(every)
        try:
            known = (await times.read("")).rollouts.get(found.name)
        except Failure as error:
            if not silent:
                complain(f"no answer: {error}; what was seen last stands until there is one")
            silent = True
            continue
        if known is None or known.uid != found.uid:
            raise CommandFailed(f"{found.name}: it has been deleted")
        found, silent = known, False


def _ended(found: Rollout) -> int | None:
    """The exit code; None while it goes on."""
    if found.status.state == RolloutState.COMPLETE:
        return 0
    is_refused = found.status.state == RolloutState.FAILED or found.intent == Intent.ABORT
    return NEEDS_PERSON if is_refused and not found.fault else None


def _shown(lines: list[str], seen: list[str]) -> list[str]:
    if screen().width is not None:
        say("\n".join(lines), before=CLEAR)
        return lines
    moment = format_time(time.time())
    for line in lines:
        if line not in seen:
            say(f"{moment}  {line}")
    return lines

"""`dovetail rollout`: shows what NodeRollouts do, and sets what a person wants of one.

Both are fields of the object, read and written with only a kubeconfig: neither workers nor Temporal are asked, so that
a roll-out can be stopped while they are away. What is written takes effect at once, because it is read at every mark.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.output import say

if TYPE_CHECKING:
    from dovetail.model.own.rollouts import Rollout
    from dovetail.ports.objects import TimeObjects
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LIST: Final = "list"
STATUS: Final = "status"
APPROVE: Final = "approve"
HISTORY: Final = "history"
ORDERS: Final = {"pause": "Pause", "resume": "Run", "abort": "Abort", "promote": "Promote"}
BACK: Final = "RollBack"
SEEN_WITHIN: Final = 20  # seconds


def add_rollout(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    from dovetail.cli.shown.watching import add_every

    rollout = commands.add_parser(
        "rollout", parents=[shared], help="how far changes of NodePools are, and pause, abort or promote one"
    )
    words = (LIST, STATUS, HISTORY, APPROVE, *ORDERS)
    rollout.add_argument("what", nargs="?", default=LIST, choices=words, metavar="|".join(words), help="default: list")
    rollout.add_argument("name", nargs="?", default="", metavar="NODEROLLOUT", help="the NodeRollout, but for a list")
    rollout.add_argument("--context", default="", help="the context of the kubeconfig (DOVETAIL_CONTEXT)")
    rollout.add_argument(
        "--back", action="store_true", help="abort: replace the nodes at its target by such as were there before"
    )
    rollout.add_argument("--yes", action="store_true", help="approve: do not ask whether what is shown may happen")
    rollout.add_argument(
        "-w", "--watch", action="store_true", help="status: again and again, until it is complete (0) or refused (4)"
    )
    add_every(rollout, "with --watch")
    rollout.set_defaults(act=_rollout, order=True, service="", local=False, url="")


async def _rollout(given: argparse.Namespace, settings: "Settings | None") -> int:
    from dovetail.cli.orders.target import checked_target
    from dovetail.cli.orders.written_on import opened_objects

    _check(given)
    async with opened_objects(given, settings) as objects:
        times = objects.times()
        known = (await times.read("")).rollouts
        if given.what == LIST:
            for line in [_line(known[name]) for name in sorted(known)] or ["there is no NodeRollout"]:
                say(line)
            return 0
        found = known.get(given.name)
        if found is None:
            raise CommandFailed(f"{given.name}: there is no such NodeRollout")
        if given.what == STATUS:
            return await _seen(times, found, given)
        if given.what == HISTORY:
            from dovetail.cli.rollout.story import story_of

            for line in story_of(found):
                say(line)
            return 0
        target = await checked_target(settings, objects, given)
        if given.what == APPROVE:
            from dovetail.cli.rollout.approval import approve

            say(await approve(objects, found, given))
        else:
            say(await _ordered(times, found, BACK if given.back else ORDERS[given.what]))
        say(target.words)
        return 0


def _check(given: argparse.Namespace) -> None:
    if given.back and given.what != "abort":
        raise CommandFailed(f"rollout {given.what}: --back belongs to abort")
    if given.watch and given.what != STATUS:
        raise CommandFailed(f"rollout {given.what}: --watch belongs to status")
    if given.what != LIST and not given.name:
        raise CommandFailed(f"rollout {given.what}: name a NodeRollout; `dovetail rollout` lists them")


async def _seen(times: "TimeObjects", found: "Rollout", given: argparse.Namespace) -> int:
    """Show its picture: once, or until it ends."""
    if given.watch:
        from dovetail.cli.rollout.watch import watch_rollout

        return await watch_rollout(times, found, given.every, _lines)
    for line in _lines(found):
        say(line)
    return 0


async def _ordered(times: "TimeObjects", rollout: "Rollout", order: str) -> str:
    """Write the intent; returns words. A status written meanwhile does not matter. If the target is refused although
    the intent is Run already, the intent is written again: any change of the spec is an answer."""
    from dovetail.activities.shared.writes.revisions import TRIES
    from dovetail.model.own.rollouts import REFUSED, Intent, RolloutState
    from dovetail.ports.failures import Conflict

    intent, name = Intent(order), rollout.name
    for _ in range(TRIES):
        if rollout.status.state == RolloutState.COMPLETE:
            raise CommandFailed(f"{name}: it is complete, and holds nothing")
        if rollout.fault and intent not in (Intent.PAUSE, Intent.ABORT):  # those it obeys all the same
            raise CommandFailed(f"{name}: {rollout.words}; nothing begins until that is put right")
        try:
            written: Rollout | None = rollout
            waits = rollout.status.state in REFUSED or rollout.status.state == RolloutState.PAUSED
            if replace(rollout, intent=intent).wants != intent:  # it would be taken for one that was carried out before
                is_paused = rollout.intent in (Intent.PAUSE, Intent.ABORT)
                held = rollout if is_paused else await times.patch_intent(rollout, Intent.PAUSE)
                written = await _forgotten(times, held)
            elif waits and rollout.intent == intent:  # so that the spec changes
                written = await times.patch_intent(rollout, Intent.PAUSE)
            if written is None or await times.patch_intent(written, intent) is None:
                break
            return f"NodeRollout {name}: {_said(replace(rollout, intent=intent), time.time())}"
        except Conflict:
            found = (await times.read("")).rollouts.get(name)
            if found is None or found.uid != rollout.uid:
                break
            rollout = found
    else:
        raise CommandFailed(f"{name}: it is being changed by others; try again")
    raise CommandFailed(f"{name}: it has just been deleted")


def _said(rollout: "Rollout", now: float) -> str:
    """What it does from now on by its intent."""
    from dovetail.model.own.rollouts import STAY, Intent, RolloutState
    from dovetail.rules.rollout.conditions import NOTHING_TO_TAKE_BACK

    waits, no_way = rollout.status.state == RolloutState.WAITING, rollout.status.stable.why_not
    last = "to its last step at once, whatever its soak and its gates say"
    if rollout.intent == Intent.ROLL_BACK and waits:
        return f"{NOTHING_TO_TAKE_BACK}: `dovetail rollout resume {rollout.name}`"
    if rollout.intent == Intent.ROLL_BACK and no_way:
        return f"its target is refused{STAY}{no_way}"
    return {
        Intent.PAUSE: "no further node and no further step begins; nodes that are leaving go on",
        Intent.ABORT: "its target is held until it is resumed, promoted or deleted; nodes that are leaving go on",
        Intent.RUN: "it waits for a change" if waits else _resumed(rollout, now),
        Intent.PROMOTE: f"no change has begun; the next one goes {last}" if waits else f"it goes {last}",
        Intent.ROLL_BACK: "its nodes at the target are replaced by such as were there before, the newest first",
    }[rollout.intent]


def _resumed(rollout: "Rollout", now: float) -> str:
    """What one that has begun does from now on."""
    from dovetail.model.own.rollouts import REFUSED

    if rollout.status.state in REFUSED:
        return "it begins again at its first step"
    why = rollout.why_not_now(now) if now >= rollout.overdue_at() else ""
    if why:
        return f"no further node begins, as {why}: raise that, promote it, abort it, or go back"
    return "it goes on where it was"


async def _forgotten(times: "TimeObjects", rollout: "Rollout | None") -> "Rollout | None":
    """The roll-out once a worker has seen it paused, which cancels an order left from a former target."""
    for _ in range(SEEN_WITHIN):
        if rollout is None or not (rollout.has_gone_back or rollout.status.promoted_before):
            return rollout
        await asyncio.sleep(1.0)
        rollout = (await times.read("")).rollouts.get(rollout.name)
    raise CommandFailed("rollout: it is paused, and no worker has seen that yet; try again")


def _line(rollout: "Rollout") -> str:
    from dovetail.model.values.time import format_time

    status = rollout.status
    until = f" until {format_time(status.until)}" if status.until is not None else ""
    counts = f"{status.at_target} of {status.total} nodes are at the target, {status.leaving} are leaving"
    return f"{rollout.name}: NodePool {rollout.pool or '(any)'}, {rollout.words}{until}; {counts}"


def _approvals(rollout: "Rollout") -> Iterator[str]:
    """The open question, and what happened to the last answer."""
    from dovetail.model.values.time import format_time

    awaits, answered = rollout.status.awaits, rollout.status.answered
    if awaits is not None:
        yield f"asks until {format_time(awaits.expires)}: {awaits.shows}; `dovetail rollout approve {rollout.name}`"
    if answered is not None:
        became = f"refused, as {answered.refused}" if answered.refused else "accepted"
        yield f"approval of step {answered.approval.step} by {answered.approval.by}: {became}"


def _lines(rollout: "Rollout") -> Iterator[str]:
    """Its state, step by step, and what a person should know."""
    from dovetail.answers.rollouts.text import bar_of
    from dovetail.answers.wording import duration_text
    from dovetail.cli.rollout.story import gate_lines

    status = rollout.status
    yield _line(rollout)
    yield bar_of(status.at_target, status.leaving, status.total)
    for step in rollout.steps:
        mark = ">" if step.name == status.step else " "
        asks = "" if step.approve is None else f", then asks for {duration_text(round(step.approve))}"
        yield f"{mark} {step.name}: to {step.to}, soak {duration_text(round(step.soak))}{asks}"
    earlier = "" if rollout.wants == rollout.intent else ", given for an earlier target"
    yield f"intent {rollout.intent}{earlier}; gate nodes: {status.gate.result}"
    yield from gate_lines(rollout)
    stable = status.stable
    if stable.since:
        images = ", ".join(image.id for image in stable.images) or "none"
        yield f"images of before: {images}{f' ({stable.why_not})' if stable.why_not else ''}"
    yield from _approvals(rollout)
    for condition in status.conditions:
        if condition.type == "Stalled" and condition.status == "True":
            yield f"stalled ({condition.reason}): {condition.message}"

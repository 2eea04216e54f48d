"""`dovetail rollout approve`: shows a roll-out's question, and lets the next step begin in the name of the person at
the terminal."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.cli.orders.author import person
from dovetail.cli.output import say
from dovetail.cli.rollout.story import gate_lines
from dovetail.model.own.rollout_approvals import Approval, Awaits
from dovetail.model.own.rollouts import Rollout, RolloutState
from dovetail.model.values.time import format_time
from dovetail.ports.failures import Conflict

if TYPE_CHECKING:
    from dovetail.wiring.orders import ClusterObjects


async def approve(objects: "ClusterObjects", rollout: Rollout, given: argparse.Namespace) -> str:
    """Approve, and return what was approved, in words. If it has changed since it was shown, it is not approved."""
    from dovetail.activities.shared.writes.revisions import TRIES

    asked = _asked(rollout)
    say(f"{rollout.name}: {asked.shows}")
    say(f"step {rollout.status.step} has soaked, gate nodes: {rollout.status.gate.result}")
    for line in gate_lines(rollout):
        say(line)
    say(f"asked {format_time(asked.since)}, until {format_time(asked.expires)}")
    _confirm(given.yes)
    by = await objects.user() or person()
    approval = Approval(step=rollout.status.step, digest=asked.digest, by=by, at=float(int(time.time())))
    times = objects.times()
    for _ in range(TRIES):
        try:
            if await times.patch_approval(rollout, approval) is not None:
                return f"NodeRollout {rollout.name}: approved by {by}; it begins at once, unless something has changed"
            break
        except Conflict:
            found = (await times.read("")).rollouts.get(rollout.name)
            if found is None or found.uid != rollout.uid:
                break
            rollout = found
            if _asked(rollout).digest != asked.digest:
                raise CommandFailed(f"{rollout.name}: what is asked has changed meanwhile; look again") from None
    else:
        raise CommandFailed(f"{rollout.name}: it is being changed by others; try again")
    raise CommandFailed(f"{rollout.name}: it has just been deleted")


def _asked(rollout: Rollout) -> Awaits:
    state, awaits = rollout.status.state, rollout.status.awaits
    if state == RolloutState.PAUSED:
        raise CommandFailed(f"{rollout.name}: the question has expired; `dovetail rollout resume` has it asked again")
    if state != RolloutState.AWAITING or awaits is None:
        raise CommandFailed(f"{rollout.name}: nothing is to be approved: {rollout.words}")
    return awaits


def _confirm(is_certain: bool) -> None:
    if is_certain:
        return
    if not sys.stdin.isatty():
        raise CommandFailed("rollout approve: nobody can be asked here; --yes approves what is shown")
    if input("approve? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandFailed("not approved")

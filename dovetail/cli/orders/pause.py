"""`dovetail pause` and `dovetail resume`: stop beginning things for one NodePool or for all, and go on again.

A pause is written only on Kubernetes objects, so that it needs neither a worker nor Temporal, and kubectl can do the
same. If Temporal answers, the workflows of CLUSTER_NAME must first prove to be this cluster's.
"""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dovetail.activities.shared.writes.pool_revisions import Annotations, revise_pool
from dovetail.activities.shared.writes.revisions import TRIES
from dovetail.answers.failures import CommandFailed
from dovetail.cli.orders.author import author
from dovetail.cli.orders.target import checked_target
from dovetail.cli.orders.written_on import opened_objects
from dovetail.cli.output import say
from dovetail.model import names
from dovetail.model.objects.workloads import Namespace
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.pools import NodePool
from dovetail.model.values.durations import DurationError, parse_seconds
from dovetail.ports.failures import Conflict, Failure
from dovetail.ports.objects import MetadataChange
from dovetail.rules.brake.breakers import open_breakers, with_failures_answered
from dovetail.rules.brake.returned_moves import moves_brake, without_moves
from dovetail.rules.brake.unused_launches import resumed_annotations, stop_of
from dovetail.rules.pause.pauses import (
    EVERY_POOL,
    EVERYTHING,
    VOLUNTARY,
    annotations_of,
    joined,
    named_activities,
    pause_in,
    pauses_of_all,
    without,
)

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings
    from dovetail.wiring.orders import ClusterObjects


async def pause(given: argparse.Namespace, settings: "Settings | None") -> None:
    seconds = _seconds(given.lasts)
    async with opened_objects(given, settings) as objects:
        target = await checked_target(settings, objects, given)
        new = Pause(
            pool=given.pool,
            what=_named(given.what or "") | ({Activity.DRAINS} if given.drains else set()),
            until=time.time() + seconds if seconds is not None else None,
            by=await author(objects),
            reason=given.reason,
        )
        written = await _changed(objects, given.pool, lambda known: joined(known, new))
    assert written is not None  # joined pauses are never empty
    say(f"{written.where}: {written.words} paused {written.says}")
    if Activity.LAUNCHES not in written.what:
        say("nodes are still launched for pending pods")
    say(target.words)


async def resume(given: argparse.Namespace, settings: "Settings | None") -> None:
    """End the pause, or the named part of it; and, for a NodePool, the stop of its launches. Resuming all ends the
    pause of all, including that of drains: nobody who resumes all means to leave drains held."""
    what, pool = given.what or "", given.pool
    named = _named(what) if what not in ("", "all") else EVERYTHING | {Activity.DRAINS}
    async with opened_objects(given, settings) as objects:
        target = await checked_target(settings, objects, given)
        found: list[Pause] = []

        def change(known: Pause | None) -> Pause | None:
            found[:] = [known] if known is not None else []
            return without(known, named) if known is not None else None

        left = await _changed(objects, pool, change)
        others = await _others(objects, pool, named)
        where = f"NodePool {pool}" if pool else "all NodePools"
        for known in found:  # each part is said once it is written: the next one may fail
            say(f"{where}: the pause of {known.words} is over, which was {known.says}")
            if left is not None:
                say(f"{where}: the pause of {left.words} stays {left.says}")
            elif not others:
                say(f"{where}: resumed")
        was_held = bool(found)
        for activity, go_on in ((Activity.LAUNCHES, _resume_launches), (Activity.DISRUPTION, _resume_replacements)):
            if pool and activity in named and (line := await go_on(objects, pool)):
                was_held = True
                say(line)
    if not was_held:
        say(f"{where}: nothing was paused")
    for line in others:
        say(f"{where}: {line}")
    say(target.words)


async def _others(objects: "ClusterObjects", pool: str, named: frozenset[Activity]) -> list[str]:
    """What holds some of that still, in words: a Freeze or, for one NodePool, the pause of all; or that it cannot be
    known."""
    try:
        freezes = (await objects.times().read("")).freezes
        system = await objects.namespaces.read(names.SYSTEM_NAMESPACE) if pool else None
    except Failure as error:
        return [f"whether a pause of all or a Freeze holds it still cannot be read: {error}"]
    found = pauses_of_all(system, freezes, time.time())
    held = [(" and ".join(sorted(each.what & named)), each) for each in found]
    return [f"{words} stay paused for {each.where} {each.says}" for words, each in held if words]


def _seconds(text: str) -> float | None:
    if not text:
        return None
    try:
        seconds = parse_seconds(text)
    except DurationError as error:
        raise CommandFailed(f"--for {text}: {error}; a duration is like 30m or 2h") from None
    if seconds <= 0:
        raise CommandFailed(f"--for {text}: a pause lasts for longer than nothing")
    return seconds


def _named(word: str) -> frozenset[Activity]:
    return (named_activities(word) or VOLUNTARY) if word else VOLUNTARY


async def _changed(
    objects: "ClusterObjects", pool: str, change: Callable[[Pause | None], Pause | None]
) -> Pause | None:
    """The pause of the pool, or of all, after the change; written only if it differs."""
    for _ in range(TRIES):
        carrier = await _carrier(objects, pool)
        known = pause_in(carrier.annotations, pool, time.time())
        wanted = change(known)
        try:
            if await _annotated(objects, carrier, annotations_of(wanted)):
                return wanted
        except Conflict:
            continue
        raise CommandFailed(f"{pool or names.SYSTEM_NAMESPACE}: it has just been deleted")
    raise CommandFailed(f"{pool or names.SYSTEM_NAMESPACE}: it is being changed by others; try again")


async def _carrier(objects: "ClusterObjects", pool: str) -> NodePool | Namespace:
    found = await (objects.pools.read(pool) if pool != EVERY_POOL else objects.namespaces.read(names.SYSTEM_NAMESPACE))
    if found is None:
        raise CommandFailed(f"{pool}: there is no such NodePool" if pool else "there is no Namespace kube-system")
    return found


async def _annotated(objects: "ClusterObjects", carrier: NodePool | Namespace, annotations: Annotations) -> bool:
    change = MetadataChange(annotations=annotations)
    if isinstance(carrier, NodePool):
        return await objects.pools.patch(carrier, change) is not None
    return await objects.namespaces.patch(carrier, change) is not None


async def _resume_launches(objects: "ClusterObjects", name: str) -> str:
    """Remove the brake's stop from the pool; returns words, empty if it was not stopped."""
    pool = await objects.pools.read(name)
    stop = stop_of(pool) if pool is not None else None
    if pool is None or stop is None:
        return ""

    def change_of(_: NodePool) -> Annotations:
        return resumed_annotations(time.time())

    if await revise_pool(objects.pools, pool, change_of) is None:
        raise CommandFailed(f"{name}: the NodePool is gone")
    return f"NodePool {name}: launches go on; they were stopped since {stop.since}: {stop.why}"


async def _resume_replacements(objects: "ClusterObjects", name: str) -> str:
    """Forget the pool's replacements that were not ready in time, and consolidated nodes that came back; returns words,
    empty if nothing was held for them."""
    pool = await objects.pools.read(name)
    if pool is None or names.BREAKER not in pool.annotations:
        return ""
    slow = moves_brake(pool, time.time())
    held = [f"{len(each.failures)} replacements for {each.reason} had failed" for each in open_breakers(pool)]
    held += [slow.says(name)] if slow is not None else []

    def change_of(live: NodePool) -> Annotations:
        answered = with_failures_answered(without_moves(live), time.time())
        return {names.BREAKER: answered.annotations.get(names.BREAKER)}

    if await revise_pool(objects.pools, pool, change_of) is None:
        raise CommandFailed(f"{name}: the NodePool is gone")
    return f"NodePool {name}: nodes are replaced again; {'; '.join(held)}" if held else ""

"""Makes a decision again from the same data, by the same functions, and says whether the result is the same."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.limits import SEARCHING, AnswerLimit
from dovetail.answers.look.recording import Decision, NoRecording, Recording, adapter, unpacked
from dovetail.answers.look.sources import Look, look_at
from dovetail.answers.record.entries import period_of
from dovetail.answers.replay.recorder import FlightStore, KeptFlight
from dovetail.answers.turn import computing
from dovetail.answers.wording import moment_text, plural, price_text, shown, wrapped
from dovetail.disruption.choose import Choice, choose
from dovetail.disruption.rounds import ShouldStop
from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan
from dovetail.model.snapshot import Snapshot
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.settings.deciding import disruption_settings, placement_settings
from dovetail.settings.settings import Settings
from dovetail.telemetry.log.start import product_version
from dovetail.wiring.world import open_kept_objects

MOST: Final = 20  # differences and decisions that are printed
NOT_SET: Final = "DOVETAIL_FLIGHTS: not set, so that no decision is kept (docs/operations.md#the-flight-recorder)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightRow:
    id: str
    at: float
    kind: str
    size: int  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightsAnswer:
    """Every kept decision, oldest first."""

    flights: tuple[FlightRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    """One decision and its repetition. `differences`: paths within the plan, with both values; empty: the same."""

    id: str
    at: float
    decision: str  # disruption or provisioning
    version: str  # of the program that decided
    by: str  # of the program that decided again
    same: bool
    decided: tuple[str, ...]  # in words
    differences: tuple[str, ...] = ()


async def list_flights(settings: Settings) -> FlightsAnswer:
    store = _store(settings)
    try:
        kept = await store.kept()
    finally:
        await store.objects.close()
    return FlightsAnswer(flights=tuple(FlightRow(id=f.id, at=f.at, kind=f.kind, size=f.size) for f in kept))


async def replay(settings: Settings, name: str) -> ReplayAnswer:
    store = _store(settings)
    try:
        kept = next((each for each in await store.kept() if name in (each.id, each.name)), None)
        if kept is None:
            raise CommandFailed(f"{name}: no such decision is kept; `dovetail replay` lists those that are")
        data = await _read(store, kept)
    finally:
        await store.objects.close()
    async with computing():
        return await asyncio.to_thread(lambda: replayed(settings, kept.id, _unpacked(kept, data)))


@asynccontextmanager
async def look_back(settings: Settings, at: str, now: float) -> AsyncIterator[Look]:
    """The cluster as seen by the last decision about disruption before that moment."""
    moment = period_of(at, "", now).since
    store = _store(settings)
    try:
        kept = [each for each in await store.kept() if each.kind == "disruption"]
        before = [each for each in kept if each.at <= moment]
        if not before:
            since = f"the first that is kept is of {moment_text(kept[0].at)}" if kept else "none is kept"
            raise CommandFailed(f"--at {at}: no decision of that time or before it is kept: {since}")
        data = await _read(store, before[-1])
    finally:
        await store.objects.close()
    async with computing():
        flight = await asyncio.to_thread(_unpacked, before[-1], data)
        yield look_at(flight, settings, f"cluster {settings.cluster}, as decision {before[-1].id} saw it")


def replayed(settings: Settings, identity: str, flight: Recording) -> ReplayAnswer:
    """The decision, made again by the same functions, for as long as a search for disruption may take."""
    decision = flight.decision
    if decision is None:
        raise CommandFailed(f"{identity}: it is a recorded cluster, of which nothing was decided")
    limit = AnswerLimit(settings.search_limit, SEARCHING)
    again = _decide(flight.over(settings), flight.snapshot, decision, limit)
    if limit():
        raise CommandFailed(f"{identity}: {limit.note('it may differ from the original for that alone')}")
    before, after = (
        adapter(Decision).dump_python(each, mode="json")["plan"] for each in (decision, replace(decision, plan=again))
    )
    differences = tuple(differing(before, after))
    return ReplayAnswer(
        id=identity,
        at=flight.taken_at,
        decision=decision.kind,
        version=flight.version,
        by=product_version(),
        same=not differences,
        decided=tuple(_words(decision.plan)),
        differences=differences[:MOST],
    )


def _decide(
    settings: Settings, snapshot: Snapshot, decision: Decision, should_stop: ShouldStop
) -> Choice | ProvisioningPlan:
    if decision.kind == "disruption":
        return choose(snapshot, disruption_settings(settings), should_stop)
    return plan_provisioning(snapshot, placement_settings(settings), should_stop, decision.first)[0]


def differing(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The places where two documents differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from differing(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, two) in enumerate(zip(before, after, strict=True)):
            yield from differing(one, two, f"{path}[{index}]")
    elif before != after:
        yield f"{path}: {before!r} then, {after!r} now"


def _words(plan: Choice | ProvisioningPlan) -> Iterator[str]:
    if isinstance(plan, DisruptionPlan):
        for command in plan.commands:
            nodes = shown(target.node or target.claim for target in command.targets)
            made = f" after {plural(len(command.replacements), 'replacement')}" if command.replacements else ""
            yield f"{command.reason} ({command.method}): {nodes}{made}, saves {price_text(command.savings)}"
    elif isinstance(plan, ProvisioningPlan):
        for node in plan.proposed:
            pods = shown((f"{pod.namespace}/{pod.name}" for pod in node.pods), 3)
            yield f"a node of NodePool {node.pool} for {plural(len(node.pods), 'pod')}: {pods}"
    yield from (f"{refusal.count} refused: {refusal.reason}" for refusal in getattr(plan, "refusals", ()))


def flights_text(answer: FlightsAnswer) -> str:
    """A line for each, newest first."""
    if not answer.flights:
        return "no decision is kept yet"
    lines = [f"{each.id}  {each.size:,} bytes" for each in reversed(answer.flights)]
    return "\n".join([*lines[:MOST], *([f"... and {len(lines) - MOST} more"] if len(lines) > MOST else [])])


def replay_text(answer: ReplayAnswer) -> str:
    return "\n".join(_lines(answer))


def _lines(answer: ReplayAnswer) -> Iterator[str]:
    verdict = "the same comes out" if answer.same else "something else comes out"
    head = f"Decision about {answer.decision} of {moment_text(answer.at)}, made again: {verdict}"
    yield from wrapped("", head, indent=0)
    if answer.version != answer.by:
        yield f"  decided by version {answer.version}, made again by {answer.by}"
    for line in answer.decided or ("nothing was decided",):
        yield from wrapped("- ", line)
    for line in answer.differences:
        yield from wrapped("! ", line)


def _store(settings: Settings) -> FlightStore:
    objects = open_kept_objects(settings, settings.flights)
    if objects is None:
        raise CommandFailed(NOT_SET)
    return FlightStore(objects, settings.cluster)


async def _read(store: FlightStore, kept: KeptFlight) -> bytes:
    data = await store.read(kept)
    if data is None:
        raise CommandFailed(f"{kept.id}: it was let go of a moment ago, because there is no more room")
    return data


def _unpacked(kept: KeptFlight, data: bytes) -> Recording:
    try:
        return unpacked(data)
    except NoRecording as error:
        raise CommandFailed(f"{kept.id}: {error}") from None

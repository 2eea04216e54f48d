"""What `explain` and `plan` look at: the cluster now, or as it was recorded.

Both give the same: a whole snapshot and the settings of the engines, for the same pure functions. What only the
Scheduler knows (nominations, plans that wait for their second look) is asked of it. If it does not answer, the
explanation does without and says so, because people mostly ask when something is down.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from temporalio.client import Client, WorkflowQueryRejectedError
from temporalio.service import RPCError

from dovetail.activities.shared.looks.snapshots import whole_snapshot
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.limits import PLACING, SEARCHING, AnswerLimit
from dovetail.answers.look.pause_words import pause_lines
from dovetail.answers.look.recording import Recording, read_recording, write_recording
from dovetail.answers.look.troubles import OwnTrouble
from dovetail.answers.wording import moment_text
from dovetail.background.time_limit import Clock
from dovetail.connection.configuration import TemporalUnusable
from dovetail.connection.temporal import ANSWER_SECONDS, connect
from dovetail.disruption.decision_snapshot import claims_of, for_disruption, nominations_that_last
from dovetail.messages.states import Held, Recent, SchedulerState
from dovetail.messages.workflow_ids import scheduler_id
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.objects.watched_kinds import Kinds
from dovetail.model.snapshot import Snapshot
from dovetail.notices.claim_refusals import refused_words
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World, open_world
from dovetail.workflows.converter import UnreadablePayload


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a cluster. `notes`: what the reader must know about it; `clock`: limits what is planned on it."""

    snapshot: Snapshot
    settings: Settings
    unreadable: tuple[Unreadable, ...] = ()
    source: str
    notes: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()  # plans of the Scheduler that wait for their second look
    state: SchedulerState | None = None  # None: the Scheduler was not asked, or has not answered
    troubles: tuple[OwnTrouble, ...] = ()  # of Dovetail itself
    recent: tuple[Recent, ...] = ()  # what the Scheduler did last, also where it does not answer now
    clock: Clock = time.monotonic

    def placing(self) -> AnswerLimit:
        """How long it may be looked for places of pods, from now on: as long as in a pass of the Scheduler."""
        return AnswerLimit(self.settings.pass_limit, PLACING, self.clock)

    def searching(self) -> AnswerLimit:
        """The same for nodes that may leave: as long as in a round."""
        return AnswerLimit(self.settings.search_limit, SEARCHING, self.clock)


async def look(settings: Settings, file: Path | None) -> Look:
    """Look at the recorded snapshot where a file is named, else at the cluster."""
    if file is not None:
        recording = await asyncio.to_thread(read_recording, file)
        return look_at(recording, settings, recorded_in(recording, file))
    async with opened(settings) as world:
        return await look_through(world, settings)


async def look_through(world: World, settings: Settings) -> Look:
    """Look at an open world, with what the Scheduler remembers at this moment."""
    await world.priced()
    state, note = await scheduler_state(settings, world.cluster_uid)
    return await look_now(settings, world, state, note)


async def look_now(
    settings: Settings, world: World, state: SchedulerState | None, note: str = "", reads: Kinds | None = None
) -> Look:
    """Look at an open world, with the Scheduler's memory. `reads`: the kinds that must be up to date; None: all."""
    snapshot = with_memory(await whole_snapshot(world.view, world.catalogues, reads), state)
    return Look(
        snapshot=snapshot,
        settings=settings,
        unreadable=world.view.unreadable(),
        source=f"cluster {settings.cluster}, {moment_text(snapshot.now)}",
        notes=(note,) if note else (),
        pauses=pause_lines(snapshot),
        held=state.held if state is not None else (),
        state=state,
        recent=state.recent if state is not None else (),
    )


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[World]:
    """The world, ready to be looked at, for as long as the block lasts."""
    world = await open_world(settings)
    try:
        await world.ready()
        yield world
    finally:
        await world.close()


def look_at(recording: Recording, settings: Settings, source: str) -> Look:
    """Look at a recording, under the settings and the cluster name that it was made with."""
    return Look(
        snapshot=recording.snapshot,
        settings=recording.over(settings).model_copy(update={"cluster": recording.cluster}),
        unreadable=tuple(sorted(recording.snapshot.unreadable, key=lambda u: (u.kind, u.name))),
        source=source,
        notes=recording.notes,
        pauses=pause_lines(recording.snapshot),
    )


def recorded_in(recording: Recording, file: Path) -> str:
    return f"cluster {recording.cluster}, recorded {moment_text(recording.taken_at)} in {file}"


async def record(settings: Settings, file: Path) -> Recording:
    """Write everything that the decisions read into a file."""
    if not file.parent.is_dir():
        raise CommandFailed(f"{file}: there is no folder {file.parent}")
    async with opened(settings) as world:
        state, note = await scheduler_state(settings, world.cluster_uid)
        objects = await world.inspection.objects()
        await world.priced()
        now = with_memory(await whole_snapshot(world.view, world.catalogues), state)
    recording = Recording(
        cluster=settings.cluster,
        snapshot=now,
        objects=objects,
        settings={name: getattr(settings, name) for name in ("preferences", "min_values", "gates")},
        notes=(note,) if note else (),
    )
    await asyncio.to_thread(write_recording, recording, file)
    return recording


def with_memory(snapshot: Snapshot, state: SchedulerState | None) -> Snapshot:
    """The snapshot with what only the Scheduler knows, as its own planner receives it."""
    if state is None:
        return for_disruption(snapshot, {}, frozenset())
    state = state.forget(snapshot.now)
    nominated = nominations_that_last(snapshot, state.nominations, state.expected, state.expected_seen)
    whole = for_disruption(snapshot, nominated, claims_of(state.held))
    return replace(whole, refused_pods=_refused_pods(snapshot, state))


def _refused_pods(snapshot: Snapshot, state: SchedulerState) -> dict[str, str]:
    """What the API server says of a NodeClaim for each waiting pod, by UID."""
    found = dict.fromkeys(state.refused_pods, "a NodeClaim for it was refused, and is asked for again")
    by_pod: dict[str, dict[str, str]] = {}
    for each in state.claim_refusals:
        for uid in each.pods:
            by_pod.setdefault(uid, {})[each.pool] = each.why
    found.update({uid: refused_words(why) for uid, why in by_pod.items()})
    return {uid: why for uid, why in found.items() if uid in snapshot.pods and not snapshot.pods[uid].node_name}


async def scheduler_state(settings: Settings, cluster_uid: str) -> tuple[SchedulerState | None, str]:
    """The Scheduler's memory; or none, and why."""
    try:
        client = await connect(settings)
    except TemporalUnusable as error:
        return None, _not_asked(str(error))
    return await state_from(client, settings.cluster, cluster_uid)


async def state_from(client: Client, cluster: str, cluster_uid: str) -> tuple[SchedulerState | None, str]:
    """The Scheduler's state over an open connection."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            state = await client.get_workflow_handle(scheduler_id(cluster)).query("status", result_type=SchedulerState)
    except (TimeoutError, RPCError, WorkflowQueryRejectedError, UnreadablePayload) as error:
        return None, _not_asked(str(error) or "no worker answers")
    if not state.cluster_uid or state.cluster_uid == cluster_uid:
        return state, ""
    return None, _not_asked(f"it is of another cluster of this name, {state.cluster_uid}")


def _not_asked(why: str) -> str:
    return f"the Scheduler could not be asked ({why}): its nominations and held plans are not considered"

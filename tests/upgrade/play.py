"""One play of the drill: everything in flight, the workers change once or twice, everything ends; what came of it."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import WorkflowExecutionStatus, WorkflowHistory

from dovetail.answers.record.facts import HARMLESS
from dovetail.messages.workflow_ids import caretaker_id, scheduler_id
from dovetail.workflows.options import ENDS
from tests.system.histories import failures_of, histories
from tests.upgrade.crews import WAYS, Crews, Swap, Version
from tests.upgrade.flight import Flight
from tests.upgrade.previous import installed, named
from tests.upgrade.scenes import SCENES, Scene

# After a kill, the wait for which nobody waits is tried again when it has been silent for so long; and a minute.
TAKEN_UP_SECONDS: Final = ENDS.total_seconds() + 60.0
OLD: Final = "old"
NEW: Final = "new"
KEPT: Final = "new, way back kept"

# What is looked at besides the scenes; the rows of the table after theirs.
PLAN_HELD, PAUSE, BUILDS, INSTANCES, TAINTS, TASKS, REPLAY = (
    "a plan is held",
    "paused",
    "singletons on the new build",
    "one instance a claim",
    "nothing tainted or left",
    "no workflow task fails",
    "all histories replay",
)
MORE_ROWS: Final = (PLAN_HELD, PAUSE, BUILDS, INSTANCES, TAINTS, TASKS, REPLAY)


def versions(python: Path) -> dict[str, Version]:
    """The previous version under that Python; this folder's, also as it is while one may want to go back, and as two
    builds that Temporal tells apart."""
    this = (sys.executable, "-m", "dovetail.cli.main")
    return {
        OLD: Version(name=OLD, command=(str(python), "-I", "-m", "dovetail.cli.main")),
        NEW: Version(name=NEW, command=this),
        KEPT: Version(name=KEPT, command=this, more=(("DOVETAIL_KEEP_WAY_BACK", "true"),)),
        "A": Version(name="A", command=this, build="a"),
        "B": Version(name="B", command=this, build="b"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """How the workers change, and between which versions: the first is at work when everything is put in flight."""

    way: str
    legs: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.way}: {', '.join(self.legs)}"


@dataclass(kw_only=True)
class Played:
    """What came of a play: by row of the table what is wrong there; rows that are not named are as they should be."""

    name: str
    wrong: dict[str, list[str]] = field(default_factory=dict)
    looked_at: int = 0  # histories

    def note(self, row: str, text: str) -> None:
        self.wrong.setdefault(row, []).append(text)


async def play(flight: Flight, asked: Play) -> Played:
    """Play it to the end."""
    known = versions(await asyncio.to_thread(installed, named()))
    played = await changes(flight, asked.name, WAYS[asked.way], [known[name] for name in asked.legs])
    await flight.land()
    for row, text in (await flight.not_ended()).items():
        played.note(row, text)
    for text in await flight.begun():
        played.note(PAUSE, f"when all has ended: {text}")
    await flight.resume()
    await flight.clear()
    await account(flight, played)
    return played


async def changes(flight: Flight, name: str, swap: Swap, legs: Sequence[Version]) -> Played:
    """Everything in flight under the first version, then one change after another."""
    crews, played = flight.crews(), Played(name=name)
    flight.version = legs[0]
    await crews.come(legs[0])
    if legs[0].build:
        await crews.route(legs[0])
    await flight.take_off()
    for before, after in pairwise(legs):
        await change(flight, played, (crews, swap, before, after))
    return played


Change = tuple[Crews, Swap, Version, Version]


async def change(flight: Flight, played: Played, by: Change) -> None:
    """The workers change. Afterwards every scene is as it was, and in the hands of those that came."""
    crews, swap, before, after = by
    where, hands_before = f"{before.name} to {after.name}", await hands(flight)
    await swap(crews, before, after)
    flight.version = after
    if before.build:
        await moved(flight, after, played, where)
    else:
        for row in await not_taken_up(flight, hands_before):
            played.note(row, f"{where}: not taken up by the new workers")
    for scene in flight.scenes:
        found = await flight.told_of(scene)
        if found != flight.expected(scene):
            played.note(scene.pool, f"{where}: {found or 'nothing'} instead of {flight.expected(scene)!r}")
    if (await flight.scheduler())["held"]:
        played.note(PLAN_HELD, f"{where}: the plan is held again under the pause")
    for text in await flight.begun():
        played.note(PAUSE, f"{where}: {text}")


async def hands(flight: Flight) -> dict[str, set[str]]:
    """Who had each scene's steps in hand last; of those whose workflow runs."""
    client, found = await flight.client(), dict[str, set[str]]()
    for scene in flight.scenes:
        described = await client.get_workflow_handle(flight.workflows[scene.pool]).describe()
        if described.status != WorkflowExecutionStatus.RUNNING:
            continue
        pending = described.raw_description.pending_activities
        found[scene.pool] = {step.last_worker_identity for step in pending if step.last_worker_identity}
    return found


async def not_taken_up(flight: Flight, before: dict[str, set[str]]) -> list[str]:
    """The scenes whose steps nobody has taken in hand but those that are gone."""
    gone = set[str]().union(*before.values())
    left: list[str] = []
    for _ in range(int(TAKEN_UP_SECONDS)):
        now = await hands(flight)
        left = [row for row, who in now.items() if not who or who & gone]
        if not left:
            break
        await asyncio.sleep(1.0)
    return left


async def moved(flight: Flight, after: Version, played: Played, where: str) -> None:
    """The singletons go on on the build that is current now; what is pinned to the other one stays there."""
    client = await flight.client()
    for identity in (scheduler_id(flight.cluster), caretaker_id(flight.cluster)):
        build = ""
        for _ in range(int(TAKEN_UP_SECONDS)):
            described = (await client.get_workflow_handle(identity).describe()).raw_description
            build = described.workflow_execution_info.versioning_info.deployment_version.build_id
            if build == after.build:
                break
            await asyncio.sleep(1.0)
        else:
            played.note(BUILDS, f"{where}: {identity.rpartition('/')[2]} stays on build {build!r}")


async def account(flight: Flight, played: Played) -> None:
    """The ledger, the objects, and what Temporal has recorded."""
    if doubles := await flight.doubles():
        played.note(INSTANCES, f"{doubles}")
    if left := await flight.left():
        played.note(TAINTS, f"{left}")
    client = await flight.client()
    rows = {identity: row for row, identity in flight.workflows.items()}
    found = await histories(client, flight.cluster)
    for history, failure in zip(found, await failures_of(found), strict=True):
        for text in failed_tasks(history):
            played.note(TASKS, f"{rows.get(history.workflow_id, history.workflow_id)}: {text}")
        if failure is not None:
            played.note(REPLAY, f"{rows.get(history.workflow_id, history.workflow_id)}: {failure}")
    problems = f'WorkflowId STARTS_WITH "{flight.cluster}/" AND TemporalReportedProblems IS NOT NULL'
    async for execution in client.list_workflows(problems):
        played.note(TASKS, f"{rows.get(execution.id, execution.id)}: reported by the server")
    played.looked_at = len(found)


def failed_tasks(history: WorkflowHistory) -> list[str]:
    """What workflow code has failed with."""
    events = [e for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED]
    given = [e.workflow_task_failed_event_attributes for e in events]
    return [
        f"{WorkflowTaskFailedCause.Name(a.cause)}: {a.failure.message}"[:300] for a in given if a.cause not in HARMLESS
    ]


def cell(row: str, column: Played) -> str:
    """In a word; builds are told apart only where workers are versioned."""
    if row in column.wrong:
        return "wrong"
    return "" if row == BUILDS and not column.name.startswith(("ramped", "versioned")) else "ok"


def table(columns: Sequence[Played], scenes: Sequence[Scene] = SCENES) -> str:
    """Phase by way of swapping; what is wrong follows below."""
    rows = [*((s.pool, f"{s.owner}: {s.phase}") for s in scenes), *((row, row) for row in MORE_ROWS)]
    width = max(len(title) for _, title in rows)
    lines = [" " * width + "".join(f" | {column.name}" for column in columns)]
    for row, title in rows:
        cells = [cell(row, column) for column in columns]
        lines.append(
            title.ljust(width) + "".join(f" | {c.ljust(len(p.name))}" for c, p in zip(cells, columns, strict=True))
        )
    told = [f"{p.name}: {row}: {text}" for p in columns for row, texts in p.wrong.items() for text in texts]
    return "\n".join([*lines, *told])

"""Every disruption, launch and termination of a cluster within a period, each once.

The visibility list names the workflows, and their histories show what they did: the command as it was decided, with its
prices, and how it ended. What Temporal's retention has deleted is read from the kept record (kept.py), if there is one.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import compress
from typing import Final, Literal, TypeVar

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.converter import PayloadConverter

from dovetail.answers.failures import NotUnderstood
from dovetail.answers.record.decoding import failure_text, typed
from dovetail.answers.record.facts import Run, run_of
from dovetail.answers.wording import plural, seconds_of
from dovetail.messages.inputs import ClaimInput, DisruptInput
from dovetail.messages.outcomes import DisruptionRecord, LaunchOutcome, TerminationOutcome
from dovetail.messages.plans import Share, name_of
from dovetail.messages.subjects import Departure
from dovetail.messages.workflow_ids import query_of
from dovetail.messages.workflow_types import DISRUPT_NODES, LAUNCH_NODE, TERMINATE_NODE
from dovetail.model.values.time import utc_moment
from dovetail.workflows.converter import UnreadablePayload

AT_ONCE: Final = 8  # histories read at the same time: the server has other work
MOST: Final = 5000

Kind = Literal["disruption", "launch", "termination"]
T = TypeVar("T")

_KINDS: Final[dict[str, Kind]] = {DISRUPT_NODES: "disruption", LAUNCH_NODE: "launch", TERMINATE_NODE: "termination"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened. Prices are dollars an hour at the time of the decision."""

    kind: Kind
    workflow: str
    run: str
    began: float
    ended: float | None
    outcome: str  # done, rebooted, cancelled, failed, refused, initialised, terminated, …; running while it runs
    reason: str = ""
    method: str = ""
    pool: str = ""
    pools: tuple[str, ...] = ()  # of a disruption in several NodePools: each claim's
    nodes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    uid: str = ""  # of a launch or a termination: of its NodeClaim, whose name may have been another's before
    replacements: tuple[str, ...] = ()  # NodeClaims
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    pods: int = 0  # that had to move
    pod_names: tuple[str, ...] = ()  # for which a replacement was made; of a launch: if they are asked for
    price_before: float | None = None
    price_after: float | None = None
    saved: float | None = None  # as predicted
    by: str = ""  # who called it off
    asked_by: str = ""  # who asked for it, if anybody did
    message: str = ""
    disruption: str = ""  # the workflow that this launch or termination is part of
    drained: float | None = None  # of a termination: when nothing held it any more and its instance was asked to end
    instance_gone: float | None = None  # of a termination: when its instance ended, between two looks at the cloud
    launched: float | None = None  # of a termination: when its instance was launched
    expires: float | None = None  # of a termination: when its node would have expired
    on_demand_since: float | None = None  # of a termination: when its reservation ceased to cover the instance
    shares: tuple[Share, ...] = ()  # of a disruption: whose pods its nodes were for, if the record has it
    # Of a finished disruption: dollars until now, by what happened since. It grows, and is never kept.
    saved_dollars: float | None = field(default=None, compare=False)

    @property
    def had_instance(self) -> bool:
        """Of a launch: whether there was an instance. Older records have no type."""
        return bool(self.instance_type) or self.outcome == "initialised"

    @property
    def all_pools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.pools)) or (self.pool,)

    def by_pool(self) -> tuple["Entry", ...]:
        """For each pool, the entry as if it were about that pool's nodes alone; each node counts the same."""
        found, counted, of = list[Entry](), 0, len(self.pools)
        for pool in self.all_pools if self.pools else ():
            mine, before = [each == pool for each in self.pools], counted
            counted += sum(mine)
            priced = {name: getattr(self, name) for name in ("price_before", "price_after", "saved")}
            part = replace(
                self,
                pool=pool,
                pools=(),
                nodes=tuple(compress(self.nodes, mine)),
                claims=tuple(compress(self.claims, mine)),
                pods=round(self.pods * counted / of) - round(self.pods * before / of),
                **{name: dollars and dollars * sum(mine) / of for name, dollars in priced.items()},
            )
            found.append(part)
        return tuple(found) or (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The period that is asked for; without an end if `until` is None. `ends`: with the terminations of all nodes that
    lived in it, whenever these began."""

    since: float
    until: float | None = None
    ends: bool = False

    @property
    def query(self) -> str:
        since = moment_text(self.since)
        began = f"StartTime >= '{since}'"
        if self.until is not None:
            began += f" AND StartTime <= '{moment_text(self.until)}'"
        if not self.ends:
            return began
        lived = f"(ExecutionStatus = 'Running' OR CloseTime >= '{since}')"
        return f"(({began}) OR (WorkflowType = '{TERMINATE_NODE}' AND {lived}))"

    def has(self, entry: Entry) -> bool:
        return entry.began >= self.since and (self.until is None or entry.began <= self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The entries in order. `cut`: there are more; `forgotten`: histories that the retention has deleted meanwhile;
    `missing_hours`: how many were not kept before Temporal forgot them; `ends`: terminations that began before the
    period or after it, of nodes that lived in it."""

    entries: tuple[Entry, ...]
    ends: tuple[Entry, ...] = ()
    cut: bool = False
    forgotten: int = 0
    missing_hours: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What of it was not read, for people."""
        hours = plural(self.missing_hours, "hour")
        them = "it: what happened in it" if self.missing_hours == 1 else "them: what happened in them"
        was = "was" if self.missing_hours == 1 else "were"
        lacks = f"{hours} of that time {was} not kept before Temporal forgot {them} is not counted"
        return (*["there is more: ask for a shorter time"] * self.cut, *[lacks] * bool(self.missing_hours))


def period_of(since: str, until: str, now: float) -> Period:
    """A period from moments or "2h ago", as people write them; without `until` it has no end."""
    return Period(since=_asked("--since", since, now), until=_asked("--until", until, now) if until else None)


def _asked(option: str, text: str, now: float) -> float:
    try:
        moment = utc_moment(text)
    except ValueError:
        return now - seconds_of(text, option)
    if moment < 0:
        raise NotUnderstood(f"{option}: {text} is before 1970")
    return moment


async def read_matching(client: Client, cluster: str, condition: str, most: int = MOST) -> Entries:
    """What the visibility list has under that condition, not joined."""
    types = ", ".join(f"'{name}'" for name in _KINDS)
    query = query_of(cluster, f"WorkflowType IN ({types}) AND {condition}")
    found = [each async for each in client.list_workflows(query, limit=most + 1)]
    turn = asyncio.Semaphore(AT_ONCE)

    async def read(execution: WorkflowExecution) -> Entry | None:
        async with turn:
            return await _entry(client, execution)

    read_all = await asyncio.gather(*[read(each) for each in found[:most]])
    entries = [entry for entry in read_all if entry is not None]
    return Entries(
        entries=tuple(sorted(entries, key=lambda entry: (entry.began, entry.workflow, entry.run))),
        cut=len(found) > most,
        forgotten=len(read_all) - len(entries),
    )


async def _entry(client: Client, found: WorkflowExecution) -> Entry | None:
    run = await run_of(client, found.id, found.run_id)
    if run is None:
        return None
    base = Entry(
        kind=_KINDS[found.workflow_type],
        workflow=found.id,
        run=found.run_id,
        began=found.start_time.timestamp(),
        ended=found.close_time.timestamp() if found.close_time else None,
        outcome=_outcome(found, run),
    )
    try:
        return _READERS[base.kind](_Values(client.data_converter.payload_converter, run), base)
    except UnreadablePayload as error:
        return replace(base, message=f"its payloads cannot be read: {error}")


@dataclass(frozen=True, slots=True)
class _Values:
    """A run's input, and what it and its steps answered."""

    converter: PayloadConverter
    run: Run

    def given(self, kind: type[T]) -> T:
        return typed(self.converter, self.run.began.given, kind)

    def result(self, kind: type[T]) -> T | None:
        """None if it did not succeed."""
        end = self.run.ended
        return typed(self.converter, end.result, kind) if end is not None and end.how == "completed" else None

    def answer_of(self, step: str, kind: type[T]) -> T | None:
        """The answer of the first step of that name that has one."""
        done = self.run.answered(step)
        return typed(self.converter, done.result, kind) if done is not None else None


def _drained(run: Run, ended: TerminationOutcome) -> float | None:
    """When its instance was asked to end; in histories that do not say so, when the step was scheduled that does."""
    if ended.asked is not None:
        return ended.asked
    return next((step.at / 1e9 for step in run.asked("terminate_instance")), None)


def _instance_gone(run: Run, ended: TerminationOutcome, *, launched: bool) -> float | None:
    """When the instance ended; in histories that do not say so, when the step answered that waits for that."""
    done = run.answered("terminate_instance")
    if ended.gone is not None or done is None or not launched:
        return ended.gone
    return done.at / 1e9


def _outcome(found: WorkflowExecution, run: Run) -> str:
    status = found.status or WorkflowExecutionStatus.RUNNING
    if status == WorkflowExecutionStatus.FAILED:
        why = run.ended.failure if run.ended is not None else None
        return f"failed: {failure_text(why) if why is not None else ''}"
    return status.name.lower()


def _disruption(values: _Values, base: Entry) -> Entry:
    given, record = values.given(DisruptInput), values.result(DisruptionRecord)
    command = given.command
    planned = sorted({f"{pod.namespace}/{pod.name}" for made in command.replacements for pod in made.pods})
    outcome, taken = record.outcome if record is not None else base.outcome, command.targets
    if command.reboots:  # its node stays as it is, with its pods
        outcome = "rebooted" if outcome == "done" else outcome
    elif record is not None and record.outcome == "done":  # without those that could not be marked
        taken = tuple(target for target in taken if target.claim in record.deleted)
    leaving = () if command.reboots else taken
    pools = tuple(target.pool for target in taken)
    share = len(leaving) / max(len(command.targets), 1)
    known = share * command.price or None  # 0: it is not known what its nodes cost
    saved = share * command.savings
    return replace(
        base,
        outcome=outcome,
        reason=command.reason,
        method=command.method,
        pool=taken[0].pool if taken else "",
        pools=pools if len(set(pools)) > 1 else (),
        nodes=tuple(target.node for target in taken),
        claims=tuple(target.claim for target in taken),
        replacements=tuple(name_of(made, given.plan_id, i) for i, made in enumerate(command.replacements)),
        pods=len({uid for target in leaving for uid in target.pods}),
        pod_names=tuple(planned),
        price_before=known,
        price_after=None if known is None else known - saved,
        saved=saved,
        by=record.by if record is not None else "",
        asked_by=command.asked_by,
        shares=command.shares,
        message=record.message if record is not None else "",
    )


def _launch(values: _Values, base: Entry) -> Entry:
    claim, result = values.given(ClaimInput).claim, values.result(str)
    launched = values.answer_of("launch_instance", LaunchOutcome)
    continued = base.outcome == WorkflowExecutionStatus.CONTINUED_AS_NEW.name.lower()
    gave_up = launched.kind if launched is not None and launched.kind != "launched" else "deleted"
    return replace(
        base,
        outcome=result or (gave_up if continued else base.outcome),
        pool=claim.pool,
        claims=(claim.name,),
        uid=claim.uid,
        reason="Provisioned",
        instance_type=launched.instance_type if launched is not None else "",
        zone=launched.zone if launched is not None else "",
        capacity_type=launched.capacity_type if launched is not None else "",
        message=launched.message if launched is not None else "",
    )


def _termination(values: _Values, base: Entry) -> Entry:
    claim, result = values.given(ClaimInput).claim, values.result(str)
    departure = values.answer_of("begin_departure", Departure)
    ended = values.answer_of("terminate_instance", TerminationOutcome) or TerminationOutcome()
    was_launched = departure is not None and departure.provider_id != ""
    return replace(
        base,
        outcome=result or base.outcome,
        pool=claim.pool,
        claims=(claim.name,),
        uid=claim.uid,
        nodes=departure.nodes if departure is not None else (),
        reason=(departure.because or departure.reason) if departure is not None else "",
        message=departure.because_words if departure is not None else "",
        instance_type=departure.instance_type if departure is not None else "",
        zone=departure.zone if departure is not None else "",
        capacity_type=departure.capacity_type if departure is not None else "",
        launched=departure.launched if departure is not None else None,
        expires=departure.expires if departure is not None else None,
        on_demand_since=departure.on_demand_since if departure is not None else None,
        drained=_drained(values.run, ended),
        instance_gone=_instance_gone(values.run, ended, launched=was_launched),
    )


_READERS: Final = {"disruption": _disruption, "launch": _launch, "termination": _termination}


def moment_text(at: float) -> str:
    """A moment as Temporal's visibility list writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""What every command says of a pause: what, for which NodePools, until when, by whom and why."""

from collections.abc import Iterator

from dovetail.messages.states import SchedulerState
from dovetail.model.pauses import pauses
from dovetail.model.snapshot import Snapshot

BY_SIGNAL = "PAUSED: everything that the Scheduler plans, launches too, by a command of version 0.1.0"


def pause_lines(snapshot: Snapshot, state: SchedulerState | None = None) -> tuple[str, ...]:
    """A line for each pause, and for each fault in its annotations."""
    return tuple(_lines(snapshot, state))


def _lines(snapshot: Snapshot, state: SchedulerState | None) -> Iterator[str]:
    if state is not None and state.paused:
        yield f"{BY_SIGNAL}; `dovetail resume` ends it"
    for pause in pauses(snapshot):
        yield f"PAUSED: {pause.words} for {pause.where} {pause.says}"
        for fault in pause.faults:
            yield f"the pause of {pause.where} is not as it should be: {fault}"

"""What every command says of a pause: what, for which NodePools, until when, by whom and why."""

from collections.abc import Iterator

from dovetail.model.snapshot import Snapshot
from dovetail.rules.pause.pauses import pauses


def pause_lines(snapshot: Snapshot) -> tuple[str, ...]:
    """A line for each pause, and for each fault in its annotations."""
    return tuple(_lines(snapshot))


def _lines(snapshot: Snapshot) -> Iterator[str]:
    for pause in pauses(snapshot):
        yield f"PAUSED: {pause.words} for {pause.where} {pause.says}"
        for fault in pause.faults:
            yield f"the pause of {pause.where} is not as it should be: {fault}"

"""`dovetail history` as text: each workflow under its id, a line for each step, then what it waits for now."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from dovetail.answers.record.history import HistoryAnswer, Story
from dovetail.answers.record.story import Pending
from dovetail.answers.wording import duration_text, moment_text, wrapped

MOST_LINES: Final = 60  # of one workflow; the last ones


def history_text(answer: HistoryAnswer) -> str:
    lines = [line for story in answer.stories for line in (*_story(story), "")]
    notes = [line for note in answer.notes for line in wrapped("note  ", note)]
    return "\n".join([*lines, *notes]).rstrip()


def _story(story: Story) -> Iterator[str]:
    end = story.ended if story.ended is not None else time.time()
    phase = f", {story.phase}" if story.phase and story.status == "running" else ""
    yield f"{story.workflow}  {story.type}, {story.status}{phase}, {duration_text(round(end - story.started))} in all"
    yield f"  from {moment_text(story.started)}"
    left_out = max(0, len(story.lines) - MOST_LINES)
    if story.cut:
        yield "  ... earlier runs are left out"
    if left_out:
        yield f"  ... {left_out} earlier lines (-o json has all)"
    for line in story.lines[left_out:]:
        yield from wrapped(f"{_clock(line.at)}  ", line.text)
    for pending in story.now:
        yield from _pending(pending)
    if story.stuck:
        yield from wrapped("STUCK     ", f"its code cannot go on, it is tried again and again: {story.stuck}")


def _clock(at: float) -> str:
    """A moment to the tenth of a second: steps follow each other quickly."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:10]


def _pending(pending: Pending) -> Iterator[str]:
    now = time.time()
    tries = f", try {pending.attempt}" if pending.attempt > 1 else ""
    where = "" if pending.runs else ", no worker has it"
    if not pending.runs and pending.next_try is not None and pending.next_try > now:
        where = f", next try in {duration_text(round(pending.next_try - now, 1))}"
    yield from wrapped("now:        ", f"{pending.step} ({duration_text(round(now - pending.since))}{tries}{where})")
    if pending.progress:
        yield from wrapped("            ", f"progress: {pending.progress}")
    if pending.last_failure:
        yield from wrapped("            ", f"last failure: {pending.last_failure}")

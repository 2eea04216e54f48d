"""What `dovetail rollout status` and `history` print about gates and finished steps."""

from collections.abc import Iterator
from typing import Final

from dovetail.answers.wording import duration_text
from dovetail.model.own.rollouts import Passage, Rollout
from dovetail.model.values.time import format_time

_RESULTS: Final = {
    "Passed": "passed",
    "Promoted": "left for the last step, as a person promoted it",
    "Failed": "failed",
    "RolledBack": "its nodes are taken back",
    "Superseded": "over before its end",
    "Left": "begun again",
}


def gate_lines(rollout: Rollout) -> Iterator[str]:
    """The verdict of each gate in use, and when it was given."""
    for each in rollout.verdicts[1:]:
        asked = f" (asked {format_time(each.asked)})" if each.asked else ""
        yield f"gate {each.name}: {each.result}{f', {each.message}' if each.message else ''}{asked}"


def story_of(rollout: Rollout) -> Iterator[str]:
    """The steps so far, and the present state."""
    yield f"{rollout.name}: NodePool {rollout.pool or '(any)'}, {rollout.words}"
    for each in rollout.status.history:
        yield f"{format_time(each.began)}  {_passage_line(each)}"
    if not rollout.status.history:
        yield "no step of it has begun"


def _passage_line(each: Passage) -> str:
    if each.ended is None:
        return f"{each.step}: goes on"
    took = duration_text(round(each.ended - each.began))
    why = f": {each.message}" if each.message else ""
    return f"{each.step}: {_RESULTS.get(each.result, each.result)} after {took}{why}"

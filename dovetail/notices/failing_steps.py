"""The notice of a failing step: what does not continue, and why."""

from dataclasses import dataclass
from typing import Final

from dovetail.notices.notice import Notice

WINDOW: Final = 3600.0  # once; again after an hour, when Events are forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedOn:
    kind: str
    name: str
    uid: str = ""


def step_failing(subject: WorkedOn, step: str, failure: str, text: str) -> Notice:
    words = step.replace("_", " ")
    return Notice(
        kind=subject.kind,
        name=subject.name,
        uid=subject.uid,
        type="Warning",
        reason="StepFailing",
        message=f'The step "{words}" fails ({failure}) and is tried again: {text}',
        distinct=f"{step}/{failure}",
        window=WINDOW,
    )

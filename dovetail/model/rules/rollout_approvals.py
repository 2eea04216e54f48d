"""What a roll-out asks a person, what a person approves, and what became of that."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's answer. `digest`: of what that person was shown; `by`: as whom the API server knows the person."""

    step: str
    digest: str
    by: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of the last approval; one approval is judged once. `refused`: why, empty where it was accepted."""

    approval: Approval
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaits:
    """What is asked. `generation`: of the object when nobody had answered in time; a later one has it asked again."""

    digest: str
    since: float
    expires: float
    shows: str = ""
    generation: int | None = None

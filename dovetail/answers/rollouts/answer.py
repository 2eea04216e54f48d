"""The present state of one roll-out: plain facts, for every view."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShown:
    """One step of a roll-out. `nodes`: how many of the NodePool's nodes may be at the target by then."""

    name: str
    nodes: int
    place: str  # done, now, to come
    soak: float = 0.0
    asks: bool = False  # whether the step after it waits for a person


@dataclass(frozen=True, slots=True, kw_only=True)
class GateShown:
    name: str
    result: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutShown:
    """A change of a NodePool that is rolled out step by step. `total`: the NodePool's nodes; `target`: those at the
    target; `leaving`: those that leave for it and have no replacement yet."""

    name: str
    pool: str
    state: str
    total: int
    target: int
    leaving: int
    steps: tuple[StepShown, ...] = ()
    gates: tuple[GateShown, ...] = ()
    since: float | None = None  # since when it has been in that state
    waits_for: str = ""  # what must happen before it goes on
    until: float | None = None  # when that ends by time alone
    is_over: bool = False  # complete, refused, or held until somebody decides otherwise
    needs_person: bool = False
    commands: tuple[str, ...] = ()  # that continue it, or stop it

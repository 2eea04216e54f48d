"""One roll-out as it stands: plain facts, for every view that shows them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShown:
    """One step of a roll-out. `nodes`: how many of the NodePool's may be at the target by then."""

    name: str
    nodes: int
    place: str  # done, now, to come
    soak: float = 0.0
    asks: bool = False  # whether the step after it waits for a person


@dataclass(frozen=True, slots=True, kw_only=True)
class GateShown:
    """What one of its gates says."""

    name: str
    result: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutShown:
    """A change of a NodePool that is rolled out step by step. `total`: the NodePool's nodes; `target`: those that have
    it, `leaving`: those that leave for it and have no replacement yet."""

    name: str
    pool: str
    state: str
    total: int
    target: int
    leaving: int
    steps: tuple[StepShown, ...] = ()
    gates: tuple[GateShown, ...] = ()
    since: float | None = None  # it has been in that state
    waits_for: str = ""  # what comes before anything else of it
    until: float | None = None  # when time alone ends that
    is_over: bool = False  # complete, refused, or held until somebody says otherwise
    needs_person: bool = False
    commands: tuple[str, ...] = ()  # that let it go on, or stop it

"""The simulation, answered by the placement engine."""

from collections.abc import Callable, Sequence

from core.disruption.candidates import Candidate
from core.disruption.fleet import Fleet
from core.disruption.simulation import NOTHING_SETTLED, Settled, Simulation


class PlacementSimulator:
    """Answers that it cannot, until the placement engine is there."""

    def __init__(self, fleet: Fleet, should_stop: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._should_stop = should_stop

    def simulate(
        self, candidates: Sequence[Candidate], *, consolidating: bool, settled: Settled = NOTHING_SETTLED
    ) -> Simulation:
        """No answer yet."""
        return Simulation(failed="the placement engine is not connected")

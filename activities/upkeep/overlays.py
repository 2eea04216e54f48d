"""What each NodeOverlay's status should say: whether it is applied, or why not (NPL-54).

Judged by the same function that applies overlays to the catalogues; an overlay changes no requirement, so that judging
over catalogues that it has changed already gives the same verdict.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.lifecycle.conditions import ConditionSet, complete, false, true
from dovetail.model.nodes import Condition
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.snapshot import Snapshot
from dovetail.placement.overlays import OverlayVerdict, overlay
from dovetail.ports.objects import NodeOverlays

VALIDATED: Final = "ValidationSucceeded"


class OverlayUpkeep:
    """Finds what differs in the status of overlays."""

    def __init__(self, overlays: NodeOverlays, now: Callable[[], float]) -> None:
        self.overlays, self.now = overlays, now

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due; time alone changes nothing."""
        verdicts = overlay(snapshot.overlays.values(), snapshot.pools, snapshot.catalogues).verdicts
        writes: list[Write] = []
        for name in sorted(snapshot.overlays):
            item = snapshot.overlays[name]
            wanted = judged(item, verdicts, self.now())
            if {c.type: c for c in wanted} != {c.type: c for c in item.conditions}:
                writes.append(partial(self.overlays.patch_conditions, item, wanted))
        return Look(due=writes)


def judged(item: NodeOverlay, verdicts: Mapping[str, OverlayVerdict], now: float) -> tuple[Condition, ...]:
    match verdicts[item.name]:
        case "applied":
            verdict = true(VALIDATED, now)
        case "invalid":
            verdict = false(VALIDATED, now, ("RuntimeValidation", item.fault))
        case "conflict":
            verdict = false(VALIDATED, now, ("Conflict", "conflict with another overlay"))
    present = ConditionSet(
        dependents=(VALIDATED,), created=item.created, generation=item.generation, conditions=item.conditions
    )
    return complete(present).set(verdict).conditions

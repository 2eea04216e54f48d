"""Which objects make a decision fail, so that it continues without them?

The decisions themselves run on the cluster as it is now: what they set aside here they also set aside in the worker.
"""

import asyncio
from typing import Final

from dovetail.activities.shared.looks.snapshots import whole_snapshot
from dovetail.answers.doctor.findings import Check, fine, skipped, warned
from dovetail.answers.wording import plural
from dovetail.background.time_limit import TimeLimit
from dovetail.disruption.choose import decide
from dovetail.model.objects.judging import Unjudged
from dovetail.model.snapshot import Snapshot
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.ports.failures import Failure
from dovetail.settings.deciding import disruption_settings, placement_settings
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

NAME: Final = "objects that cannot be judged"
SECONDS: Final = 20.0  # for each of the two decisions; after that, those found so far are named
SHOWN: Final = 10


async def judged(world: World, settings: Settings) -> Check:
    """Whether both decisions can judge everything."""
    try:
        snapshot = await whole_snapshot(world.view, world.catalogues)
    except Failure as error:
        return skipped(NAME, str(error))
    found = await asyncio.to_thread(unjudged_now, snapshot, settings)
    if not found:
        return fine(NAME, "none")
    first = "; ".join(fault.says for fault in found[:SHOWN])
    advice = "put them right or delete them; such a pod gets no node, and a node that has one is left alone"
    return warned(NAME, f"{plural(len(found), 'object')} set aside: {first}", advice)


def unjudged_now(snapshot: Snapshot, settings: Settings) -> tuple[Unjudged, ...]:
    """What placement and disruption set aside, each object once."""
    _, placement = plan_provisioning(snapshot, placement_settings(settings), TimeLimit(SECONDS))
    decision = decide(snapshot, disruption_settings(settings), TimeLimit(SECONDS))
    faults = {(fault.kind, fault.name): fault for fault in (*placement.unjudged, *decision.unjudged)}
    return tuple(faults[key] for key in sorted(faults))

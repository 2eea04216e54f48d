"""Makes the NodeRollouts that DisruptionPolicies ask for, and takes away those that have been kept for long enough."""

from functools import partial

from dovetail.activities.shared.look import Look, Write
from dovetail.disruption.upkeep.wanted_rollouts import outlived_rollouts, wanted_rollouts
from dovetail.model.snapshot import Snapshot
from dovetail.ports.objects import TimeObjects


class RolloutUpkeep:
    """Finds what is missing and what is left over."""

    def __init__(self, times: TimeObjects) -> None:
        self.times = times

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due. One that is made becomes due as nodes drift, and that is a change of the cluster."""
        made: list[Write] = [partial(self.times.create_rollout, new) for new in wanted_rollouts(snapshot)]
        gone: list[Write] = [partial(self.times.delete_rollout, old) for old in outlived_rollouts(snapshot)]
        return Look(due=made + gone)

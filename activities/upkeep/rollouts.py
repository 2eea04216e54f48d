"""Makes the NodeRollouts that DisruptionPolicies ask for, deletes those that have been kept for long enough, and
publishes what became of approvals. What became of an approval before the first look is in its roll-out's status."""

from collections.abc import Iterator, Mapping
from functools import partial

from dovetail.activities.shared.looks.look import Look, Write
from dovetail.model.own.rollouts import Rollout
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice
from dovetail.notices.rollouts import answered
from dovetail.ports.objects import Notices, TimeObjects
from dovetail.rules.rollout.wanted import outlived_rollouts, wanted_rollouts

READS = frozenset({"DisruptionPolicy", "NodeRollout"})


class RolloutUpkeep:
    """Finds what is missing, what is left over and what has been answered."""

    def __init__(self, times: TimeObjects, notices: Notices) -> None:
        self.times, self.notices = times, notices
        self.before: Mapping[str, Rollout] | None = None

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due. One that is made becomes due as nodes drift, and that is a change of the cluster.
        None is made before it is known which there are: its name depends on the one that was complete last."""
        if not snapshot.stale.isdisjoint(READS):
            return Look()
        before, self.before = self.before, snapshot.rollouts
        made: list[Write] = [partial(self.times.create_rollout, new) for new in wanted_rollouts(snapshot)]
        gone: list[Write] = [partial(self.times.delete_rollout, old) for old in outlived_rollouts(snapshot)]
        said: list[Write] = [partial(self.notices.publish, notice) for notice in _answers(before, snapshot.rollouts)]
        return Look(due=made + gone + said)


def _answers(before: Mapping[str, Rollout] | None, after: Mapping[str, Rollout]) -> Iterator[Notice]:
    for name, rollout in after.items() if before is not None else ():
        answer, known = rollout.status.answered, before.get(name) if before is not None else None
        if answer is not None and (known is None or known.status.answered != answer):
            yield answered(rollout, answer)

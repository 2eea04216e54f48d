"""Opens and closes NodePools' breakers by what has become of their replacements, and publishes those that hold."""

from collections.abc import Callable
from functools import partial

from dovetail.activities.shared.looks.look import Look, Write, earliest
from dovetail.activities.shared.writes.pool_revisions import Annotations, changed, revise_pool
from dovetail.model.own.policies import policies_of
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.brake import Brake
from dovetail.notices.launch_stops import replacements_held
from dovetail.ports.objects import NodePools, Notices
from dovetail.rules.brake.breaker_moves import breakers_look_again, next_breakers
from dovetail.rules.brake.breakers import open_breakers
from dovetail.rules.said import breaker_rule_of


class BreakerUpkeep:
    """Finds what differs, and what no notice is about yet."""

    def __init__(self, pools: NodePools, notices: Notices, now: Callable[[], float]) -> None:
        self.pools, self.notices, self.now = pools, notices, now
        self.published: frozenset[tuple[str, str, float]] = frozenset()  # pool's UID, reason, since when

    async def look(self, snapshot: Snapshot) -> Look[Write]:
        """The writes that are due, and when time alone changes a breaker. None while the policies' rules for breakers
        are unknown: then breakers stay as they are."""
        if "DisruptionPolicy" in snapshot.stale:
            return Look()
        writes: list[Write] = []
        moments: list[float] = []
        held: set[tuple[str, str, float]] = set()
        for pool in snapshot.pools.values():
            if not snapshot.is_ours(pool.template.node_class):
                continue
            rule = breaker_rule_of(policies_of(snapshot.policies, pool))
            wanted = next_breakers(pool, snapshot, rule, self.now())
            moments += breakers_look_again(wanted, snapshot, rule)
            if changed(pool, wanted):
                writes.append(partial(self._write, pool, snapshot, rule))
            for each in open_breakers(wanted):
                key = (pool.uid, each.reason, each.opened or 0.0)
                held.add(key)
                if key not in self.published:
                    notice = replacements_held(pool, each.says(pool.name, rule, self.now()))
                    writes.append(partial(self.notices.publish, notice))
        self.published = frozenset(held)
        return Look(due=writes, again=earliest(*[moment for moment in moments if moment > self.now()]))

    async def _write(self, pool: NodePool, snapshot: Snapshot, rule: Brake) -> None:
        def change_of(live: NodePool) -> Annotations:
            return changed(live, next_breakers(live, snapshot, rule, self.now()))

        await revise_pool(self.pools, pool, change_of)

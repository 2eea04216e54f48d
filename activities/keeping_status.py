"""What should stand in each NodePool's status: what it uses, whether it may be used, whether its nodes come up.

Asked by upkeep, one writer for all of it, so that sixty launches at once do not queue for one object. The state of a
NodeClass is asked for every few seconds, sooner while it is not ready, because pods wait for it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from core.disruption.migration import hash_stamps
from core.lifecycle.conditions import ConditionSet
from core.lifecycle.pool_health import RESULTS as HEALTH_RESULTS
from core.lifecycle.pool_health import Health, judge_health, record_text
from core.lifecycle.pool_readiness import class_readiness, conditions_of_pool, readiness
from core.lifecycle.pool_usage import pool_usage, same_usage
from core.model.nodes import Condition, NodeClassRef
from core.model.pools import NodePool
from core.model.resources import NODES, Resources
from core.model.snapshot import Snapshot
from ports.cloud import Catalogues, NodeClassState
from ports.objects import MetadataChange, NodePools, PoolStatus

Difference = Callable[[], Awaitable[object]]

CLASS_GOOD_FOR = 10.0  # seconds for which a NodeClass that is ready is believed to be
CLASS_LOOK_AGAIN = 2.0  # and one that is not
FIGURES_EVERY = 1.0  # figures alone: twenty nodes that start at once would be forty writes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is to be written to one pool; None leaves it."""

    usage: Resources | None
    conditions: tuple[Condition, ...] | None
    class_generation: int
    record: str | None


class PoolStatusKeeper:
    """Finds what differs in the status of pools."""

    def __init__(self, pools: NodePools, catalogues: Catalogues, now: Callable[[], float]) -> None:
        self.pools, self.catalogues, self.now = pools, catalogues, now
        self.classes: dict[NodeClassRef, tuple[float, NodeClassState]] = {}
        self.told: dict[str, float] = {}  # pool -> when its status was last written

    async def differences(self, snapshot: Snapshot) -> tuple[list[Difference], float]:
        """The writes that are due, and when to look again although nothing has changed."""
        usage = pool_usage(snapshot)
        writes: list[Difference] = []
        moments: list[float] = []
        for name in sorted(snapshot.pools):
            pool = snapshot.pools[name]
            reference = pool.template.node_class
            if (reference.group, reference.kind) not in snapshot.supported_node_classes:
                continue  # N-15: of another provider
            wanted = self._wanted(pool, snapshot, usage[name], await self._class(reference))
            if wanted is None or hash_stamps(pool, snapshot.claims.values()).pool:
                continue  # a pool that is being stamped is looked at again when it is: two writes at once would meet
            due = self.told.get(name, 0.0) + FIGURES_EVERY
            if wanted.conditions is None and self.now() < due:
                moments.append(due)
                continue
            self.told[name] = self.now()
            writes.append(partial(self._write, pool, wanted))
        moments += [asked + _good_for(state) for asked, state in self.classes.values()]
        return writes, min(moments, default=self.now() + 3600.0)

    async def _class(self, reference: NodeClassRef) -> NodeClassState:
        known = self.classes.get(reference)
        if known is not None and self.now() - known[0] < _good_for(known[1]):
            return known[1]
        state = await self.catalogues.node_class(reference)
        self.classes[reference] = (self.now(), state)
        return state

    def _wanted(self, pool: NodePool, snapshot: Snapshot, usage: Resources, state: NodeClassState) -> _Wanted | None:
        now = self.now()
        ready = Condition(type="Ready", status=state.ready, reason=state.reason, message=state.message)
        fault = class_readiness(state.found, state.deleting, ready)
        conditions = conditions_of_pool(pool, now)
        for condition in readiness(pool, fault, now):
            conditions = conditions.set(condition)
        health = None
        if state.found:
            health = judge_health(pool, snapshot.claims.values(), state.generation, now)
            conditions = conditions.set(health.condition)
        record = _new_record(pool, health)
        changed = None if _same(conditions, pool) else conditions.conditions
        used = None if same_usage(pool.usage, usage) else usage
        if changed is None and used is None and record is None:
            return None
        return _Wanted(usage=used, conditions=changed, class_generation=state.generation, record=record)

    async def _write(self, pool: NodePool, wanted: _Wanted) -> None:
        """The condition first, then the record that it follows from: a stop in between counts the result again."""
        written: NodePool | None = pool
        if wanted.usage is not None or wanted.conditions is not None:
            status = PoolStatus(
                usage=wanted.usage,
                node_count=None if wanted.usage is None else wanted.usage[NODES],
                class_generation=wanted.class_generation or None,
                conditions=wanted.conditions,
            )
            written = await self.pools.patch_status(pool, status)
        if written is not None and wanted.record is not None:
            await self.pools.patch(written, MetadataChange(annotations={HEALTH_RESULTS: wanted.record}))


def _new_record(pool: NodePool, health: Health | None) -> str | None:
    if health is None:
        return None
    text = record_text(health.record)
    return None if pool.annotations.get(HEALTH_RESULTS) == text else text


def _same(conditions: ConditionSet, pool: NodePool) -> bool:
    return {c.type: c for c in conditions.conditions} == {c.type: c for c in pool.conditions}


def _good_for(state: NodeClassState) -> float:
    return CLASS_GOOD_FOR if state.found and state.ready == "True" else CLASS_LOOK_AGAIN

"""What each NodePool's status should say: what it uses, whether it may be used, whether its nodes come up and whether
its latest change has reached them.

The state of a NodeClass is asked for at each look, which a change of the class brings about, and every few seconds
beside that, sooner while it is not ready, because pods wait for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dovetail.activities.shared.looks.look import earliest
from dovetail.disruption.upkeep.roll_out import NODES_UP_TO_DATE, nodes_up_to_date, refused_of
from dovetail.lifecycle.conditions import ConditionSet
from dovetail.lifecycle.pool_health import RESULTS as HEALTH_RESULTS
from dovetail.lifecycle.pool_health import Health, judge_health, record_text
from dovetail.lifecycle.pool_readiness import class_readiness, conditions_of_pool, readiness
from dovetail.lifecycle.pool_usage import pool_usage, same_usage
from dovetail.model.nodes import Condition, NodeClassRef
from dovetail.model.objects.watched_kinds import NODES_AND_STANDING_CLAIMS, POOLS
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import Resources
from dovetail.ports.cloud import Catalogues, NodeClassState

CLASS_GOOD_FOR = 10.0  # seconds after which a NodeClass that is ready is looked at again, although nothing changes
CLASS_LOOK_AGAIN = 2.0  # and one that is not
FIGURES_EVERY = 1.0  # between writes of usage alone: twenty nodes that start at once would be forty writes

# What a status is worked out from, beside the state of the pool's NodeClass; the time only dates what changes.
DEPENDS_ON: Final = NODES_AND_STANDING_CLAIMS | POOLS | {"NodeRollout"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWrites:
    """What to write to one pool; None leaves it. The record follows from the condition and comes after it."""

    usage: Resources | None = None
    conditions: tuple[Condition, ...] | None = None
    class_generation: int = 0
    record: str | None = None


class PoolStatuses:
    """Finds what differs in the status of pools."""

    def __init__(self, catalogues: Catalogues, now: Callable[[], float]) -> None:
        self.catalogues, self.now = catalogues, now
        self.written: dict[str, float] = {}  # pool -> when its status was last written
        self.settled: tuple[object, ...] | None = None  # by what nothing was to be written

    async def wanted(self, snapshot: Snapshot) -> tuple[dict[str, PoolWrites], float | None]:
        """What to write, by pool, and when to look again although nothing has changed; None: after a change."""
        ours = [p for _, p in sorted(snapshot.pools.items()) if snapshot.is_ours(p.template.node_class)]  # NPL-15
        references = dict.fromkeys(pool.template.node_class for pool in ours)
        classes = {reference: await self.catalogues.node_class(reference) for reference in references}
        again = min([self.now() + _good_for(state) for state in classes.values()], default=None)
        version = snapshot.version_of(DEPENDS_ON)
        basis = None if version is None else (*version, _is_refusal_known(snapshot), classes)
        if basis is not None and basis == self.settled:
            return {}, again
        found, moments = self._found(ours, snapshot, classes)
        self.settled = None if found or moments else basis
        return found, earliest(again, *moments)

    def _found(
        self, ours: list[NodePool], snapshot: Snapshot, classes: dict[NodeClassRef, NodeClassState]
    ) -> tuple[dict[str, PoolWrites], list[float]]:
        usage = pool_usage(snapshot)
        found: dict[str, PoolWrites] = {}
        moments: list[float] = []
        for pool in ours:
            name = pool.name
            wanted = self._wanted(pool, snapshot, usage[name], classes[pool.template.node_class])
            if wanted is None:
                continue
            due = self.written.get(name, 0.0) + FIGURES_EVERY
            if _is_figures_alone(wanted, pool) and self.now() < due:
                moments.append(due)
                continue
            self.written[name] = self.now()
            found[name] = wanted
        return found, moments

    def _wanted(self, pool: NodePool, snapshot: Snapshot, usage: Resources, state: NodeClassState) -> PoolWrites | None:
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
        if _is_refusal_known(snapshot):
            refused = refused_of(snapshot.rollouts.values(), pool)
            conditions = conditions.set(nodes_up_to_date(pool, snapshot.claims.values(), conditions, now, refused))
        record = _new_record(pool, health)
        changed = None if _same(conditions, pool) else conditions.conditions
        used = None if same_usage(pool.usage, usage) else usage
        if changed is None and used is None and record is None:
            return None
        return PoolWrites(usage=used, conditions=changed, class_generation=state.generation, record=record)


def _is_refusal_known(snapshot: Snapshot) -> bool:
    """Whether every roll-out is seen that may refuse a target: else what stands there about nodes that are up to date
    stays."""
    return "NodeRollout" not in snapshot.stale


def _new_record(pool: NodePool, health: Health | None) -> str | None:
    if health is None:
        return None
    text = record_text(health.record)
    return None if pool.annotations.get(HEALTH_RESULTS) == text else text


def _same(conditions: ConditionSet, pool: NodePool) -> bool:
    return {c.type: c for c in conditions.conditions} == {c.type: c for c in pool.conditions}


def _is_figures_alone(wanted: PoolWrites, pool: NodePool) -> bool:
    """Whether nothing differs but usage, and how many nodes of a roll-out are done."""
    stands = {(c.type, c.status, c.reason, c.generation) for c in pool.conditions}
    conditions = wanted.conditions or ()
    known = {(c.type, c.status, c.reason, c.generation) for c in conditions} <= stands
    return known and all(c in pool.conditions for c in conditions if c.type != NODES_UP_TO_DATE)


def _good_for(state: NodeClassState) -> float:
    return CLASS_GOOD_FOR if state.found and state.ready == "True" else CLASS_LOOK_AGAIN

"""No mark of ours exceeds the allowance of its moment, whatever happens between any two writes (DIS-49 to DIS-53).

The real Scheduler and DisruptNodes order the real steps, which run on two workers whose caches lag, each kind of object
by itself. A rule lets a waiting call through, or lets changes arrive, time pass, a worker die, a Scheduler go, nodes
fail, people delete, budgets shrink. At each write of a taint the nodes that are disrupted then are counted anew: they
are within the budget of then, or as many as exceed it were disrupted, or the budget was lowered, by others after the
cluster was looked at.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from temporalio.testing import ActivityEnvironment

from dovetail.lifecycle import unfinished
from dovetail.messages.states import fresh_state
from dovetail.messages.workflow_ids import scheduler_id
from dovetail.messages.workflow_types import DISRUPT_NODES, SCHEDULER
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.pools import Budget, NodePool
from dovetail.model.snapshot import Snapshot
from tests.properties.marks.clockwork import Gates, Loop
from tests.properties.marks.counting import excess, excused, tainted
from tests.properties.marks.lagging import KINDS, Cluster
from tests.properties.marks.temporal import Execution, SmallTemporal, in_place_of_temporal
from tests.properties.marks.worker import CLUSTER, Worker
from worlds.disruption import NOW, a_pair, a_pod, a_pool, condition

NODES = 6
PICK = st.integers(0, 7)
BUDGETS = st.sampled_from(
    [
        (Budget(nodes="1"),),
        (Budget(nodes="2"),),
        (Budget(nodes="50%"),),
        (Budget(nodes="1", reasons=("Drifted",)), Budget(nodes="3", reasons=("Empty",))),
        (Budget(nodes="3"),),
    ]
)


class Marks(RuleBasedStateMachine):
    """A pool of six nodes, some drifted, most empty; one Scheduler; two workers."""

    @initialize(budgets=BUDGETS, drifted=st.sets(st.integers(0, NODES - 1)), quiet=st.sampled_from([None, 0.0]))
    def begin(self, budgets: tuple[Budget, ...], drifted: set[int], quiet: float | None) -> None:
        self.cluster = Cluster(clock=NOW)
        self.loop, self.gates = Loop(self.cluster), Gates()
        self.deleted: set[str] = set()  # claims that people deleted
        self.violations: list[str] = []
        self.names = 0
        self.taking, self.marked = 0, frozenset[str]()
        self.decided: Snapshot | None = None
        self.cluster.pools["a"] = a_pool(budgets=budgets, policy="WhenEmpty", consolidate_after=quiet)
        for number in range(NODES):
            self.joins(f"n{number}", number in drifted)
        self.cluster.put(a_pod("n0", "1"), a_pod("n1", "1"))
        self.cluster.keep()
        self.workers = [Worker(self.cluster, self.gates, self.written) for _ in range(2)]
        self.server = SmallTemporal(self.loop, self.attempt, on_start=self.starts)
        self.stage = in_place_of_temporal(self.server)
        self.stage.__enter__()
        self.hear_all(0)
        self.hear_all(1)
        self.server.start(SCHEDULER, fresh_state(CLUSTER, NOW - 20.0), scheduler_id(CLUSTER))
        self.server.news()

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            self.server.terminate(*self.server.executions.values())
            self.loop.end()
            self.stage.__exit__(None, None, None)

    def joins(self, name: str, drifted: bool) -> None:
        pair = a_pair(name, also=[condition(names.DRIFTED)] if drifted else [])
        self.cluster.put(pair.node, replace(pair.claim, finalizers=(names.TERMINATION_FINALIZER,)))

    # What the stage asks

    async def attempt(self, name: str, argument: Any, tried: int) -> Any:
        """A step on the worker that takes tasks now."""
        worker = self.workers[self.taking]
        if name not in worker.steps:
            await self.loop.create_future()  # nothing is pending
        place = ActivityEnvironment(client=self.server)  # type: ignore[arg-type]
        place.info = replace(place.info, attempt=tried)
        answer = await place.run(worker.steps[name], argument)
        if name.startswith("Disrupting"):
            [self.decided] = worker.deciding.last
        return answer

    def starts(self, execution: Execution) -> None:
        execution.seen = self.decided

    def written(self) -> None:
        """After every call: what it wrote is kept, and a new taint is judged."""
        self.cluster.keep()
        now = tainted(self.cluster)
        for node in now - self.marked:
            self.judge(node)
        self.marked = now

    def judge(self, node: str) -> None:
        claim = next(c for c in self.cluster.claims.values() if c.node_name == node)
        owner = self.server.executions[claim.annotations[names.OWNER]]
        reason = owner.given.command.reason
        over = excess(self.cluster, reason)
        if over > excused(self.cluster, owner.seen, reason, self.deleted):
            self.violations.append(f"{node} was marked as {reason}, {over} over the budget")

    @invariant()
    def no_mark_was_too_many(self) -> None:
        assert self.violations == []

    @invariant()
    def no_workflow_broke(self) -> None:
        assert self.server.faults() == []

    # What happens

    @rule(picks=st.lists(PICK, min_size=1, max_size=10))
    def calls_go_through(self, picks: list[int]) -> None:
        for pick in picks:
            self.gates.open(pick)
            self.server.news()

    @rule(worker=st.integers(0, 1), kind=st.sampled_from(KINDS), count=st.integers(1, 3))
    def changes_arrive(self, worker: int, kind: str, count: int) -> None:
        self.workers[worker].cache.hear(kind, count)
        self.server.news()

    @rule(worker=st.integers(0, 1))
    def hear_all(self, worker: int) -> None:
        for kind in KINDS:
            self.workers[worker].cache.hear(kind, 10**6)
        self.server.news() if hasattr(self, "server") else None

    @rule(seconds=st.sampled_from([0.3, 1.1, 5.0, 16.0]))
    def time_passes(self, seconds: float) -> None:
        self.cluster.clock += seconds
        self.server.news()

    @rule(seconds=st.sampled_from([0.3, 16.0]))
    def all_goes_well(self, seconds: float) -> None:
        self.time_passes(seconds)
        for _ in range(8):
            self.hear_all(0)
            self.hear_all(1)
            self.calls_go_through([0])

    @rule(worker=st.integers(0, 1))
    def the_other_worker_takes_tasks(self, worker: int) -> None:
        self.taking = worker

    @rule(pick=PICK)
    def a_step_dies(self, pick: int) -> None:
        steps = list(self.server.steps)
        if steps:
            steps[pick % len(steps)].cancel()
            self.server.news()

    @rule(pick=PICK, ready=st.sampled_from(["False", "True"]))
    def a_node_changes(self, pick: int, ready: str) -> None:
        nodes = sorted(self.cluster.nodes)
        if nodes:
            node = self.cluster.nodes[nodes[pick % len(nodes)]]
            self.cluster.put(replace(node, conditions=(Condition(type="Ready", status=ready),)))
            self.cluster.keep()

    @rule(pick=PICK)
    def a_person_deletes(self, pick: int) -> None:
        staying = sorted(c.name for c in self.cluster.claims.values() if c.deleting_since is None)
        if staying:
            claim = self.cluster.claims[staying[pick % len(staying)]]
            self.deleted.add(claim.name)
            self.cluster.put(replace(claim, deleting_since=self.cluster.clock))
            self.cluster.keep()

    @rule(pick=PICK)
    def a_node_is_gone(self, pick: int) -> None:
        leaving = sorted(c.name for c in self.cluster.claims.values() if c.deleting_since is not None)
        if leaving:
            claim = self.cluster.claims.pop(leaving[pick % len(leaving)])
            self.cluster.nodes.pop(claim.node_name, None)
            self.cluster.pods = {u: p for u, p in self.cluster.pods.items() if p.node_name != claim.node_name}
            self.cluster.keep()

    @rule()
    def replacements_come_up(self) -> None:
        for claim in [c for c in self.cluster.claims.values() if not c.conditions and c.deleting_since is None]:
            pair = a_pair(claim.name)
            same = {n: getattr(claim, n) for n in ("name", "uid", "annotations", "finalizers", "created")}
            self.cluster.put(pair.node, replace(pair.claim, **same))
        self.cluster.keep()

    @rule(drifted=st.booleans())
    def nodes_join(self, drifted: bool) -> None:
        """Launched for others' pods, which have gone meanwhile."""
        for _ in range(NODES - len(self.cluster.nodes)):
            self.names += 1
            self.joins(f"m{self.names}", drifted)
        self.cluster.keep()

    @rule(budgets=BUDGETS)
    def a_budget_changes(self, budgets: tuple[Budget, ...]) -> None:
        pool: NodePool = self.cluster.pools["a"]
        self.cluster.pools["a"] = replace(pool, disruption=replace(pool.disruption, budgets=budgets))
        self.cluster.keep()

    @rule(pick=PICK)
    def a_disruption_is_called_off(self, pick: int) -> None:
        running = [e for e in self.server.executions.values() if e.type == DISRUPT_NODES and e.runs]
        if running:
            instance = running[pick % len(running)].instance
            if instance is not None and not instance.committed and not instance.cancel_reason:
                instance.call_off("not now", by="hand")
                self.server.news()

    @rule()
    def the_scheduler_continues_as_new(self) -> None:
        self.server.long = True
        self.server.executions[scheduler_id(CLUSTER)].instance.poke()
        self.server.news()

    @rule()
    @precondition(lambda self: self.cluster.clock > NOW)
    def the_database_is_lost(self) -> None:
        self.server.terminate(*self.server.executions.values())
        self.server.start(SCHEDULER, fresh_state(CLUSTER, self.cluster.clock), scheduler_id(CLUSTER))
        self.server.news()

    @rule()
    def the_scheduler_is_terminated(self) -> None:
        """By a person; the workers start it again, without what it knew. Its disruptions go on."""
        self.server.terminate(self.server.executions[scheduler_id(CLUSTER)])
        self.server.start(SCHEDULER, fresh_state(CLUSTER, self.cluster.clock), scheduler_id(CLUSTER))
        self.server.news()

    @rule(worker=st.integers(0, 1))
    def marks_are_swept(self, worker: int) -> None:
        sweeper = self.workers[worker]
        for order in unfinished.marks(sweeper.cache.snapshot()):
            place = ActivityEnvironment(client=self.server)  # type: ignore[arg-type]
            self.loop.create_task(place.run(sweeper.sweeping.take_off_mark, order))
        self.server.news()


LOUD = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def test_no_mark_exceeds_the_allowance_of_its_moment() -> None:
    run_state_machine_as_test(Marks, settings=settings(max_examples=10, stateful_step_count=30, **LOUD))  # type: ignore[arg-type]


@pytest.mark.soak
def test_no_mark_exceeds_the_allowance_of_its_moment_in_many_histories() -> None:
    run_state_machine_as_test(Marks, settings=settings(max_examples=2000, stateful_step_count=60, **LOUD))  # type: ignore[arg-type]

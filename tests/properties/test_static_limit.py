"""limits.nodes of a static pool holds at every moment, whatever two loops and two workers do (NPL-42, DIS-76, BEH-126).

Two looks for orders fill the pool, two drifts replace its nodes, a person deletes. Each takes one step after the other,
in any order of all, and each decides by the real rules on what some cache showed up to three changes ago. No Scheduler
and no memory of writes keeps them apart here: what the names promise, they must keep alone.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.testing import ActivityEnvironment

from dovetail.activities.orders.replicas import ReplicaFinder
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.orders import FillPool
from dovetail.messages.plans import DisruptionPlan
from dovetail.messages.requests import CreateRequest
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import NODES
from tests.activities.test_gated_orders import OnePool
from tests.activities.test_ordering import FakeClasses
from tests.lifecycle.test_numbering import numbered
from worlds.disruption import NOW, a_pair, a_pool, a_world, condition
from worlds.fakes import FakeClaims, FakeNotices, World, create_ties


@dataclass
class Scene:
    """A pool whose nodes have all drifted, and what caches have shown of it, oldest first."""

    pool: NodePool
    ages: Iterator[int]
    world: World = field(default_factory=lambda: World(clock=NOW))
    views: list[Snapshot] = field(default_factory=list)
    most: int = 0

    def changed(self) -> None:
        """There is something newer to be seen; new claims have their node, which has drifted too."""
        for claim in self.world.claims.values():
            if not claim.conditions:
                self.join(claim)
        seen = a_world([], pools=[self.pool], now=NOW)
        self.views.append(replace(seen, claims=dict(self.world.claims), nodes=dict(self.world.nodes)))
        self.most = max(self.most, len(self.world.claims))

    def join(self, claim: NodeClaim) -> None:
        pair = a_pair(claim.name, also=[condition(names.DRIFTED)])
        same = {name: getattr(claim, name) for name in ("name", "uid", "annotations")}
        self.world.put(pair.node, replace(pair.claim, **same))

    def view(self) -> Snapshot:
        return self.views[max(0, len(self.views) - 1 - next(self.ages))]

    def create(self, request: CreateRequest) -> None:
        step = CreateNodeClaims(
            FakeClaims(self.world), OnePool(self.pool), FakeNotices(self.world), self.world.now, create_ties(self.world)
        )
        asyncio.run(ActivityEnvironment().run(step.create_node_claims, request))
        self.changed()

    def fill(self) -> Iterator[None]:
        """Look; create; and once more, as a step whose answer was lost."""
        orders = asyncio.run(
            ReplicaFinder(self.world.now, FakeClasses(), names.WELL_KNOWN_LABELS).look(self.view())
        ).due
        for _ in range(2):
            yield
            for order in orders:
                if isinstance(order, FillPool):
                    self.create(order.request)

    def drift(self, number: int) -> Iterator[None]:
        """Plan; mark; create the replacement."""
        choice = choose(self.view(), DisruptionSettings(), never)
        commands = choice.commands if isinstance(choice, DisruptionPlan) else ()
        plans = {f"{number}{i}": command for i, command in enumerate(commands)}
        yield
        plans = {plan: command for plan, command in plans.items() if self.mark(plan, command.targets[0].claim)}
        yield
        for plan, command in plans.items():
            self.create(CreateRequest(plan_id=plan, proposed=command.replacements, type_lists=((),)))

    def mark(self, plan: str, name: str) -> bool:
        """The owner alone, which is what others count by; another's node is left alone."""
        claim = self.world.claims.get(name)
        if claim is None or names.OWNER in claim.annotations or claim.deleting_since is not None:
            return False
        self.world.put(replace(claim, annotations={**claim.annotations, names.OWNER: f"c/disrupt/{plan}"}))
        self.changed()
        return True

    def delete(self) -> Iterator[None]:
        """It is leaving, and counts until it is gone."""
        name = sorted(self.world.claims)[-1]
        self.world.put(replace(self.world.claims[name], deleting_since=NOW))
        self.changed()
        yield
        del self.world.claims[name]
        self.changed()


STEPS = {"fill": 3, "fill too": 3, "drift": 3, "drift too": 3, "delete": 2}
ORDER = [actor for actor, steps in STEPS.items() for _ in range(steps)]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(2, 3),
    st.sampled_from([1, 1, 0, 2]),
    st.integers(0, 2),
    st.permutations(ORDER),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_no_order_of_steps_breaks_the_limit(
    replicas: int, spare: int, unnumbered: int, order: list[str], ages: list[int]
) -> None:
    """`unnumbered`: how many of its claims were made by a predecessor and have no number."""
    pool = a_pool(replicas=replicas, limits={NODES: replicas + spare})
    scene = Scene(pool, iter(ages))
    for number in range(replicas):
        scene.join(a_pair(f"old{number}").claim if number < unnumbered else numbered(pool, number))
    scene.changed()
    actors = {
        "fill": scene.fill(),
        "fill too": scene.fill(),
        "drift": scene.drift(1),
        "drift too": scene.drift(2),
        "delete": scene.delete(),
    }

    for actor in order:
        next(actors[actor], None)

    assert scene.most <= replicas + spare

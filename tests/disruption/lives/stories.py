"""Random lives: who lives in the pool, by which policy it changes, and what happens."""

import random
from collections.abc import Awaitable, Callable
from typing import Final

from dovetail.model.own.policies import Policy, TimeRules
from dovetail.model.own.rollouts import Intent, RolloutPlan, RolloutStep
from tests.disruption.lives.pool_life import SINGLE
from tests.disruption.lives.truth import HOUR, JudgedLife

Story = Callable[[JudgedLife], Awaitable[None]]
LONG: Final = 10 * HOUR
REMEMBERED: Final = 100  # services of one replica that the memory of a step has room for in any case


def born(seed: str, least: int = 8, most: int = 14) -> JudgedLife:
    """A pool with its workloads and the policy by which it changes."""
    chosen = random.Random(seed)
    approve = 86_400.0 if chosen.random() < 0.2 else None
    steps = (
        RolloutStep(name="canary", to="1", soak=chosen.choice([600.0, 900.0])),
        RolloutStep(
            name="some", to=chosen.choice(["25%", "50%", "3"]), soak=chosen.choice([600.0, 1200.0]), approve=approve
        ),
        RolloutStep(name="rest", to="100%", soak=chosen.choice([0.0, 300.0])),
    )
    plan = RolloutPlan(steps=steps, rolls_back=chosen.random() < 0.7, launches_stable=chosen.random() < 0.5)
    rules = TimeRules(policies={"careful": Policy(name="careful", rollout=plan)})
    life = JudgedLife(chosen=chosen, rules=rules, steps=steps)
    nodes = chosen.randint(least, most)
    life.add_pods("web", nodes * 2)
    for number in range(nodes):
        life.add_pods(f"{SINGLE}{number}", 1)
    life.add_pods("db", nodes)
    return life


async def grown(life: JudgedLife) -> None:
    """Its nodes are there, and old enough. Some of its pods may crash all the while, whatever people do."""
    ill = life.chosen.choice([0, 0, 1, 3])
    life.broken.update(life.chosen.sample(sorted(life.world.pods), ill))
    for _ in range(6):
        await life.beat(60.0)
    assert all(pod.node_name for pod in life.world.pods.values())
    life.world.clock += 3 * HOUR
    await life.beat(60.0)
    life.attended = life.now


def some_node(life: JudgedLife) -> str:
    return life.chosen.choice(sorted(life.world.nodes))


async def good_change(life: JudgedLife) -> None:
    """A change that goes through, whatever else happens."""
    life.change("image-2")


async def bad_change(life: JudgedLife) -> None:
    """An image on which every pod crashes, or every service of one replica alone."""
    life.bad.add("image-2")
    if life.chosen.random() < 0.5 and len(life.world.nodes) <= REMEMBERED:
        life.mild.add("image-2")
    life.change("image-2")


async def bad_later(life: JudgedLife) -> None:
    """An image on which pods begin to crash after a while, and perhaps while no worker looks."""
    life.change("image-2")
    await life.live(life.chosen.choice([1200.0, 2400.0]))
    if life.chosen.random() < 0.5:
        life.away = True
        await life.beat(60.0)
    life.bad.add("image-2")
    life.tell("image-2 breaks")
    for _ in range(20):
        await life.beat(120.0)
    life.away, life.attended = False, life.now


async def revert(life: JudgedLife) -> None:
    """Somebody takes the change back in Git, in its middle."""
    if life.chosen.random() < 0.5:
        life.bad.add("image-2")
    life.change("image-2")
    await life.live(life.chosen.choice([600.0, 1500.0]))
    life.change("image-1")
    await life.live(2 * HOUR)


async def promoted(life: JudgedLife) -> None:
    """Somebody promotes a change, and the next one comes."""
    life.change("image-2")
    await life.live(900.0)
    life.order(Intent.PROMOTE)
    await life.live(120.0)
    life.change("image-3")
    await life.live(300.0)
    if life.chosen.random() < 0.5:
        life.order(Intent.RUN)


async def two_an_hour(life: JudgedLife) -> None:
    """Two targets an hour."""
    for number in range(2, 2 + life.chosen.randint(2, 3)):
        life.change(
            f"image-{number}" if life.chosen.random() < 0.7 else "", life.template + (life.chosen.random() < 0.3)
        )
        await life.live(1500.0)


async def by_a_person(life: JudgedLife) -> None:
    """Somebody goes back, then on again."""
    life.change("image-2")
    await life.live(1500.0)
    life.order(Intent.ROLL_BACK)
    await life.live(HOUR)
    life.change("image-3")


CHANGES: Final[tuple[Story, ...]] = (
    good_change,
    good_change,
    bad_change,
    bad_change,
    bad_later,
    revert,
    promoted,
    two_an_hour,
    by_a_person,
)


async def scaled(life: JudgedLife) -> None:
    """More pods come, or some go."""
    if life.chosen.random() < 0.7:
        life.add_pods(f"more-{next(life.numbers)}", 4)
    else:
        life.remove_pods("db")


async def departs(life: JudgedLife) -> None:
    """Something other than drift takes a node, and something may hold its drain for hours."""
    if life.world.nodes:
        node = some_node(life)
        await life.leave(node, life.chosen.choice([0.0, 1800.0, 6 * HOUR]))
        life.tell(f"{node} leaves")


async def odd_drift(life: JudgedLife) -> None:
    """A node drifts for a reason of its own."""
    claim = life.world.claims.get(some_node(life))
    if claim is not None and claim.uid not in life.odd:
        life.odd[claim.uid] = life.chosen.choice(["SubnetDrift", "CapacityReservationDrift"])
        life.tell(f"{claim.name} has {life.odd[claim.uid]}")


async def quiet(life: JudgedLife) -> None:
    """Nothing happens."""


async def not_ready(life: JudgedLife) -> None:
    """A node is not ready for some minutes."""
    node = some_node(life)
    life.unready.add(node)
    await life.live(300.0)
    life.unready.discard(node)


async def blind(life: JudgedLife) -> None:
    """The NodeClass cannot be read for a look."""
    life.blind = True
    await life.beat(60.0)
    life.blind = False


async def answers(life: JudgedLife) -> None:
    """Somebody answers, or answers something else."""
    life.approve(life.chosen.random() < 0.7, life.chosen.choice([0.0, 0.417]))


async def killed(life: JudgedLife) -> None:
    """Workers and Temporal's database are lost: what is under way is undone."""
    for flight in list(life.flights):
        if not flight.deleted:
            await life.undo(flight)


async def paused(life: JudgedLife) -> None:
    """Somebody pauses, and lets it run again."""
    life.order(Intent.PAUSE)
    await life.live(600.0)
    life.order(Intent.RUN)


EVENTS: Final[tuple[Story, ...]] = (
    scaled,
    scaled,
    departs,
    departs,
    odd_drift,
    quiet,
    not_ready,
    blind,
    answers,
    answers,
    answers,
    killed,
    paused,
)


async def played(seed: str, least: int = 8, most: int = 14) -> JudgedLife:
    """One life, to its rest; the seed repeats it."""
    life = born(seed, least, most)
    chosen = life.chosen
    events = chosen.choices(EVENTS, k=chosen.randint(0, 5))
    await grown(life)
    for event in events[: chosen.randint(0, 1)]:
        await event(life)
    await chosen.choice(CHANGES)(life)
    for event in events:
        await life.live(chosen.choice([60.0, 600.0, 1800.0]))
        await event(life)
    for _ in range(4):
        await life.live(LONG / 4)
        life.approve()
    life.judge_the_end()
    return life

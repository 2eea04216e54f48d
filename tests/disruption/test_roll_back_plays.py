"""An image that breaks pods reaches 40 nodes whose budget allows all of them: how many nodes and pods it touches.

The clock is the play's; decisions, the status of the roll-out, its gate and what launches take are the product's. Any
step may be cut off: a worker that dies before it writes has done nothing.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.own.claim_memory import images_of
from dovetail.model.own.rollouts import Rollout, RolloutState, RolloutStep
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.said import Cause
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_world, condition
from worlds.made_claims import launched_by, made_by
from worlds.time_rules import with_rules

OLD, NEW = "image-1", "image-2"
NODES, SCALE_UPS = 40, 20
BOOTS, STARTS = 60.0, 30.0
POOL: Final = replace(a_pool(consolidate_after=None), hash="2")
SETTINGS: Final = DisruptionSettings()
STEPS: Final = (
    RolloutStep(name="canary", to="1", soak=1800),
    RolloutStep(name="quarter", to="25%", soak=3600),
    RolloutStep(name="rest", to="100%"),
)
DRIFTED: Final = condition(names.DRIFTED, reason="AMIDrift")


@dataclass
class Play:
    """One change of an image. `breaks`: from when on pods are not ready on nodes that have it, or on all of them
    (`everywhere`); `crashes`: the kubelet says that they fail."""

    chosen: random.Random
    breaks: float
    rollout: Rollout | None
    now: float = NOW
    nodes: dict[str, Pair] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    new_of: dict[str, str] = field(default_factory=dict)  # node that leaves -> its replacement
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    harmed: set[str] = field(default_factory=set)  # pods that were on the new image once
    scaled: list[str] = field(default_factory=list)
    least_ready: int = NODES
    everywhere: bool = False
    crashes: bool = False

    def join(self, image: str, **annotations: str) -> str:
        name = f"n{next(self.numbers)}"
        pair = a_pair(name, claim={"created": self.now, "image_id": image, "annotations": annotations})
        self.nodes[name], self.images[name] = pair, image
        return name

    def put(self, node: str) -> None:
        pod = a_pod(node, cpu="6", created=self.now, started=self.now, ready=False)
        self.pods[pod.name] = pod

    def world(self) -> Snapshot:
        pods = []
        for pod in self.pods.values():
            is_broken = self.now >= self.breaks and (self.everywhere or self.images[pod.node_name] == NEW)
            is_up = pod.started is not None and self.now - pod.started >= STARTS
            self.harmed |= {pod.name} if self.images[pod.node_name] == NEW else set()
            pods.append(replace(pod, ready=is_up and not is_broken, failing=is_broken and self.crashes))
        self.least_ready = min(self.least_ready, sum(bool(pod.ready) for pod in pods))
        marked = frozenset(pair.claim.name for name, pair in self.nodes.items() if self.is_marked(name))
        found = replace(a_world(self.nodes.values(), pods, [POOL]), now=self.now, disrupting=marked)
        return with_rules(found, *([self.rollout] if self.rollout else []))

    def is_marked(self, name: str) -> bool:
        return names.OWNER in self.nodes[name].claim.annotations

    def annotate(self, name: str, **changes: str) -> None:
        pair = self.nodes[name]
        self.nodes[name] = replace(pair, claim=replace(pair.claim, annotations=changes))

    def upkeep(self) -> None:
        """What has drifted is written node by node; then the roll-out's own status."""
        for name, pair in self.nodes.items():
            if self.chosen.random() < 0.7:
                kept = tuple(each for each in pair.claim.conditions if each.type != names.DRIFTED)
                drifted = (DRIFTED,) if self.images[name] != NEW else ()
                self.nodes[name] = replace(pair, claim=replace(pair.claim, conditions=(*kept, *drifted)))
        if self.rollout is not None:
            status = rollout_status(self.rollout, self.world(), self.now, f"x/{NEW}")
            self.rollout = replace(self.rollout, status=status)

    def plan(self) -> None:
        world = self.world()
        choice = choose(world, SETTINGS, never)
        said = replace(said_in(world, POOL.name), nodes=None)
        if not isinstance(choice, DisruptionPlan) or hold_of(said, Cause.DRIFTED) is not None:
            return
        for target in (target for command in choice.commands for target in command.targets):
            if self.chosen.random() < 0.9:  # else the worker dies between two marks
                own = self.nodes[target.node].claim.annotations
                self.annotate(target.node, **{**own, names.OWNER: f"c/disrupt/p{next(self.numbers)}"})

    def launch(self) -> None:
        for name in [each for each in self.nodes if self.is_marked(each) and each not in self.new_of]:
            plan = self.nodes[name].claim.annotations[names.OWNER].rpartition("/")[2]
            self.new_of[name] = self.launched("drifted", **made_by(plan))

    def launched(self, reason: str, **annotations: str) -> str:
        marks = launched_by(self.rollout.pin(reason) if self.rollout is not None else None, **annotations)
        older = images_of(marks)
        return self.join(older[0].id if older else NEW, **marks)

    def finish(self) -> None:
        """The replacement is up: pods move, the old node goes."""
        for name, new in list(self.new_of.items()):
            if self.now - self.nodes[new].claim.created < BOOTS or self.chosen.random() < 0.3:
                continue
            for pod in [each for each in self.pods.values() if each.node_name == name]:
                self.pods[pod.name] = replace(pod, node_name=new, started=self.now)
            del self.nodes[name], self.images[name], self.new_of[name]

    def undo(self) -> None:
        """A worker is killed and its disruption called off, or its database is lost: mark and replacement go."""
        for name in [each for each in self.nodes if self.is_marked(each)]:
            if self.chosen.random() < 0.3:
                own = self.nodes[name].claim.annotations
                self.annotate(name, **{key: text for key, text in own.items() if key != names.OWNER})
                new = self.new_of.pop(name, "")
                self.nodes.pop(new, None)
                self.images.pop(new, None)

    def scale_up(self) -> None:
        """Pods come while the roll-out lasts, and each brings a node."""
        lasts = self.rollout is not None and self.rollout.status.state != RolloutState.WAITING
        if lasts and len(self.scaled) < SCALE_UPS:
            node = self.launched("provisioned")
            self.scaled.append(self.images[node])
            self.put(node)

    def on_new(self) -> int:
        """How many nodes have the new image, those that are coming included."""
        return sum(image == NEW for image in self.images.values())


def played(seed: str, breaks: float, rollout: Rollout | None, most: int) -> Play:
    """To its end, or for some hours of the play. At no moment have more than `most` nodes the new image."""
    play = Play(random.Random(seed), breaks, rollout)
    for _ in range(NODES):
        play.put(play.join(OLD))
    play.now += 3600.0
    play.pods = {name: replace(pod, started=NOW) for name, pod in play.pods.items()}
    acts = (play.upkeep, play.upkeep, play.plan, play.launch, play.finish, play.finish, play.scale_up, play.undo)
    for _ in range(1200):
        play.chosen.choice(acts)()
        play.now += play.chosen.choice([1.0, 5.0, 30.0])
        assert play.on_new() <= most, seed
        if play.rollout and play.rollout.status.state == RolloutState.FAILED and len(play.scaled) == SCALE_UPS:
            break
    play.world()
    return play


def a_rollout() -> Rollout:
    return Rollout(name="r", created=NOW + 3600, pool=POOL.name, steps=STEPS, launches_stable=True, rolls_back=True)


def touches_one_node(seed: int) -> None:
    play = played(f"broken at once {seed}", 0.0, a_rollout(), most=1)

    assert play.rollout is not None and play.rollout.status.state == RolloutState.FAILED, seed
    assert play.on_new() == 0 and len(play.harmed) == 1, seed
    assert play.scaled == [OLD] * SCALE_UPS, seed
    assert play.least_ready >= NODES - 2, seed  # the pod of the canary, and it again as it starts elsewhere


def keeps_thirty(seed: int) -> None:
    """The canary is well; when a quarter of the nodes has the image, pods begin to break on it."""
    play = played(f"broken later {seed}", NOW + 3600 + 5400, a_rollout(), most=15)  # a quarter of 60, rounded up

    assert play.rollout is not None and play.rollout.status.state == RolloutState.FAILED, seed
    assert play.on_new() == 0, seed
    assert play.scaled == [OLD] * SCALE_UPS, seed
    assert play.least_ready >= NODES * 3 // 4, seed


@pytest.mark.parametrize("seed", range(2))
def test_a_broken_image_touches_one_node_and_is_taken_back_and_no_scale_up_gets_it(seed: int) -> None:
    touches_one_node(seed)


def test_the_way_back_of_a_quarter_keeps_the_other_three_ready() -> None:
    keeps_thirty(0)


def test_without_a_roll_out_the_same_image_harms_ten_and_more() -> None:
    play = played("without", 0.0, None, most=NODES)

    assert len(play.harmed) >= 10


@pytest.mark.soak
@pytest.mark.parametrize("block", range(10))
def test_a_hundred_broken_images_touch_one_node_each(block: int) -> None:
    for seed in range(10):
        touches_one_node(100 + 10 * block + seed)
        keeps_thirty(100 + 10 * block + seed)

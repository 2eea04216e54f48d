"""A NodePool through which a change goes: what the plays of roll-outs are played on.

What is true of the nodes is kept beside the objects, so that the fraction is not measured by the product's own count;
what anybody knows of them comes through watches, every kind by itself and each of them late.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import images_of
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollout_places import RolloutBasis
from dovetail.model.own.rollouts import Rollout, RolloutStep
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_world, condition
from worlds.made_claims import launched_by

CANARY: Final = RolloutStep(name="canary", to="1", soak=600)
LAG: Final = 5.0  # seconds by which the watch of NodeClaims lags at most; a Scheduler that begins anew waits for longer
OTHERS_LAG: Final = 30.0  # and the watches of other kinds
REMEMBERED: Final = 60.0  # seconds for which a Scheduler waits until its own writes are seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A mark that is still to be made. `scheduler`: which of them decided it, and when."""

    claim: str
    plan: str
    seen: RolloutBasis
    template: str
    scheduler: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The objects at one moment."""

    at: float
    pairs: Mapping[str, Pair]
    pool: NodePool
    rollouts: Mapping[str, Rollout]


@dataclass
class ChangingPool:
    """The pool, its nodes, its roll-out and what the workers know of them. `policy`: makes the roll-out."""

    chosen: random.Random
    policy: Policy
    now: float = NOW
    image: str = "image-1"
    pool: NodePool = field(default_factory=lambda: replace(a_pool(consolidate_after=None), hash="1"))
    pairs: dict[str, Pair] = field(default_factory=dict)
    rollouts: dict[str, Rollout] = field(default_factory=dict)
    decided: list[Decided] = field(default_factory=list)
    new_of: dict[str, str] = field(default_factory=dict)  # plan -> its replacement
    towards: dict[str, tuple[str, str]] = field(default_factory=dict)  # plan -> where its replacement is to bring it
    template_of: dict[str, str] = field(default_factory=dict)  # plan -> the template that it was made from
    seen_by: dict[str, RolloutBasis] = field(default_factory=dict)  # plan -> by which places it was decided
    came: dict[str, float] = field(default_factory=dict)  # node -> when a pod brought it
    judged: dict[str, float] = field(default_factory=dict)  # node -> when it was last judged whether it has drifted
    past: list[Known] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    scheduler: int = 1
    quiet_until: float = 0.0
    own_write: float = 0.0  # the Scheduler's last one
    states: set[str] = field(default_factory=set)
    story: list[str] = field(default_factory=list)  # the last acts, for whoever must understand a failure

    # What is true.

    @property
    def target(self) -> tuple[str, str]:
        """What a launch is made of now."""
        return self.pool.hash, self.image

    def made_of(self, claim: NodeClaim) -> tuple[str, str]:
        """What it is made of; without an image it is not launched yet."""
        return claim.annotations[names.NODE_POOL_HASH], claim.image_id

    def at_target(self) -> int:
        """Nodes that are made of the target, whatever anybody says of them. Without stable images pods bring some that
        a decision of this minute may not know of."""
        known = [pair.claim for name, pair in self.pairs.items() if self.came.get(name, 0.0) < self.now - REMEMBERED]
        twice = [plan for plan, leaving in self.marked().items() if self.made_of(leaving) == self.target]
        there = [self.pairs[self.new_of[plan]].claim for plan in twice if self.new_of.get(plan) in self.pairs]
        return sum(self.made_of(claim) == self.target and claim not in there for claim in known)

    def on_way(self) -> int:
        """Disruptions that take a node to the target and have not brought it there yet."""
        launched = [self.pairs[new] for new in self.new_of.values() if new in self.pairs]
        there = {self.plan_of(pair.claim) for pair in launched if pair.claim.image_id}
        there |= {plan for plan, leaving in self.marked().items() if self.made_of(leaving) == self.target}
        return sum(towards == self.target and plan not in there for plan, towards in self.towards.items())

    def marked(self) -> dict[str, NodeClaim]:
        """By plan, what is to leave by it."""
        owned = [pair.claim for pair in self.pairs.values() if names.OWNER in pair.claim.annotations]
        return {claim.annotations[names.OWNER].rpartition("/")[2]: claim for claim in owned}

    def truth(self) -> int:
        """At the target or on the way to it."""
        return self.at_target() + self.on_way()

    def bound(self) -> int:
        """What the roll-out permits of that: its step where it knows the target, else the first. Of the total that was
        there when the decision was made, because no decision is newer than its watches."""
        rollout = next(iter(self.rollouts.values()), None)
        steps = rollout.steps if rollout is not None else (CANARY,)
        step = steps[0]
        if rollout is not None and (rollout.status.target, rollout.status.makes) == (self.pool.hash, self.makes):
            step = next((each for each in steps if each.name == rollout.status.step), step)
        total = max(len(known.pairs) for known in self.past if known.at >= self.now - REMEMBERED)
        return step.allows(max(total, len(self.pairs)))

    @property
    def makes(self) -> str:
        """What the NodeClass says of it."""
        return f"c/{self.image}"

    @staticmethod
    def plan_of(claim: NodeClaim) -> str:
        """By which it was made."""
        return claim.plan

    # What the workers know.

    def remember(self) -> None:
        """The watches tell of it, sooner or later."""
        self.past = [known for known in self.past if known.at >= self.now - 2 * REMEMBERED]
        self.past.append(Known(at=self.now, pairs=dict(self.pairs), pool=self.pool, rollouts=dict(self.rollouts)))
        self.states |= {str(each.status.state) for each in self.rollouts.values()}

    def seen(self, newest: float = 0.0) -> Snapshot:
        """What a worker sees that has seen all NodeClaims up to that moment."""
        claims = self.chosen.choice([k for k in self.past if k.at >= max(newest, self.now - LAG)] or self.past[-1:])
        late = [known for known in self.past if known.at >= self.now - OTHERS_LAG] or self.past[-1:]
        pool, rollouts = self.chosen.choice(late).pool, self.chosen.choice(late).rollouts
        return self.world(claims.pairs, pool, rollouts)

    def world(self, pairs: Mapping[str, Pair], pool: NodePool, rollouts: Mapping[str, Rollout]) -> Snapshot:
        """A snapshot of these."""
        pods = [a_pod(name, cpu="6", name=f"on-{name}") for name, pair in pairs.items() if pair.claim.image_id]
        marked = frozenset(p.claim.name for p in pairs.values() if names.OWNER in p.claim.annotations)
        found = replace(a_world(pairs.values(), pods, [pool]), now=self.now, disrupting=marked)
        return replace(found, rollouts=rollouts, policies={self.policy.name: self.policy})

    # What the cloud and its pods do.

    def join(self, template: str, image: str, **annotations: str) -> str:
        """A NodeClaim; without an image its instance is still to come."""
        name = f"n{next(self.numbers)}"
        own = {names.NODE_POOL_HASH: template, names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM, **annotations}
        self.pairs[name] = a_pair(
            name, zone=self.zone(), claim={"created": self.now, "image_id": image, "annotations": own}
        )
        return name

    def zone(self) -> str:
        """Where the next instance starts."""
        return "z1"

    def scale_up(self) -> None:
        """A pod comes, and its node."""
        pins = launched_by(next((each.pin("provisioned") for each in self.rollouts.values()), None))
        older = images_of(pins)
        self.came[self.join(self.pool.hash, older[0].id if older else self.image, **pins)] = self.now

    def lose(self) -> None:
        """Consolidation, an interruption, a person's delete or a scale-down takes a node, whichever it is."""
        if len(self.pairs) > 4:
            self.forget(self.chosen.choice(sorted(self.pairs)))

    def forget(self, name: str) -> None:
        """It is gone; a disruption of it has nothing to do any more."""
        claim = self.pairs.pop(name).claim
        plan = claim.annotations.get(names.OWNER, "").rpartition("/")[2]
        if self.new_of.get(plan) not in self.pairs:  # else its replacement comes all the same
            self.new_of.pop(plan, None)
            self.towards.pop(plan, None)
        for other in [each for each, new in self.new_of.items() if new == name and each not in self.marked()]:
            del self.new_of[other]
            self.towards.pop(other, None)

    def judge_drift(self) -> None:
        """Conditions are written claim by claim, each some time after the change."""
        self.judge([name for name in self.pairs if self.chosen.random() < 0.6])

    def judge(self, which: list[str]) -> None:
        """Whether these have drifted."""
        for name in which:
            pair, self.judged[name] = self.pairs[name], self.now
            if pair.claim.image_id:
                template, image = self.made_of(pair.claim)
                reason = "NodePoolDrifted" if template != self.pool.hash else "AMIDrift" if image != self.image else ""
                known = pair.claim.condition(names.DRIFTED)
                if (known.reason if known is not None else "") != reason:
                    kept = tuple(each for each in pair.claim.conditions if each.type != names.DRIFTED)
                    new = (condition(names.DRIFTED, changed=self.now, reason=reason),) if reason else ()
                    self.pairs[name] = replace(pair, claim=replace(pair.claim, conditions=(*kept, *new)))

    # What holds.

    def holds(self, act: str, was: int) -> None:
        """No act of the product ever takes more than the step to the target."""
        truth, bound = self.truth(), self.bound()
        self.tell(act)
        told = "\n".join(self.story)
        assert truth <= was or truth <= bound, f"{act}: {truth} of at most {bound}\n{told}"

    def tell(self, act: str) -> None:
        """One line of the story."""
        places = [f"{each.status.step} {each.status.state} {each.intent}" for each in self.rollouts.values()]
        targets = [f"{each.status.target} {each.status.makes}" for each in self.rollouts.values()]
        line = f"{self.now - NOW:.1f} {act}: {self.target}, {places} of {targets}, {self.at_target()} + {self.on_way()}"
        self.story = [*self.story[-40:], f"{line} of {len(self.pairs)}, {len(self.decided)} decided"]

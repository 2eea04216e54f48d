"""A NodePool through which a change goes while everything happens that may: what the plays of roll-outs are played on.

Nobody in it knows more than a worker would: each decides by what its watches have told, every kind by itself and each
of them late, writes under the version that it has read, and dies where it likes. What is true of the nodes is kept
beside the objects, so that the fraction is not measured by the product's own count.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.upkeep.wanted_rollouts import wanted_rollouts
from dovetail.messages.plans import DisruptionPlan, Seen
from dovetail.model import names
from dovetail.model.beginnings import Cause, hold_of, rollouts_of, said_in, why_not_made
from dovetail.model.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.model.nodes import NodeClaim
from dovetail.model.policies import Policy
from dovetail.model.pools import NodePool
from dovetail.model.rollout_approvals import Approval
from dovetail.model.rollouts import Intent, Rollout, RolloutPlan, RolloutStep
from dovetail.model.snapshot import Snapshot
from dovetail.model.stable_images import images_of
from testing.disruption_worlds import NOW, Pair, a_pair, a_pod, a_pool, a_world, condition

SETTINGS: Final = DisruptionSettings()
CANARY: Final = RolloutStep(name="canary", to="1", soak=600)
QUARTER: Final = RolloutStep(name="quarter", to="25%", soak=600)
REST: Final = RolloutStep(name="rest", to="100%")
BOOTS: Final = 60.0
LAG: Final = 5.0  # seconds by which the watch of NodeClaims lags at most; a Scheduler that begins anew waits for longer
OTHERS_LAG: Final = 30.0  # and the watches of other kinds
REMEMBERED: Final = 60.0  # seconds for which a Scheduler waits until its own writes are seen
QUIET: Final = 20.0  # seconds for which a Scheduler that knows nothing decides nothing
HELD_UP: Final = 15.0  # seconds after which a mark asks whether its Scheduler is still the one that decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A mark that is still to be made. `scheduler`: which of them decided it, and when."""

    claim: str
    plan: str
    seen: "tuple[str, ...]"
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
    seen_by: dict[str, tuple[str, ...]] = field(default_factory=dict)  # plan -> by which places it was decided
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
        return claim.annotations.get(names.PLAN, "")

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
        self.pairs[name] = a_pair(name, claim={"created": self.now, "image_id": image, "annotations": own})
        return name

    def scale_up(self) -> None:
        """A pod comes, and its node."""
        pins = next((each.pins("provisioned") for each in self.rollouts.values()), {})
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
        self._judge([name for name in self.pairs if self.chosen.random() < 0.6])

    def _judge(self, which: list[str]) -> None:
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

    # What workers do.

    def upkeep(self) -> None:
        """Any worker's look, and its write under the version that it has seen."""
        world = self.seen()
        for name, known in world.rollouts.items():
            live = self.rollouts.get(name)
            status = rollout_status(known, world, self.now, self.makes)
            if live is not None and live.resource_version == known.resource_version and status != live.status:
                self.write(replace(live, status=status))
        for new in [] if self.rollouts else wanted_rollouts(world):
            plan = new.plan
            self.write(
                Rollout(
                    name=new.name,
                    uid=f"uid-{next(self.numbers)}",
                    created=self.now,
                    pool=new.pool,
                    steps=plan.steps,
                    launches_stable=plan.launches_stable,
                    rolls_back=plan.rolls_back,
                    policy=new.policy,
                )
            )

    def write(self, rollout: Rollout) -> None:
        """As the API server keeps it."""
        self.rollouts[rollout.name] = replace(rollout, resource_version=str(next(self.numbers)))

    def decide(self) -> None:
        """The Scheduler's next decision: after its marks, and after it has seen them."""
        mine = any(each.scheduler == self.scheduler for each in self.decided)
        if mine or self.now < self.quiet_until:
            return
        self._judge([name for name in self.pairs if self.judged.get(name, 0.0) < self.now - REMEMBERED])
        own = self.own_write if self.now - self.own_write < REMEMBERED else 0.0
        world = self.seen(own)
        choice = choose(world, SETTINGS, never)
        for command in choice.commands if isinstance(choice, DisruptionPlan) else ():
            plan = f"p{next(self.numbers)}"
            for target in command.targets:
                self.decided.append(
                    Decided(
                        claim=target.claim,
                        plan=plan,
                        seen=Seen.of(world).rollouts,
                        template=world.pools[self.pool.name].hash,
                        scheduler=self.scheduler,
                        at=self.now,
                    )
                )

    def mark(self) -> None:
        """The next mark: what people say is asked live, and so is the claim. A worker may die instead, and another
        tries again."""
        if not self.decided or self.chosen.random() < 0.2:
            return
        next_one = self.decided.pop(0)
        name = next_one.claim.removeprefix("claim-")
        pair, age = self.pairs.get(name), self.now - next_one.at
        if pair is None or names.OWNER in pair.claim.annotations:
            return
        if age > 60.0 or (next_one.scheduler != self.scheduler and age >= HELD_UP):
            return
        if self.is_held(next_one):
            return
        was = self.truth()
        own = {**pair.claim.annotations, names.OWNER: f"c/disrupt/{next_one.plan}"}
        self.pairs[name] = replace(pair, claim=replace(pair.claim, annotations=own))
        self.template_of[next_one.plan], self.seen_by[next_one.plan] = next_one.template, next_one.seen
        if not any(each.goes_back for each in self.rollouts.values()):
            makes = next((each.status.makes for each in self.rollouts.values()), "") or self.makes
            self.towards[next_one.plan] = next_one.template, makes.removeprefix("c/")  # no other is launched for it
        if next_one.scheduler == self.scheduler:
            self.own_write = self.now
        self.holds("mark", was)

    def is_held(self, mark: Decided) -> bool:
        """What the step that marks asks before it does."""
        said = said_in(self.world({}, self.pool, self.rollouts), self.pool.name)
        return hold_of(replace(said, nodes=None, decided=frozenset(mark.seen)), Cause.DRIFTED) is not None

    def create(self) -> None:
        """A replacement's NodeClaim, as the plan made it; which images it takes is asked live."""
        for name in [name for name, pair in self.pairs.items() if names.OWNER in pair.claim.annotations]:
            plan = self.pairs[name].claim.annotations[names.OWNER].rpartition("/")[2]
            if plan not in self.new_of and self.chosen.random() < 0.6:
                pins = next((each.pins("drifted") for each in self.rollouts.values()), {})
                about = rollouts_of(self.rollouts, self.pool.name)
                if why_not_made((self.policy,), about, self.pool.name, self.seen_by[plan]):
                    self.call_off(plan)
                    continue
                self.new_of[plan] = self.join(self.template_of[plan], "", **{names.PLAN: plan}, **pins)

    def launch(self) -> None:
        """Its instance, with what its NodeClass makes at that moment."""
        for plan, new in list(self.new_of.items()):
            pair = self.pairs.get(new)
            if pair is None or pair.claim.image_id or self.chosen.random() < 0.4:
                continue
            if self.is_other_target(pair.claim):
                self.call_off(plan)
                continue
            was, older = self.truth(), images_of(pair.claim.annotations)
            self.pairs[new] = replace(pair, claim=replace(pair.claim, image_id=older[0].id if older else self.image))
            if plan not in self.marked():
                self.new_of.pop(plan)
                self.towards.pop(plan, None)
            if not older:  # where the target is the image of before again, that is no change that anybody steps through
                self.holds("launch", was)

    def is_other_target(self, claim: NodeClaim) -> bool:
        """What the step that launches asks before it does."""
        return claim.annotations.get(names.TARGET, self.makes) != self.makes

    def finish(self) -> None:
        """The replacement is ready: the old node goes."""
        for name in [name for name, pair in self.pairs.items() if names.OWNER in pair.claim.annotations]:
            plan = self.pairs[name].claim.annotations[names.OWNER].rpartition("/")[2]
            new = self.pairs.get(self.new_of.get(plan, ""))
            if new is not None and new.claim.image_id and self.now - new.claim.created >= BOOTS:
                del self.new_of[plan]
                self.forget(name)

    def undo(self) -> None:
        """A failure, a cancel by a person, or a mark whose workflow is lost with the database."""
        for pair in list(self.pairs.values()):
            if names.OWNER in pair.claim.annotations and self.chosen.random() < 0.4:
                self.call_off(pair.claim.annotations[names.OWNER].rpartition("/")[2])

    def call_off(self, plan: str) -> None:
        """The replacement goes first, then the mark comes off."""
        self.pairs.pop(self.new_of.pop(plan, ""), None)
        self.towards.pop(plan, None)
        for name, pair in self.pairs.items():
            if pair.claim.annotations.get(names.OWNER, "").endswith(f"/{plan}"):
                own = {key: text for key, text in pair.claim.annotations.items() if key != names.OWNER}
                self.pairs[name] = replace(pair, claim=replace(pair.claim, annotations=own))

    def lose_database(self) -> None:
        """Another Scheduler begins, without a memory, while marks of the one before are still under way."""
        self.scheduler += 1
        self.quiet_until, self.own_write = self.now + QUIET, 0.0
        self.undo()

    # What people do.

    def change(self) -> None:
        """The target is another one: a new image, that of before, or another template."""
        if self.chosen.random() < 0.3:
            self.pool = replace(self.pool, hash=self.chosen.choice("1234"))
        else:
            self.image = f"image-{self.chosen.randint(1, 4)}"

    def intend(self) -> None:
        """Somebody pauses it, stops it, promotes it, goes back, or lets it run."""
        for rollout in list(self.rollouts.values()):
            intent = self.chosen.choice([Intent.RUN, Intent.RUN, Intent.RUN, *Intent])
            self.write(replace(rollout, intent=intent, generation=rollout.generation + 1))

    def restep(self) -> None:
        """Somebody edits its steps, and the policy by which the next one is made."""
        for rollout in list(self.rollouts.values()):
            steps = list(rollout.steps)
            steps[1] = replace(steps[1], to=self.chosen.choice(["10%", "25%", "2", "50%"]))
            self.write(replace(rollout, steps=tuple(steps), generation=rollout.generation + 1))

    def delete(self) -> None:
        """Somebody deletes it; the policy makes it again."""
        self.rollouts.clear()

    def approve(self) -> None:
        """Somebody answers what is asked, with what was shown, something else, or too late; nobody else is asked."""
        for rollout in list(self.rollouts.values()):
            asked = rollout.status.awaits
            if asked is not None:
                digest = self.chosen.choice([asked.digest, asked.digest, "0-0-0-0-0"])
                given = Approval(step=rollout.status.step, digest=digest, by="alice", at=self.now)
                self.write(replace(rollout, approval=given, generation=rollout.generation + 1))

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


def a_policy(approve: bool, stable: bool) -> Policy:
    """By which each change goes in three steps."""
    quarter = replace(QUARTER, approve=86_400.0 if approve else None)
    return Policy(name="careful", rollout=RolloutPlan(steps=(CANARY, quarter, REST), launches_stable=stable))


def played(seed: str) -> ChangingPool:
    """One of them, to its end; the seed repeats it. In some little happens beside, so that the change gets through."""
    chosen = random.Random(seed)
    play = ChangingPool(chosen, a_policy(approve=chosen.random() < 0.3, stable=chosen.random() < 0.7))
    for _ in range(chosen.randint(4, 24)):
        play.join(play.pool.hash, play.image)
    play.now += 3600.0
    play.image = "image-2"
    play.remember()
    people = [play.scale_up, play.lose, play.approve, play.approve, play.intend, play.undo]
    disasters = [play.change, play.restep, play.delete, play.lose_database]
    work = [play.judge_drift, play.upkeep, play.upkeep, play.decide, play.create, play.launch, play.finish]
    rare = chosen.choice([(0.0, 0.0), (0.01, 0.03), (0.015, 0.1)])
    away_until = 0.0
    for _ in range(chosen.randint(200, 500)):
        if chosen.random() < 0.004:
            away_until = play.now + 7200.0  # Temporal is away: people and the cloud go on
        away, dice = play.now < away_until, chosen.random()
        act = chosen.choice(disasters if dice < rare[0] else people if dice < rare[1] else [*work, *[play.mark] * 6])
        if not away or act in (*people[:5], *disasters[:3]):
            act()
            play.tell(act.__name__)
        play.now += 600.0 if away else chosen.choice([0.0, 0.2, 1.0, 5.0, 60.0])
        play.remember()
    return play

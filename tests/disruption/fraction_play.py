"""Plays of roll-outs: a change goes through a NodePool while everything happens that may.

Nobody in one knows more than a worker would: each decides by what its watches have told, writes under the version that
it has read, and dies where it likes.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan, Seen
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import images_of, memory_of
from dovetail.model.own.gates import Answer
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Intent, Rollout, RolloutPlan, RolloutStep
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.rollout.hold import why_not_made
from dovetail.rules.rollout.wanted import wanted_rollouts
from dovetail.rules.said import Cause, rollouts_of
from tests.disruption.changing_pool import CANARY, REMEMBERED, ChangingPool, Decided
from worlds.kept_rollouts import kept
from worlds.made_claims import launched_by, made_by

SETTINGS: Final = DisruptionSettings()
QUARTER: Final = RolloutStep(name="quarter", to="25%", soak=600)
REST: Final = RolloutStep(name="rest", to="100%")
BOOTS: Final = 60.0
QUIET: Final = 20.0  # seconds for which a Scheduler that knows nothing decides nothing
HELD_UP: Final = 15.0  # seconds after which a mark asks whether its Scheduler is still the one that decides


class Play(ChangingPool):
    """What workers and people do with it."""

    # What workers do.

    def upkeep(self) -> None:
        """Any worker's look, and its write under the version that it has seen."""
        world, answers = self.seen(), self.answers()
        for name, known in world.rollouts.items():
            live = self.rollouts.get(name)
            status = rollout_status(known, world, self.now, self.makes, answers)
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
                    gates=plan.gates,
                    order=plan.order,
                    longest=plan.longest,
                    policy=new.policy,
                )
            )

    def answers(self) -> Mapping[str, Answer]:
        """What that worker was told by Prometheus, which nobody asks here."""
        return {}

    def write(self, rollout: Rollout) -> None:
        """As the API server keeps it."""
        self.rollouts[rollout.name] = kept(replace(rollout, resource_version=str(next(self.numbers))))

    def decide(self) -> None:
        """The Scheduler's next decision: after its marks, and after it has seen them."""
        mine = any(each.scheduler == self.scheduler for each in self.decided)
        if mine or self.now < self.quiet_until:
            return
        self.judge([name for name in self.pairs if self.judged.get(name, 0.0) < self.now - REMEMBERED])
        own = self.own_write if self.now - self.own_write < REMEMBERED else 0.0
        world = self.seen(own)
        choice = choose(world, SETTINGS, never)
        commands = choice.commands if isinstance(choice, DisruptionPlan) else ()
        self.takes(world, [target.claim for command in commands for target in command.targets])
        for command in commands:
            plan = f"p{next(self.numbers)}"
            for target in command.targets:
                self.decided.append(
                    Decided(
                        claim=target.claim,
                        plan=plan,
                        seen=Seen.of(world).basis,
                        template=world.pools[self.pool.name].hash,
                        scheduler=self.scheduler,
                        at=self.now,
                    )
                )

    def takes(self, world: Snapshot, claims: Sequence[str]) -> None:
        """A decision takes these of what it has seen."""

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
        return hold_of(replace(said, nodes=None, basis=mark.seen), Cause.DRIFTED) is not None

    def create(self) -> None:
        """A replacement's NodeClaim, as the plan made it; which images it takes is asked live."""
        for name in [name for name, pair in self.pairs.items() if names.OWNER in pair.claim.annotations]:
            plan = self.pairs[name].claim.annotations[names.OWNER].rpartition("/")[2]
            if plan not in self.new_of and self.chosen.random() < 0.6:
                pin = next((each.pin("drifted") for each in self.rollouts.values()), None)
                about = rollouts_of(self.rollouts, self.pool.name)
                if why_not_made((self.policy,), about, self.pool.name, self.seen_by[plan]):
                    self.call_off(plan)
                    continue
                self.new_of[plan] = self.join(self.template_of[plan], "", **launched_by(pin, **made_by(plan)))

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
        return memory_of(claim.annotations).roll_out.target not in ("", self.makes)

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

    def others(self) -> None:
        """What goes on beside all acts."""

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
                digest = self.chosen.choice([asked.digest, asked.digest, "0" * 60])
                given = Approval(step=rollout.status.step, digest=digest, by="alice", at=self.now)
                self.write(replace(rollout, approval=given, generation=rollout.generation + 1))


def a_policy(approve: bool, stable: bool) -> Policy:
    """By which each change goes in three steps."""
    quarter = replace(QUARTER, approve=86_400.0 if approve else None)
    return Policy(name="careful", rollout=RolloutPlan(steps=(CANARY, quarter, REST), launches_stable=stable))


def played(seed: str) -> Play:
    """One of them, to its end; the seed repeats it. In some little happens beside, so that the change gets through."""
    chosen = random.Random(seed)
    return play_on(Play(chosen, a_policy(approve=chosen.random() < 0.3, stable=chosen.random() < 0.7)))


def play_on(play: Play) -> Play:
    """From the change to the end."""
    chosen = play.chosen
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
        play.others()
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

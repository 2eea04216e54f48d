"""What must hold in the life of a pool, worked out from what is true of its nodes; nothing here asks the rules.

What the oracle knows: what people have done and when, which image each instance has, which images are bad, and what the
objects say. Fractions, soaks and approvals are worked out here anew, from the policy's own words.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.rollout_approvals import Approval
from dovetail.model.own.rollouts import Intent, Rollout, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.pods import Pod
from tests.disruption.lives.pool_life import BORN, POOL, Flight, Life, a_template
from worlds.kept_rollouts import whole

HOUR: Final = 3600.0
SLACK: Final = 900.0  # beats are up to a quarter of an hour apart
SEEN_ILL: Final = 600.0  # seconds for which pods crash before everybody could know
UNDER_WAY: Final = {"Replacing", "Soaking", "Judging", "Awaiting", "Paused"}
REFUSED: Final = {"RollingBack", "Failed"}
LARGEST: Final = 20_000  # bytes of an object


@dataclass
class Target:
    """What the pool is to become since a moment, and what people have said of it."""

    image: str
    template: int
    since: float
    promoted: bool = False
    approved: set[str] = field(default_factory=set)  # steps
    back: bool = False  # somebody has ordered the way back
    again: bool = False  # somebody has let it run since
    is_revert: bool = False
    open_since: float | None = None  # when the last step was permitted
    moved: float = 0.0  # when one more node has come to it
    most: int = 0
    step: str = ""
    ill_since: float | None = None  # since when pods that were well crash on its nodes
    refused: bool = False


@dataclass
class JudgedLife(Life):
    """A life in which each act is judged."""

    steps: tuple[RolloutStep, ...] = ()
    stable: str = "image-1"  # what most nodes ran when the change before the last was made
    targets: list[Target] = field(default_factory=list)
    attended: float = BORN  # since when workers look without a pause
    people: set[str] = field(default_factory=set)  # what a person has declared that holds

    def __post_init__(self) -> None:
        super().__post_init__()
        self.targets.append(Target(self.image, self.template, self.now))

    @property
    def target(self) -> Target:
        return self.targets[-1]

    def fails(self, what: str) -> None:
        told = "\n".join(self.story[-40:])
        raise AssertionError(f"{what}\nat +{(self.now - BORN) / 60:.0f} min\n{told}")

    # What people do.

    def change(self, image: str = "", template: int = 0) -> None:
        """The NodeClass or the NodePool changes."""
        if (image or self.image, template or self.template) == (self.image, self.template):
            return
        ran = [self.image_of.get(claim.uid, "") for claim in self.world.claims.values()]
        before = self.targets[-1]
        if before.refused is False and ran.count(before.image) * 2 > len(ran):
            self.stable = before.image
        self.image, self.template = image or self.image, template or self.template
        pool = self.world.pools[POOL]
        changed = replace(a_template(self.template), resource_version=self.world.version())
        known = {k: v for k, v in pool.annotations.items() if k not in changed.annotations}
        self.world.pools[POOL] = replace(changed, annotations={**known, **changed.annotations})
        new = Target(self.image, self.template, self.now, moved=self.now)
        refused = {each.image for each in self.targets if each.refused}
        new.is_revert = self.image == self.stable and self.image not in refused and before.template == self.template
        self.targets.append(new)
        self.tell(f"changed to {self.image}, template {self.template}{' back' if new.is_revert else ''}")

    def order(self, intent: Intent) -> None:
        """A person's order."""
        rollout = self.rollout
        if rollout is None:
            return
        self.objects.put(replace(rollout, intent=intent, generation=rollout.generation + 1))
        self.people = {str(intent)} & {"Pause", "Abort"}
        self.target.promoted |= intent == Intent.PROMOTE
        self.target.back |= intent == Intent.ROLL_BACK
        self.target.again |= intent == Intent.RUN
        self.target.moved = self.now
        self.tell(f"ordered {intent}")

    def approve(self, right: bool = True, part: float = 0.417) -> None:
        """A person answers what is asked, at a moment with a part of a second."""
        rollout = self.rollout
        asked = rollout.status.awaits if rollout is not None else None
        if rollout is None or asked is None or rollout.status.state != RolloutState.AWAITING:
            return
        digest = asked.digest if right else "0" * len(asked.digest)
        given = Approval(step=rollout.status.step, digest=digest, by="alice", at=float(int(self.now)) + part)
        self.objects.put(replace(rollout, approval=given, generation=rollout.generation + 1))
        if right:
            self.target.approved.add(rollout.status.step)
        self.tell(f"approved {rollout.status.step}{'' if right else ' wrongly'}")

    # What is true.

    def made_of(self, claim: NodeClaim) -> tuple[str, str]:
        return claim.annotations.get(names.NODE_POOL_HASH, ""), self.image_of.get(claim.uid, "")

    def is_at_target(self, claim: NodeClaim) -> bool:
        return self.made_of(claim) == (str(self.template), self.image) and claim.uid not in self.odd

    def at_target(self) -> list[NodeClaim]:
        return [each for each in self.world.claims.values() if self.is_at_target(each) and each.deleting_since is None]

    def allows(self, to: str) -> int:
        total = len(self.world.claims)
        return (total * int(to[:-1]) + 99) // 100 if to.endswith("%") else min(int(to), total)

    def bound(self) -> int:
        """How many nodes may be at the target by now, by soaks, approvals and orders."""
        target, earliest = self.target, self.target.since
        if target.promoted or target.is_revert or self.is_complete():
            return len(self.world.claims)
        found = 0
        for step in self.steps:
            if self.now < earliest:
                break
            found = max(found, self.allows(step.to))
            earliest += step.soak
            if step.approve is not None and step.name not in target.approved:
                break
        return found

    def is_complete(self) -> bool:
        """Whether a roll-out of this target came to its end."""
        done = [each for each in self.world.rules.rollouts.values() if each.status.state == RolloutState.COMPLETE]
        return any(each.status.begun >= self.target.since for each in done)

    def place(self) -> tuple[str, str]:
        """The state and the step that the object has."""
        rollout = self.rollout
        if rollout is None:
            return "", ""
        said = whole(rollout)["status"].get("step", {})
        return said.get("state", "Waiting"), said.get("name", "")

    # What must hold.

    def begun(self, flight: Flight) -> None:
        """A mark for drift takes a node to the target, and no more than may be."""
        if flight.command.reason != "Drifted" or self.place()[0] in REFUSED:
            return
        new = [each for each in flight.command.targets if not self.is_at_target(self.world.claims[each.claim])]
        came, bound = len(self.at_target()) + len(new), self.bound()
        if new and came > bound:
            self.fails(f"{came} nodes are at the target or on their way, of {bound}")
        target = self.target
        known = SEEN_ILL if not self.away else 3 * SEEN_ILL
        holds = not (target.promoted or self.is_complete())  # an image that breaks once it is everywhere is in no step
        if holds and target.ill_since is not None and self.now - target.ill_since > known:
            self.fails(f"one more node goes to {self.image}, on which pods have crashed for ten minutes")
        opened = target.open_since
        for each in flight.command.targets:
            claim = self.world.claims[each.claim]
            if opened is not None and claim.created > opened and claim.uid not in self.odd:
                self.fails(f"{claim.name} was made while the last step was permitted, and is made again")
        self.tell(f"marked {[each.claim for each in flight.command.targets]}")

    def wrote(self, rollout: Rollout, status: RolloutStatus) -> None:
        """No good image is refused; what is complete is written no more."""
        super().wrote(rollout, status)
        before, after = str(rollout.status.state), str(status.state)
        if before == "Complete" and rollout.generation in {each.generation for each in rollout.status.conditions}:
            self.fails(f"{rollout.name} is complete, and is written")
        if after in REFUSED and before not in REFUSED:
            ours = status.makes == f"c/{self.image}"
            self.target.refused |= ours
            if ours and self.image not in self.bad and not self.target.back:
                self.fails(f"{self.image} is good and is refused: {status.failure and status.failure.message}")
        anew = before in UNDER_WAY and after == "Replacing" and status.begun != rollout.status.begun
        if anew and self.target.since < rollout.status.begun and status.makes == rollout.status.makes:
            self.fails("it begins anew, and nobody has changed anything")
        said = self.target.again or self.target.since >= rollout.status.begun
        if before in REFUSED and after in UNDER_WAY and not said:
            self.fails("a refused target is tried again, and nobody has said so")
        size = len(json.dumps(whole(replace(rollout, status=status))))
        if size > LARGEST:
            self.fails(f"the object has {size} bytes")

    def judge(self) -> None:
        """After each beat."""
        state, step = self.place()
        target, now = self.target, self.now
        came = sum(each.is_true(names.INITIALIZED_CONDITION) for each in self.at_target())
        if came > target.most or step != target.step:
            target.moved, target.most, target.step = now, max(came, target.most), step
        knows = self.rollout is not None and self.rollout.status.makes == f"c/{self.image}"
        if state in REFUSED:  # it is permitted no more, and a person who lets it run again begins at the first step
            target.open_since = None
        if target.open_since is None and state in UNDER_WAY and step == self.steps[-1].name and knows:
            target.open_since = now
        ill = self.image in self.bad and any(
            pod.failing and self.was_well(pod) and self.image_on(pod.node_name) == self.image
            for pod in self.world.pods.values()
        )
        target.ill_since = (target.ill_since or now) if ill else None
        self.judge_progress(state)
        if target.is_revert and now - max(target.since, self.attended) > HOUR and not self.people:
            left = [c.name for c in self.world.claims.values() if not self.is_at_target(c) and self.is_free(c)]
            if left and not self.stalled():
                self.fails(f"an hour after the way back in Git {left} are still there and not marked")

    def was_well(self, pod: Pod) -> bool:
        """Whether anybody could know so: it crashes for no reason of its own, and its owner is older than the change. A
        younger one has nothing to be compared with, and is named."""
        return pod.uid not in self.broken and pod.created < self.target.since

    def is_free(self, claim: NodeClaim) -> bool:
        """Whether nothing takes it yet."""
        return claim.deleting_since is None and names.OWNER not in claim.annotations and claim.uid not in self.odd

    def judge_progress(self, state: str) -> None:
        """Within an hour there is progress, or a name."""
        rollout, now = self.rollout, self.now
        old = [each for each in self.world.claims.values() if not self.is_at_target(each)]
        if rollout is None or self.people or not old or state in REFUSED:
            return
        if self.stalled():  # silence is counted from the last name
            self.target.moved = now
        if now - max(self.target.moved, self.attended) <= HOUR + SLACK:
            return
        until = rollout.status.until
        if (state == "Soaking" and until is not None and now <= until + SLACK) or state in ("Awaiting", "Complete"):
            return
        self.fails(f"{state} for an hour without a node more and without a name")

    def stalled(self) -> bool:
        """Whether it asks for a person, and says why."""
        conditions = self.rollout.status.conditions if self.rollout is not None else ()
        found = next((each for each in conditions if (each.type, each.status) == ("Stalled", "True")), None)
        if found is not None and not found.message:
            self.fails("it is stalled and says nothing")
        return found is not None

    def judge_the_end(self) -> None:
        """When all has come to rest: a bad image that is taken back is on no node."""
        for target in self.targets:
            if target.image in self.bad and target.refused and self.rollout and self.rollout.rolls_back:
                left = [n for n, c in self.world.claims.items() if self.image_of.get(c.uid) == target.image]
                if left:
                    self.fails(f"{target.image} was refused, and {left} have it still")

    async def beat(self, seconds: float) -> None:
        if self.away:
            self.attended = self.now + seconds
        await super().beat(seconds)
        self.judge()

    def doubts(self) -> bool:
        """Whether upkeep looks each minute because pods do worse, and that may take the change back."""
        rollout = self.rollout
        return rollout is not None and rollout.rolls_back and bool(rollout.status.gate.message) and self.is_tried()

    def is_tried(self) -> bool:
        return not self.away and self.place()[0] in UNDER_WAY

    async def live(self, seconds: float) -> None:
        """Beats for so long: minutes while something is under way, longer ones else."""
        until = self.now + seconds
        while self.now < until:
            waits = self.rollout.status.until if self.rollout is not None else None
            busy = self.flights or self.doubts() or any(not pod.node_name for pod in self.world.pods.values())
            next_one = 60.0 if busy else min(SLACK, (waits or until) - self.now + 1.0)
            await self.beat(max(60.0, min(next_one, until - self.now)))

"""What a roll-out adds to a plain drift: `python -m acceptance.bench.worker.rollouts [NODES] [TURNS]`.

All nodes of one pool have drifted under a budget of 20 %, two pods a node. Both ways are played by turns in one run, to
the end, with a cloud that has each replacement at once: what is counted is the processor time of all decisions and, for
the roll-out with its steps of 1, 10 % and 100 %, of all looks that write its status, in seconds.
"""

import gc
import sys
import time
from dataclasses import dataclass, field, replace
from statistics import mean, median
from typing import Final

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.disruption.choose import choose
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.own.rollouts import Rollout, RolloutState, RolloutStep
from dovetail.model.pods import Pod
from dovetail.model.pools import Budget
from dovetail.model.snapshot import Snapshot
from worlds.disruption import NOW, Pair, a_pair, a_pod, a_pool, a_world, condition

SETTINGS: Final = DisruptionSettings()
STEPS: Final = (
    RolloutStep(name="canary", to="1"),
    RolloutStep(name="tenth", to="10%"),
    RolloutStep(name="rest", to="100%"),
)
LOOK: Final = 60.0  # seconds of the play between two looks


@dataclass(slots=True)
class Told:
    """What one way took, in seconds: decisions that take nodes, those that take none, and the roll-out's status."""

    taking: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    status: list[float] = field(default_factory=list)
    writes: int = 0  # of its status

    @property
    def seconds(self) -> float:
        """All of them."""
        return sum([*self.taking, *self.waiting, *self.status])

    @property
    def decisions(self) -> int:
        """How many."""
        return len(self.taking) + len(self.waiting)

    @property
    def look(self) -> float:
        """A look that takes nodes, with the status where there is one."""
        return mean(self.taking) + (mean(self.status) if self.status else 0.0)


def played(nodes: int, rollout: Rollout | None) -> Told:
    """From the first decision until no node of before is left, and the roll-out is complete."""
    pool = replace(a_pool(consolidate_after=None), hash="2")
    pool = replace(pool, disruption=replace(pool.disruption, budgets=(Budget(nodes="20%"),)))
    pairs = {f"n{n}": a_pair(f"n{n}", also=(condition(names.DRIFTED, reason="AMIDrift"),)) for n in range(nodes)}
    pods = {f"n{n}": [a_pod(f"n{n}", cpu="3") for _ in range(2)] for n in range(nodes)}
    told, now, made = Told(), NOW, 0
    while any(pair.claim.is_true(names.DRIFTED) for pair in pairs.values()) or not is_over(rollout):
        world = snapshot_of(pairs, pods, now)
        world = replace(world, pools={pool.name: pool}, rollouts={rollout.name: rollout} if rollout else {})
        if not gc.isenabled():  # whose times count
            gc.collect()
        before = time.process_time()
        choice = choose(world, SETTINGS, never)
        took = time.process_time() - before
        (told.taking if isinstance(choice, DisruptionPlan) else told.waiting).append(took)
        if rollout is not None:
            before, seen = time.process_time(), replace(world)  # another step's, which counts for itself
            status = rollout_status(rollout, seen, now, "x/2")
            told.status.append(time.process_time() - before)
            told.writes += status != rollout.status
            rollout = replace(rollout, status=status)
        commands = choice.commands if isinstance(choice, DisruptionPlan) else ()
        for target in [target for command in commands for target in command.targets]:
            made += 1
            new = f"r{made}"
            pairs[new] = a_pair(new, claim={"created": now, "annotations": {names.PLAN: f"{made}/0"}})
            pods[new] = [replace(pod, node_name=new, started=now) for pod in pods.pop(target.node)]
            del pairs[target.node]
        now += LOOK
    return told


def snapshot_of(pairs: dict[str, Pair], pods: dict[str, list[Pod]], now: float) -> Snapshot:
    """The cluster at that moment."""
    return replace(a_world(pairs.values(), [pod for each in pods.values() for pod in each]), now=now)


def is_over(rollout: Rollout | None) -> bool:
    """Whether nothing is left to do of it."""
    return rollout is None or rollout.status.state == RolloutState.COMPLETE


def main(nodes: int, turns: int) -> None:
    """By turns, and the ratio of the medians."""
    gc.disable()  # as the planner does
    told: dict[str, list[Told]] = {"plain": [], "roll-out": []}
    for turn in range(turns):
        for way in sorted(told, reverse=bool(turn % 2)):
            rollout = Rollout(name="r", created=NOW, pool="a", steps=STEPS) if way == "roll-out" else None
            told[way].append(played(nodes, rollout))
            last = told[way][-1]
            print(
                f"{way:9} {last.seconds:7.2f} s, {len(last.taking)} looks take nodes, {len(last.waiting)} do not, "
                f"{last.writes} writes of its status, {mean(last.status or [0.0]) * 1000:.0f} ms each",
                flush=True,
            )
    whole = median(each.seconds for each in told["roll-out"]) / median(each.seconds for each in told["plain"])
    look = median(each.look for each in told["roll-out"]) / median(each.look for each in told["plain"])
    print(f"{nodes} nodes: {whole:.2f} times a plain drift in all, {look:.2f} times for a look that takes nodes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000, int(sys.argv[2]) if len(sys.argv) > 2 else 3)

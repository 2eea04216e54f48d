"""Record a NodeRollout in each state, as this code writes it: python -m tests.recorded.rollouts.record VERSION.

They come from the plays of roll-outs with gates, each with how many more nodes it let begin. A roll-out that is under
way when the workers are upgraded is such an object and nothing else, so every later version must read them. A file that
exists is never overwritten.
"""

import json
import random
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from dovetail.model.own.policies import Policy
from dovetail.model.own.rollouts import PoolNodes, Rollout, RolloutPlan, RolloutState
from dovetail.model.values.json import Json
from tests.disruption.fraction_play import play_on
from tests.disruption.gated_play import GatedPlay, a_gated_policy
from worlds.disruption import a_pool
from worlds.kept_rollouts import whole

FOLDER: Final = Path(__file__).parent
PLAYS: Final = 80


@dataclass
class RecordedPlay(GatedPlay):
    """A play that keeps of each state the object that tells the most."""

    objects: dict[str, Json] = field(default_factory=dict)

    def write(self, rollout: Rollout) -> None:
        super().write(rollout)
        found = self.rollouts[rollout.name]
        told = {"object": whole(found), "left": left(found)}
        state = str(found.status.state)
        if len(json.dumps(told)) > len(json.dumps(self.objects.get(state, {}))):
            self.objects[state] = told


def left(rollout: Rollout) -> int:
    """How many more nodes it lets begin, of the nodes that it tells of itself."""
    status = rollout.status
    nodes = PoolNodes(
        old=status.total - status.at_target - status.leaving,
        at_target=status.at_target,
        leaving=status.leaving,
        refusable=status.at_target,
    )
    return rollout.left(replace(a_pool(), name=rollout.pool, hash=status.target), nodes)


def asking(policy: Policy) -> Policy:
    """Whose first step asks for two minutes, so that some question expires within a play."""
    plan = policy.rollout or RolloutPlan()
    first, *others = plan.steps
    return replace(policy, rollout=replace(plan, steps=(replace(first, approve=120.0), *others)))


def record(file: Path) -> None:
    """One of each state."""
    if file.exists():
        raise SystemExit(f"{file} is there: what is recorded stays as it is")
    objects: dict[str, Json] = {}
    for seed in range(PLAYS):
        chosen = random.Random(f"recorded {seed}")
        policy = a_gated_policy(chosen)
        policy = asking(policy) if seed % 2 else policy
        play = RecordedPlay(chosen, policy, wind=chosen.choice([0.0, 0.02]), objects=objects)
        play_on(play)
    missing = set(RolloutState) - set(objects)
    if missing:
        raise SystemExit(f"no play came to {', '.join(sorted(missing))}")
    file.write_text(json.dumps(objects, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    record(FOLDER / f"{sys.argv[1]}.json")

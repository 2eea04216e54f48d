"""What a worker has written of a drain that something holds."""

from typing import Any

from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.own.drain_rules import Blocker, Level
from dovetail.model.own.held_drains import Forced, HeldDrain, HeldSince
from dovetail.termination.hold_clocks import clocks_of
from dovetail.termination.ladder import began_at


def held(since: float, blocker: Blocker = Blocker.PDB_BLOCKS, *levels: Level, **more: Any) -> dict[str, str]:
    """The annotation of a drain that this has held since then."""
    clock = HeldSince(blocker=blocker, since=since, levels=frozenset(levels))
    return with_memory({}, held=HeldDrain(clocks=(clock,), **more))


def forced_by(deadline: float, *through: Blocker) -> Forced:
    return Forced(deadline=deadline, through=frozenset(through))


def levels_of(claim: NodeClaim) -> set[Level]:
    """What has been said of whatever holds it since it leaves."""
    return {level for clock in clocks_of(claim, began_at(claim)).values() for level in clock.levels}

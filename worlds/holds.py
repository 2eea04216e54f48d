"""What a worker has written of a drain that something holds."""

from typing import Any

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.drain_rules import Blocker, Level
from dovetail.termination.held import Forced, HeldDrain, HeldSince, held_text
from dovetail.termination.hold_clocks import clocks_of
from dovetail.termination.ladder import began_at


def held(since: float, blocker: Blocker = Blocker.PDB_BLOCKS, *levels: Level, **more: Any) -> dict[str, str]:
    """The annotation of a drain that this has held since then."""
    clock = HeldSince(blocker=blocker, since=since, levels=frozenset(levels))
    return {names.HELD: held_text(HeldDrain(clocks=(clock,), **more)) or ""}


def forced_by(deadline: float, *through: Blocker) -> Forced:
    return Forced(deadline=deadline, through=frozenset(through))


def levels_of(claim: NodeClaim) -> set[Level]:
    """What has been said of whatever holds it since it leaves."""
    return {level for clock in clocks_of(claim, began_at(claim)).values() for level in clock.levels}

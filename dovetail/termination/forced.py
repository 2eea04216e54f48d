"""By when is a drain that something holds forced, and through what?

An annotation of its own, because the node's deadline ends everything: pods at the cost of their grace, hooks, waits for
volumes. Force ends what it was meant for. Pods leave by its deadline, each with its whole grace period; waits for hooks
and volumes end by it only where it was meant for them.
"""

from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.drain_rules import Blocker
from dovetail.model.values.time import format_time, time_or_none
from dovetail.termination.deadline import deadline_of, is_forced_by_older, tighter
from dovetail.termination.ladder import DrainHold, began_at

FIRST_EVICTION: Final = "FirstEviction"  # beside the blockers in the annotation


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """`deadline`: by when its pods have been deleted and have had their grace. `through`: what was meant.
    `first_eviction`: the hooks that hold that were meant, because they held it, and not those of the instance's end."""

    deadline: float
    through: frozenset[Blocker] = frozenset()
    first_eviction: bool = False

    @property
    def words(self) -> str:
        """By when, and what is waited for all the same."""
        reach = reach_words(self.through, first_eviction=self.first_eviction)
        return f"all pods will be deleted by {format_time(self.deadline)}, {reach}"

    def ends_hooks(self, prefix: str) -> bool:
        """Whether hooks of that kind are not waited for any longer once its deadline has passed."""
        return Blocker.HOOK_WAITS in self.through or (self.first_eviction and prefix == names.PRE_DRAIN_HOOK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """By when pods leave: with their node, at the cost of their grace, or because the drain is forced."""

    node: float | None
    forced: Forced | None = None

    @property
    def of_force(self) -> float | None:
        return None if self.forced is None else self.forced.deadline

    @property
    def first(self) -> float | None:
        return tighter(self.node, self.of_force)


def forced_for(hold: DrainHold | None, deadline: float, through: frozenset[Blocker], *, hooks_named: bool) -> Forced:
    """A force of that hold. Hooks that are meant because they hold the first eviction are not those of the instance's
    end, which hold nothing yet: another one's backup must not be lost for them."""
    narrow = Blocker.HOOK_WAITS in through and not hooks_named and hold is not None and hold.first_eviction
    meant = through - {Blocker.HOOK_WAITS} if narrow else through
    return Forced(deadline=deadline, through=meant, first_eviction=narrow)


def reach_words(through: frozenset[Blocker], *, first_eviction: bool = False) -> str:
    """How far a force reaches that is meant for these."""
    hooks = "hooks of the instance's end" if first_eviction else "hooks"
    named = {Blocker.HOOK_WAITS: hooks, Blocker.VOLUMES_ATTACHED: "attached volumes"}
    waits = " and ".join(words for blocker, words in named.items() if blocker not in through)
    ends = " and ".join(words for blocker, words in named.items() if blocker in through)
    said = [f"{waits} are waited for"] if waits else []
    said += [f"{ends} are not waited for any longer"] if ends else []
    return "; ".join(["each with its own grace period", *said])


def forced_of(claim: NodeClaim) -> Forced | None:
    """What is written on the claim; None where nothing is that can be read, or where it tells of an earlier departure.

    An older version wrote the node's deadline: that forces the pods, and nothing that comes after them."""
    written = claim.annotations.get(names.FORCED, "")
    if is_forced_by_older(claim):
        written = f"@{claim.annotations[names.TERMINATION_DEADLINE]}"
    kinds, _, text = written.partition("@")
    moment, began = time_or_none(text), began_at(claim)
    if moment is None or began is None or moment < began:
        return None
    found = kinds.split(",")
    through = frozenset(each for each in Blocker if each in found)
    return Forced(deadline=moment, through=through, first_eviction=FIRST_EVICTION in found)


def with_forced(claim: NodeClaim, forced: Forced) -> dict[str, str | None]:
    """The annotations that force it as well as before: what was meant stays so, and an earlier deadline."""
    known = forced_of(claim)
    through = forced.through | known.through if known is not None else forced.through
    deadline = forced.deadline if known is None else min(forced.deadline, known.deadline)
    first_eviction = forced.first_eviction or (known is not None and known.first_eviction)
    written = ",".join([each for each in Blocker if each in through] + [FIRST_EVICTION] * first_eviction)
    return {names.FORCED: f"{written}@{format_time(deadline)}", **_without_older(claim)}


def renewed(claim: NodeClaim) -> dict[str, str | None]:
    """The annotations that say what an older version wrote as the node's deadline; empty where it wrote nothing. Once a
    clock starts anew, nothing else would tell the two apart."""
    if not is_forced_by_older(claim):
        return {}
    return {names.FORCED: f"@{claim.annotations[names.TERMINATION_DEADLINE]}", **_without_older(claim)}


def _without_older(claim: NodeClaim) -> dict[str, str | None]:
    if not is_forced_by_older(claim):
        return {}
    deadline = deadline_of(claim)
    return {names.TERMINATION_DEADLINE: None if deadline is None else format_time(deadline)}


def deadline_of_volumes(claim: NodeClaim, deadline: float | None) -> float | None:
    """By when volumes are no longer waited for: by the node's deadline, or a forced one that names them."""
    forced = forced_of(claim)
    ends = forced is not None and Blocker.VOLUMES_ATTACHED in forced.through
    return tighter(deadline, forced.deadline) if forced is not None and ends else deadline


def deadline_of_hooks(claim: NodeClaim, prefix: str, deadline: float | None) -> float | None:
    """The same of hooks of that kind."""
    forced = forced_of(claim)
    return tighter(deadline, forced.deadline) if forced is not None and forced.ends_hooks(prefix) else deadline

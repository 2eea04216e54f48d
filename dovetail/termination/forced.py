"""By when is a drain that something holds forced, and through what?

Remembered apart, because the node's deadline ends everything: pods at the cost of their grace, hooks, waits for
volumes. Force ends what it was meant for. Pods leave by its deadline, each with its whole grace period; waits for hooks
and volumes end by it only where it was meant for them. The bound of a repair is one for pods alone as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dovetail.model.names import TERMINATION_DEADLINE
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.drain_rules import Blocker, DrainRules, hook_rules
from dovetail.model.own.held_drains import Forced, HeldDrain
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.termination.deadline import tighter
from dovetail.termination.hold_clocks import clocks_of
from dovetail.termination.hooks import Hook, HookTerms, holding
from dovetail.termination.ladder import DrainHold, began_at, drain_reason


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


def forced_of(claim: NodeClaim) -> Forced | None:
    """What is written on the claim; None where nothing is that can be read, or where it tells of an earlier
    departure."""
    forced, began = memory_of(claim.annotations).held.forced, began_at(claim)
    return forced if forced is not None and began is not None and forced.deadline >= began else None


def with_forced(claim: NodeClaim, forced: Forced) -> HeldDrain:
    """What is remembered once it is forced as well as before: what was meant stays so, and an earlier deadline."""
    known = forced_of(claim)
    if known is not None:
        forced = Forced(
            deadline=min(forced.deadline, known.deadline),
            through=forced.through | known.through,
            first_eviction=forced.first_eviction or known.first_eviction,
        )
    return replace(memory_of(claim.annotations).held, forced=forced)


def beyond_pods(claim: NodeClaim, deadline: float | None) -> float | None:
    """What a deadline of its pods is for hooks and volumes: the same, but where a repair bounds its drain only what the
    claim gives its node itself."""
    written = claim.annotations.get(TERMINATION_DEADLINE)
    if claim.deleting_since is not None:
        by_repair = written is not None and written == memory_of(claim.annotations).pods_deadline
    else:
        by_repair = drain_reason(claim) == DisruptionReason.UNHEALTHY
    if deadline is None or not by_repair:
        return deadline
    began = claim.deleting_since or began_at(claim)
    return None if claim.termination_grace is None or began is None else max(deadline, began + claim.termination_grace)


def after_hooks(claim: NodeClaim, deadline: float | None, now: float) -> float | None:
    """The same deadline for pods that hooks have held: a bound that hooks outlast begins anew when they are off, and
    ends with what the claim gives its node itself."""
    began = claim.deleting_since or began_at(claim)
    held = clocks_of(claim, began_at(claim)).get(Blocker.HOOK_WAITS)
    if deadline is None or held is None or began is None or beyond_pods(claim, deadline) == deadline:
        return deadline
    moved = (now if held.left is None else held.left) + deadline - began
    return max(deadline, moved if claim.termination_grace is None else min(moved, began + claim.termination_grace))


def deadline_of_volumes(claim: NodeClaim, deadline: float | None) -> float | None:
    """By when volumes are no longer waited for: by the node's deadline, or a forced one that names them."""
    forced = forced_of(claim)
    ends = forced is not None and Blocker.VOLUMES_ATTACHED in forced.through
    return tighter(deadline, forced.deadline) if forced is not None and ends else deadline


def deadline_of_hooks(claim: NodeClaim, prefix: str, deadline: float | None) -> float | None:
    """The same of hooks of that kind."""
    forced = forced_of(claim)
    return tighter(deadline, forced.deadline) if forced is not None and forced.ends_hooks(prefix) else deadline


def hooks_that_hold(
    claim: NodeClaim, prefix: str, times: tuple[float, float | None], rules: Iterable[DrainRules], now: float
) -> tuple[Hook, ...]:
    """The hooks of that kind that hold the claim now. `times`: since when, and the deadline of the node's pods."""
    since, deadline = times
    deadline = deadline_of_hooks(claim, prefix, beyond_pods(claim, deadline))
    waits_until = memory_of(claim.annotations).held.waits_until
    terms = HookTerms(since=since, rules=hook_rules(rules), deadline=deadline, waits_until=waits_until)
    return holding(claim, prefix, terms, now)


def times_of_reboot(claim: NodeClaim, now: float) -> tuple[float, float | None]:
    """The same times where its instance is to be rebooted: hooks have as long as the claim gives its node."""
    began, grace = began_at(claim), claim.termination_grace
    clock = clocks_of(claim, began).get(Blocker.HOOK_WAITS)
    return (now if clock is None else clock.since), (None if began is None or grace is None else began + grace)

"""What holds the drain of a node, since when, and what comes next: by the objects alone."""

from collections.abc import Iterable

from dovetail.answers.wording import duration_text
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import awaits_eviction
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.own.drain_rules import Blocker, DrainRules, hook_rules
from dovetail.model.own.pauses import Activity
from dovetail.model.own.policies import policies_of
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.rules.pause.pauses import pause_on
from dovetail.termination.forced import forced_of, hooks_that_hold, times_of_reboot
from dovetail.termination.hold_clocks import clock_of
from dovetail.termination.hooks import HOOK_PREFIXES, hooks_of, words_of
from dovetail.termination.ladder import (
    DrainHold,
    began_at,
    drain_reason,
    ladder_words,
    may_be_protected,
    steps,
)


def held_text(snapshot: Snapshot, claim: NodeClaim, pods: Iterable[Pod]) -> str:
    """In words; empty where nothing has held it for a minute, or nobody has said what is to be done then. `pods`: those
    on its node."""
    clock = clock_of(claim, began_at(claim))
    if clock is None or claim.is_true(names.INSTANCE_TERMINATING):
        return ""
    waited_for = [pod for pod in pods if awaits_eviction(pod, snapshot.now)]
    protected = may_be_protected(waited_for, snapshot.now)
    hold = DrainHold(blockers=frozenset({clock.blocker}), reason=drain_reason(claim), protected=protected)
    words = ladder_words(clock, steps(_rules(snapshot, claim), hold), memory_of(claim.annotations).held.waits_until)
    forced = forced_of(claim)
    words += f"; forced: {forced.words(rebooting=claim.is_rebooting)}" if forced is not None else ""
    hooks = words_of(hooks_of(claim, HOOK_PREFIXES)) if clock.blocker is Blocker.HOOK_WAITS else ""
    return f"{words} ({hooks})" if hooks else words


def reboot_hold(snapshot: Snapshot, claim: NodeClaim) -> str:
    """What holds the first eviction of a reboot now; empty where nothing does."""
    pause = pause_on(snapshot, claim.labels.get(names.NODE_POOL, ""), Activity.DRAINS)
    if pause is not None:
        return pause.announces(Activity.DRAINS)
    times, rules = times_of_reboot(claim, snapshot.now), _rules(snapshot, claim)
    hooks = hooks_that_hold(claim, names.PRE_DRAIN_HOOK, times, rules, snapshot.now)
    return f"waiting for {words_of(hooks)}" if hooks else ""


def hook_words(claim: NodeClaim, step: str) -> tuple[str, ...]:
    """The hooks that a departure at that step waits for, each in words."""
    prefix = {"drain": names.PRE_DRAIN_HOOK, "terminate": names.PRE_TERMINATE_HOOK}.get(step)
    return () if prefix is None else tuple(hook.words for hook in hooks_of(claim, prefix))


def hooks_text(snapshot: Snapshot, claim: NodeClaim) -> tuple[tuple[str, str], ...]:
    """Each hook of a node: by whom, and what it holds until when."""
    rules = hook_rules(_rules(snapshot, claim))
    end = "the node goes on without it" if rules.proceeds else "a person is asked"
    until = f"until its owner takes it off; after {duration_text(rules.timeout)} {end}"
    holds = ((names.PRE_DRAIN_HOOK, "the first eviction"), (names.PRE_TERMINATE_HOOK, "the end of the instance"))
    return tuple((hook.words, f"holds {what} {until}") for prefix, what in holds for hook in hooks_of(claim, prefix))


def _rules(snapshot: Snapshot, claim: NodeClaim) -> tuple[DrainRules, ...]:
    pool = snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
    ours = policies_of(snapshot.policies, pool) if pool is not None else ()
    return tuple(policy.drain for policy in ours if policy.drain is not None)

"""Which hooks hold a node?

A hook is an annotation on the NodeClaim whose value names its owner. A pre-drain hook holds the first eviction, a
pre-terminate hook the end of the instance; the owner's controller does its work and takes the annotation off. Nothing
is called, so nothing has to be reachable and nothing is repeated: each look reads what stands there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.drain_rules import HookRules
from dovetail.model.reasons.endings import is_interrupted, warned_at
from dovetail.termination.deadline import tighter

INTERRUPTED_SECONDS: Final = 60.0  # of the two minutes that the cloud gives: the pods need the rest
MOST_CHARACTERS: Final = 120  # of a name or an owner: an annotation may hold more than an Event should
DENIES: Final = "deny:"
HOOK_PREFIXES: Final = (names.PRE_DRAIN_HOOK, names.PRE_TERMINATE_HOOK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One hook: its name, and its owner, or after `deny:` why it denies."""

    name: str
    owner: str
    denies: bool = False

    @property
    def words(self) -> str:
        if self.denies:
            return f"hook {self.name} denies it" + (f": {self.owner}" if self.owner else "")
        return f"hook {self.name}" + (f" ({self.owner})" if self.owner else "")


def hooks_of(claim: NodeClaim, prefix: str | tuple[str, ...]) -> tuple[Hook, ...]:
    """The hooks of one kind or of several, by name."""
    found = [(key, value) for key, value in claim.annotations.items() if key.startswith(prefix)]
    if not found:
        return ()
    return tuple(_hook(key.partition("/")[2], value) for key, value in sorted(found))


def _hook(name: str, value: str) -> Hook:
    text = value.strip()
    denies = text.lower().startswith(DENIES)
    owner = text[len(DENIES) :].strip() if denies else text
    return Hook(name=name[:MOST_CHARACTERS], owner=owner[:MOST_CHARACTERS], denies=denies)


def denial(claim: NodeClaim) -> Hook | None:
    """The hook that denies its disruption, if one does."""
    return next((hook for hook in hooks_of(claim, HOOK_PREFIXES) if hook.denies), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTerms:
    """Since when hooks are waited for, the deadline of the node's pods, how long a person has asked to wait."""

    since: float
    rules: HookRules
    deadline: float | None = None
    waits_until: float = 0.0

    @property
    def ends(self) -> float | None:
        """When they stop holding by themselves, unless an interruption ends them before."""
        proceeds = max(self.since + self.rules.timeout, self.waits_until) if self.rules.proceeds else None
        return min((each for each in (proceeds, self.deadline) if each is not None), default=None)


def holding(claim: NodeClaim, prefix: str, terms: HookTerms, now: float) -> tuple[Hook, ...]:
    ends = terms.ends
    if is_interrupted(claim):
        warned = warned_at(claim) or claim.deleting_since or terms.since
        ends = tighter(ends, warned + INTERRUPTED_SECONDS)
    return () if ends is not None and now > ends else hooks_of(claim, prefix)


def words_of(hooks: Iterable[Hook]) -> str:
    return ", ".join(hook.words for hook in hooks)

"""What is remembered on a NodeClaim of a drain that something holds."""

from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.own.drain_rules import Blocker, Level
from dovetail.model.values.time import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSince:
    """What holds the drain, since when, and what has been said of that. `left`: since when the blocker is away."""

    blocker: Blocker
    since: float
    levels: frozenset[Level] = frozenset()
    left: float | None = None

    @property
    def asks(self) -> bool:
        """Whether a person is asked, and has not answered."""
        return Level.ASK in self.levels and Level.FORCE not in self.levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """`deadline`: by when its pods have been deleted and have had their grace. `through`: what was meant.
    `first_eviction`: the hooks that hold that were meant, because they held it, and not those of the instance's end."""

    deadline: float
    through: frozenset[Blocker] = frozenset()
    first_eviction: bool = False

    def words(self, *, rebooting: bool = False) -> str:
        """By when, and what is waited for all the same. A reboot forces no pod, whatever it was meant for."""
        by = format_time(self.deadline)
        if rebooting:
            return f"no hook of the first eviction holds its reboot after {by}; pods are evicted, and none is forced"
        return f"all pods will be deleted by {by}, {reach_words(self.through, first_eviction=self.first_eviction)}"

    def ends_hooks(self, prefix: str) -> bool:
        """Whether hooks of that kind are not waited for any longer once its deadline has passed."""
        return Blocker.HOOK_WAITS in self.through or (self.first_eviction and prefix == names.PRE_DRAIN_HOOK)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDrain:
    """The clocks of what holds it, until when a person has asked to wait, and how it is forced."""

    clocks: tuple[HeldSince, ...] = ()
    waits_until: float = 0.0
    forced: Forced | None = None


NOT_HELD: Final = HeldDrain()


def reach_words(through: frozenset[Blocker], *, first_eviction: bool = False) -> str:
    """How far a force reaches that is meant for these."""
    hooks = "hooks of the instance's end" if first_eviction else "hooks"
    named = {Blocker.HOOK_WAITS: hooks, Blocker.VOLUMES_ATTACHED: "attached volumes"}
    waits = " and ".join(words for blocker, words in named.items() if blocker not in through)
    ends = " and ".join(words for blocker, words in named.items() if blocker in through)
    said = [f"{waits} are waited for"] if waits else []
    said += [f"{ends} are not waited for any longer"] if ends else []
    return "; ".join(["each with its own grace period", *said])

"""What a DisruptionPolicy says about drains that are held up, and the closed list of what can hold one."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from dovetail.model.own.forms import Key, Seconds, yes


class Blocker(StrEnum):
    """What holds a drain. Of several the first in this order is named; `words` are for people."""

    words: str

    def __new__(cls, value: str, words: str) -> "Blocker":
        blocker = str.__new__(cls, value)
        blocker._value_, blocker.words = value, words
        return blocker

    PAUSED = "Paused", "a person has paused drains"
    HOOK_WAITS = "HookWaits", "a hook whose owner has not taken it off"
    DO_NOT_DISRUPT = "DoNotDisrupt", "a pod that asks not to be disrupted"
    SEVERAL_PDBS = "SeveralPdbs", "a pod that several PDBs select"
    PDB_BLOCKS = "PdbBlocks", "a PDB"
    MOVE_HELD = "MoveHeld", "a pod whose owner holds it, or whose move has not succeeded"
    EVICTION_FAILS = "EvictionFails", "evictions that fail"
    VOLUMES_ATTACHED = "VolumesAttached", "volumes that are still attached"
    POD_TERMINATES = "PodTerminates", "a pod that has not ended yet"
    TURN_WAITS = "TurnWaits", "pods that wait for their turn"


NAMED_ONLY: Final = frozenset({Blocker.HOOK_WAITS, Blocker.DO_NOT_DISRUPT, Blocker.VOLUMES_ATTACHED})
"""What a drain is forced through only where the policy names it: what the owners of hooks and pods were promised, and
data."""


class Level(StrEnum):
    """How far a held drain is escalated, in this order."""

    NOTIFY = "Notify"
    ASK = "Ask"
    FORCE = "Force"


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """What is done once something has held a drain for `after` seconds. Empty: for every reason, for every blocker."""

    after: Seconds
    do: Level
    reasons: frozenset[str] = frozenset()
    blockers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRules:
    """How many seconds a drain waits for a hook, and whether it goes on then. Without a policy a person is asked then:
    the author of a hook has demanded that the node does not leave before they agree."""

    timeout: Seconds = 3600.0
    proceeds: Annotated[bool, Key("onTimeout"), yes("Proceed", "Hold")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRules:
    """What one policy says about drains. `unread`: what it says cannot be understood, so nothing is forced."""

    escalation: tuple[Escalation, ...] = ()
    hooks: HookRules | None = None
    unread: bool = False


def hook_rules(rules: Iterable[DrainRules]) -> HookRules:
    """The rules combined: the longest time of several, and a drain goes on by itself only if all let it."""
    said = [each.hooks for each in rules if each.hooks is not None]
    if not said:
        return HookRules()
    return HookRules(timeout=max(each.timeout for each in said), proceeds=all(each.proceeds for each in said))

"""What workers remember on a NodeClaim: what it was made for, what its launch is to be, what happened to it.

One annotation has all of it (decision 316). A change of one thing writes the others as that version of the claim has
them, and conflicts with a change of another version, so that none is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from dovetail.model import before_0_2, names
from dovetail.model.own.held_drains import NOT_HELD, HeldDrain
from dovetail.model.own.stable_images import StableImage
from dovetail.model.values.memory import Memory

STABLE: Final = "stable"  # the target if the image is gone: pods wait for the node
BACK: Final = "back"  # never the target: the node replaces one that is at it
GONE: Final = "gone"  # the image was gone, and it is the target
OLD_IMAGES: Final = frozenset({STABLE, BACK})


@dataclass(frozen=True, slots=True)
class LeftKind:
    """What pods were moved away from, and when."""

    type: str
    capacity: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What a roll-out wants of the launch of a claim: which images it takes, and `target`, what its NodeClass makes for
    which a step was permitted; no other is launched."""

    how: str = ""
    images: tuple[StableImage, ...] = ()
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledOff:
    """Why no plan may be carried out on a claim any more, and who says so; nobody if its disruption has failed."""

    why: str
    by: str

    @property
    def words(self) -> str:
        return f"called off: {self.why} (by {self.by})" if self.by else self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMemory:
    """Everything; the defaults say that there is nothing to remember."""

    APART: ClassVar = True  # one thing that cannot be read takes no other with it

    asks_again: bool = False  # its pods have nowhere else to go, and it asks for what was short a while ago
    keeps_places: bool = False  # its pods are nominated for its node
    moved_from: tuple[LeftKind, ...] = ()  # to save money
    replacement_for: str = ""  # the reason of the disruption that made it
    roll_out: Pin = Pin()
    on_demand_since: float | None = None  # when its reservation ceased to cover it
    called_off: CalledOff | None = None  # as long as it rests; none if the disruption failed
    held: HeldDrain = NOT_HELD  # what holds its drain, of whatever departure
    pods_deadline: str = ""  # the deadline of its node, where a repair wrote it: hooks and volumes do not go by it
    reboots: tuple[float, ...] = ()  # when its instance was rebooted for a repair
    reboot_issued: float | None = None  # when the cloud took the last one, until the node is back


NOTHING: Final = ClaimMemory()
_MEMORY: Final = Memory(names.REMEMBERED, ClaimMemory)


def memory_of(annotations: Mapping[str, str]) -> ClaimMemory:
    text = annotations.get(names.REMEMBERED) or before_0_2.remembered(annotations)
    return next(iter(_MEMORY.of_text(text)), NOTHING)


def remembering(annotations: Mapping[str, str], **changes: Any) -> dict[str, str | None]:
    """The change of annotations that are these now; nothing if they are so already."""
    before = memory_of(annotations)
    entry = replace(before, **changes)
    return {} if entry == before else {names.REMEMBERED: None if entry == NOTHING else _MEMORY.text((entry,))}


def with_memory(annotations: Mapping[str, str], **changes: Any) -> dict[str, str]:
    """The annotations of a claim to come that remembers these as well."""
    changed = {**annotations, **remembering(annotations, **changes)}
    return {name: text for name, text in changed.items() if text is not None}


def images_of(annotations: Mapping[str, str]) -> tuple[StableImage, ...]:
    """The images that a claim is launched with; none if it takes those of its NodeClass."""
    pin = memory_of(annotations).roll_out
    return pin.images if pin.how in OLD_IMAGES else ()

"""The images that nodes of a pool ran before its latest change.

Only an image can be kept: a node that differs from the target in more could not be made again. What a claim is launched
with is written on the claim, so that the launch needs no other source (claim_memory.py).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.forms import Key, Moment

IMAGE_DRIFTS: Final = frozenset({"AMIDrift", "ImageDrift"})  # what clouds call it if nothing checked before it differs
_NOBODYS: Final = "InstanceTypeNotFound"  # the drift that nobody's change causes: a type that is no longer sold
MOST_IMAGES: Final = 20
MOST_TYPES: Final = 5  # of each image: they only say which image of the target it stands for

OTHER_CHANGE: Final = "the nodes of before differ from the target in more than their image"
NO_IMAGE: Final = "no image is known that nodes ran before"
TARGET_AGAIN: Final = "the target has the images that nodes ran before"
TOO_OLD: Final = "they have been kept for longer than maxStableAge"


@dataclass(frozen=True, slots=True, kw_only=True)
class StableImage:
    """One image, and instance types that run it."""

    id: str
    types: Annotated[tuple[str, ...], Key("instanceTypes", always=True)] = ()

    @property
    def words(self) -> str:
        return f"{self.id}={'+'.join(self.types)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StableImages:
    """The stable images of a pool, the newest node's first. `why_not`: why they are not kept."""

    since: Moment = 0.0
    images: tuple[StableImage, ...] = ()
    why_not: Annotated[str, Key(absent="")] = NO_IMAGE

    def seen(
        self,
        old: Iterable[NodeClaim],
        now: float,
        longest: float,
        target: Collection[str] = (),
        *,
        settled: bool = False,
    ) -> "StableImages":
        """The images, with those of nodes that are not at the target and were there before. What was found once is
        kept, because the nodes leave; if none is left, nothing more can be said about the change. `target`: images of
        the target, as far as they are known; `settled`: whether every node has been judged since the change, so that
        the last one of before, where it alone drifts otherwise, does so for a reason of its own."""
        before = [claim for claim in old if claim.created < self.since]
        types = {image.id: set(image.types) for image in self.images}
        newest: dict[str, tuple[float, str]] = {}
        for claim in before:
            if claim.image_id and _differs_by_image(claim):
                place = -claim.created, claim.name
                newest[claim.image_id] = min(newest.get(claim.image_id, place), place)
                types.setdefault(claim.image_id, set()).add(claim.labels.get(names.INSTANCE_TYPE, ""))
        known = [image.id for image in self.images]
        order = dict.fromkeys([*known, *sorted(newest, key=newest.__getitem__)])
        kept = [StableImage(id=each, types=tuple(sorted(types[each] - {""})[:MOST_TYPES])) for each in order]
        known_of = "" if self.why_not == TARGET_AGAIN else self.why_not
        is_straggler = settled and bool(self.images) and not known_of and sum(map(is_changed, before)) == 1
        why_not = "" if newest else OTHER_CHANGE if any(map(is_changed, before)) and not is_straggler else known_of
        if not kept:
            why_not = why_not or NO_IMAGE
        elif now - self.since > longest:
            why_not = TOO_OLD
        elif not why_not and all(image.id in target for image in kept):
            why_not = TARGET_AGAIN
        return replace(self, images=tuple(kept[:MOST_IMAGES]), why_not=why_not)


NOTHING_KNOWN: Final = StableImages()


def is_changed(claim: NodeClaim) -> bool:
    """Whether somebody's change is why it is not at the target, of a NodePool, of its NodeClass or of what this
    selects."""
    drifted = claim.condition(names.DRIFTED)
    return drifted is None or drifted.status != "True" or drifted.reason != _NOBODYS


def _differs_by_image(claim: NodeClaim) -> bool:
    drifted = claim.condition(names.DRIFTED)
    return drifted is not None and drifted.status == "True" and drifted.reason in IMAGE_DRIFTS

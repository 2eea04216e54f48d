"""What is written on a Deployment to move its pod, and how that is read back.

A move changes one annotation of the Deployment's template, so that its controller makes a new pod. In the same write
the Deployment itself gets the note that a move is under way.

The template's annotation changes from `a` to `b` and back: the controller finds the ReplicaSet of the other value
again, so that any number of moves adds at most two. A new value each time would push the owner's own versions out of
revisionHistoryLimit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.objects.workloads import Begun, Failed, RollOut
from dovetail.model.values.digits import integer
from dovetail.model.values.time import format_time, time_or_none

# The admission policy, and its binding, that refuse us every other change of a Deployment.
GUARD: Final = "dovetail-moves"
GUARD_KINDS: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveChange:
    """Annotations to set on a Deployment (None removes one) and on its template. `template` None: left alone."""

    annotations: Mapping[str, str | None]
    template: Mapping[str, str | None] | None = None

    @property
    def begins(self) -> bool:
        return self.annotations.get(names.MOVE_FOR) is not None


def beginning(roll_out: RollOut, node: str, now: float) -> MoveChange:
    """Begins a move. The Deployment's generation afterwards is known, because the write is refused at any other
    version."""
    begun = Begun(node=node, former=roll_out.moved, generation=roll_out.generation + 1, since=now)
    value = "b" if roll_out.moved == "a" else "a"
    return MoveChange(
        annotations={names.MOVE_FOR: begun_text(begun), names.MOVE_FAILED: None}, template={names.MOVED: value}
    )


def ending() -> MoveChange:
    """Ends a move that has succeeded, or whose roll-out somebody else has replaced by now."""
    return MoveChange(annotations={names.MOVE_FOR: None})


def taking_back(roll_out: RollOut, begun: Begun, now: float, *, failed: bool) -> MoveChange:
    """Restores the template exactly: its pods get their former hash, so the controller goes back to the old ReplicaSet,
    whose pod is still there."""
    mark = f"{roll_out.generation + 1}/{format_time(now)}" if failed else None
    return MoveChange(
        annotations={names.MOVE_FOR: None, names.MOVE_FAILED: mark}, template={names.MOVED: begun.former or None}
    )


def begun_text(begun: Begun) -> str:
    """The value of dovetail.sh/move-for."""
    return f"{begun.node}/{begun.former}/{begun.generation}/{format_time(begun.since)}"


def read_begun(text: str) -> Begun | None:
    """The move that it describes; None if the value is not ours."""
    parts = text.split("/")
    since = time_or_none(parts[-1])
    if len(parts) != 4 or not parts[0] or parts[1] not in ("", "a", "b") or since is None:
        return None
    generation = _generation(parts[2])
    return None if generation is None else Begun(node=parts[0], former=parts[1], generation=generation, since=since)


def read_failed(text: str) -> Failed | None:
    """The failure that dovetail.sh/move-failed describes; None if the value is not ours."""
    number, _, moment = text.partition("/")
    generation, at = _generation(number), time_or_none(moment)
    return Failed(generation=generation, at=at) if generation is not None and at is not None else None


def _generation(text: str) -> int | None:
    return integer(text) if text.isdecimal() else None

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
from dovetail.model.values.memory import Memory

# The admission policy, and its binding, that refuse us every other change of a Deployment.
GUARD: Final = "dovetail-moves"
GUARD_KINDS: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveNote:
    """What a Deployment remembers of its moves: the one that is under way, or that the last one failed."""

    begun: Begun | None = None
    failed: Failed | None = None


_MEMORY: Final = Memory(names.MOVES, MoveNote)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveChange:
    """What the Deployment remembers from then on, and annotations to set on its template (None removes one).
    `template` None: left alone."""

    move: MoveNote = MoveNote()
    template: Mapping[str, str | None] | None = None

    @property
    def annotations(self) -> dict[str, str | None]:
        return {names.MOVES: None if self.move == MoveNote() else _MEMORY.text((self.move,))}


def beginning(roll_out: RollOut, node: str, now: float) -> MoveChange:
    """Begins a move. The Deployment's generation afterwards is known, because the write is refused at any other
    version."""
    begun = Begun(node=node, former=roll_out.moved, generation=roll_out.generation + 1, since=now)
    return MoveChange(move=MoveNote(begun=begun), template={names.MOVED: written_by(begun)})


def written_by(begun: Begun) -> str:
    """What the move has set in the template."""
    return "b" if begun.former == "a" else "a"


def ending() -> MoveChange:
    """Ends a move that has succeeded, or whose roll-out somebody else has replaced by now."""
    return MoveChange()


def undone(roll_out: RollOut, now: float) -> MoveChange:
    """Ends a move whose template somebody else has put back: it rests as one that failed."""
    return MoveChange(move=MoveNote(failed=Failed(generation=roll_out.generation, at=now)))


def taking_back(roll_out: RollOut, begun: Begun, now: float, *, failed: bool) -> MoveChange:
    """Restores the template exactly: its pods get their former hash, so the controller goes back to the old ReplicaSet,
    whose pod is still there."""
    mark = Failed(generation=roll_out.generation + 1, at=now) if failed else None
    return MoveChange(move=MoveNote(failed=mark), template={names.MOVED: begun.former or None})


def read_move(text: str) -> MoveNote:
    """What the annotation says; nothing where it is not ours."""
    move = next(iter(_MEMORY.of_text(text)), MoveNote())
    is_ours = move.begun is None or (move.begun.node and move.begun.former in ("", "a", "b"))
    return move if is_ours else MoveNote()

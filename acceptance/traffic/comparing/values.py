"""Where two structures differ: maps key by key, lists in order, bags in any order, texts up to the renaming.

Used for parameters of calls and for objects. A bag's members are paired by what is least different, so that one
changed field is reported as that field and not as one member missing and another added.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from acceptance.traffic.comparing.renaming import Renaming


class _Absent:
    """Not there; `None` is a value."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()
ANYTHING: Final = "<time>"  # a value that both sides are free in


class Bag(tuple[Any, ...]):
    """Members whose order says nothing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where they differ."""

    path: str
    theirs: Any
    ours: Any

    def under(self, prefix: str) -> "Difference":
        """The same, seen from further out."""
        path = f"{prefix}.{self.path}" if self.path else prefix
        return Difference(path=path, theirs=self.theirs, ours=self.ours)


def differences(theirs: Any, ours: Any, renaming: Renaming) -> list[Difference]:
    """All places; binds placeholders as it goes."""
    if isinstance(theirs, Bag) and isinstance(ours, Bag):
        return _of_bags(theirs, ours, renaming)
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        return _of_maps(theirs, ours, renaming)
    if _is_list(theirs) and _is_list(ours):
        return _of_lists(theirs, ours, renaming)
    return [] if _equal(theirs, ours, renaming) else [Difference(path="", theirs=theirs, ours=ours)]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _equal(theirs: Any, ours: Any, renaming: Renaming) -> bool:
    if isinstance(theirs, str) and isinstance(ours, str):
        return renaming.match(theirs, ours)
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return theirs is ours
    if isinstance(theirs, int | float) and isinstance(ours, int | float):
        return math.isclose(theirs, ours, rel_tol=1e-9, abs_tol=1e-12)  # tails of floats count for nothing
    return bool(theirs == ours)


def _of_maps(theirs: Mapping[str, Any], ours: Mapping[str, Any], renaming: Renaming) -> list[Difference]:
    found = []
    for key in [*theirs, *(key for key in ours if key not in theirs)]:
        here = theirs.get(key, ABSENT), ours.get(key, ABSENT)
        found += [each.under(str(key)) for each in differences(*here, renaming)]
    return found


def _of_lists(theirs: Sequence[Any], ours: Sequence[Any], renaming: Renaming) -> list[Difference]:
    found = []
    for index in range(max(len(theirs), len(ours))):
        here = theirs[index] if index < len(theirs) else ABSENT, ours[index] if index < len(ours) else ABSENT
        found += [each.under(f"[{index}]") for each in differences(*here, renaming)]
    return found


def pair(theirs: Sequence[Any], ours: Sequence[Any], renaming: Renaming) -> list[tuple[Any, Any, list[Difference]]]:
    """Members paired by least difference; a member without a partner stands beside ABSENT."""
    left, right, pairs = list(theirs), list(ours), []
    while left and right:
        best: tuple[int, int, int, list[Difference], Renaming] | None = None
        for i, one in enumerate(left):
            for j, other in enumerate(right):
                trial = renaming.copy()
                found = differences(one, other, trial)
                if best is None or len(found) < best[0]:
                    best = (len(found), i, j, found, trial)
                if not found:
                    break
            if best is not None and best[0] == 0:
                break
        assert best is not None
        _, i, j, found, trial = best
        if found and not isinstance(left[i], Mapping):
            break  # texts that are not equal are not the same thing changed
        renaming.become(trial)
        pairs.append((left.pop(i), right.pop(j), found))
    pairs += [(one, ABSENT, [Difference(path="", theirs=one, ours=ABSENT)]) for one in left]
    pairs += [(ABSENT, other, [Difference(path="", theirs=ABSENT, ours=other)]) for other in right]
    return pairs


def _of_bags(theirs: Bag, ours: Bag, renaming: Renaming) -> list[Difference]:
    found = []
    for one, other, inside in pair(theirs, ours, renaming):
        member = other if one is ABSENT else one
        found += [each.under(f"[{name_of(member)}]") for each in inside] if isinstance(member, Mapping) else inside
    return found


def name_of(member: Mapping[str, Any]) -> str:
    """What to call a member of a bag in a path."""
    for key in ("type", "name", "key", "id", "InstanceType", "DeviceName"):
        if isinstance(member.get(key), str):
            return str(member[key])
    return "…"

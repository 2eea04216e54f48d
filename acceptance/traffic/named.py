"""The differences that are meant: the list in `named_differences.yaml`, each with its decision record.

A rule says where a difference may be, as regular expressions over what is printed of it; it never names a case. What
each rule covered is counted and printed, so that one that is too wide is noticed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from acceptance.traffic.comparing.case import Found

FILE: Final = Path(__file__).with_name("named_differences.yaml")
_FIELDS: Final = ("phase", "what", "path", "theirs", "ours", "context")


Place = dict[str, re.Pattern[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One meant difference."""

    name: str
    decision: str
    because: str
    where: tuple[Place, ...]
    given: Place = field(default_factory=dict)  # the difference that this one follows from, which must be there
    world: re.Pattern[str] | None = None  # what must be declared in the case's world

    def covers(self, found: Found) -> bool:
        """Whether this difference is that one."""
        return any(_is_at(found, place) for place in self.where)

    def applies(self, everything: Sequence[Found], world: str) -> bool:
        """Whether its root is among what differs, and the world is such."""
        if self.world is not None and not self.world.fullmatch(world):
            return False
        return not self.given or any(_is_at(each, self.given) for each in everything)


def _is_at(found: Found, place: Place) -> bool:
    return all(pattern.fullmatch(_text(found, key)) for key, pattern in place.items())


def _text(found: Found, field: str) -> str:
    value = getattr(found, field)
    if isinstance(value, str):
        return value
    if field == "context":
        return orjson.dumps(value, default=list).decode()
    return repr(value)


def read_named(file: Path = FILE) -> list[Named]:
    """The list; a field that no difference has is an error, since it would match nothing."""
    return [_named(raw) for raw in yaml.safe_load(file.read_text(encoding="utf-8")) or []]


def _named(raw: dict[str, Any]) -> Named:
    for place in [*raw["where"], *([raw["given"]] if "given" in raw else [])]:
        unknown = set(place) - set(_FIELDS)
        if unknown or not place:
            raise ValueError(f"{raw['name']}: a place is named by {', '.join(_FIELDS)}, not by {sorted(unknown)}")
    return Named(
        name=str(raw["name"]),
        decision=str(raw["decision"]),
        because=" ".join(str(raw["because"]).split()),
        where=tuple(_place(each) for each in raw["where"]),
        given=_place(raw.get("given") or {}),
        world=re.compile(raw["world"], re.DOTALL) if "world" in raw else None,
    )


def _place(raw: dict[str, Any]) -> Place:
    return {key: re.compile(str(text), re.DOTALL) for key, text in raw.items()}


def sort_out(
    found: Iterable[Found], named: list[Named], world: Mapping[str, Any] | None = None
) -> tuple[list[Found], Counter[str]]:
    """The differences that are not named, and how often each named one was met; `world` is what the case declares."""
    declared = orjson.dumps(world or {}).decode()
    everything = list(found)
    applying = [one for one in named if one.applies(everything, declared)]
    rest, met = [], Counter[str]()
    for each in everything:
        rule = next((one for one in applying if one.covers(each)), None)
        if rule is None:
            rest.append(each)
        else:
            met[rule.name] += 1
    return rest, met


def listed(named: list[Named], met: Counter[str]) -> list[str]:
    """For the end of a run: each named difference that was met, in how many places."""
    return [
        f"  {one.name} (decision {one.decision}, {met[one.name]} places): {one.because}"
        for one in named
        if met[one.name]
    ]

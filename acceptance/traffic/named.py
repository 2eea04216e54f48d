"""The differences that are meant: the list in `named_differences.yaml`, each with its decision record.

A rule says where a difference may be, as regular expressions over what is printed of it; it never names a case. Where
its reason reaches only so far, it also says how often in a phase, up to which number, or for which of the subnets that
the case's world declares. What each rule covered is counted and printed, so that one that is too wide is noticed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from acceptance.traffic.cases import Case
from acceptance.traffic.comparing.found import Found

FILE: Final = Path(__file__).with_name("named_differences.yaml")
_FIELDS: Final = ("phase", "what", "path", "theirs", "ours", "note", "context")
_MOST: Final = "most"  # how many differences a place covers in one phase
_AT_MOST: Final = "ours_at_most"  # our value is a number, or absent, and no larger than what is so called
_BOUNDS: Final = ("pods",)
_EMPTY_SUBNET, _EMPTY_ZONE = "{empty-subnet}", "{empty-zone}"  # those that the world declares without free addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a case gives that a rule may depend on."""

    world: Mapping[str, Any] = field(default_factory=dict)
    pods: int = 0

    @staticmethod
    def of(case: Case) -> "Facts":
        """Those of one case."""
        return Facts(world=case.given.get("world") or {}, pods=len(case.objects("pods")))

    def filled_in(self, text: str) -> str | None:
        """A pattern with its names of subnets; None where there are none of that kind."""
        empty = [each for each in self.world.get("subnets") or () if each.get("free") == 0]
        for name, values in ((_EMPTY_SUBNET, [x["id"] for x in empty]), (_EMPTY_ZONE, [x["zone"] for x in empty])):
            if name in text:
                if not values:
                    return None
                text = text.replace(name, f"(?:{'|'.join(re.escape(each) for each in values)})")
        return text


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a difference may be."""

    texts: tuple[tuple[str, str], ...]  # field and pattern
    most: int | None = None
    at_most: str = ""

    def holds(self, found: Found, facts: Facts) -> bool:
        """Whether this difference is there; how many there may be is for the caller to count."""
        for name, text in self.texts:
            filled = facts.filled_in(text)
            if filled is None or _pattern(filled).fullmatch(_text(found, name)) is None:
                return False
        return not self.at_most or _number(found.ours) <= facts.pods


def _text(found: Found, field: str) -> str:
    value = getattr(found, field)
    if isinstance(value, str):
        return value
    if field == "context":
        return orjson.dumps(value, default=list).decode()
    return repr(value)


def _number(value: Any) -> float:
    """What is absent is nothing; what is no number is too much."""
    if isinstance(value, int | float):
        return float(value)
    return 0.0 if repr(value) == "(absent)" else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One meant difference."""

    name: str
    decision: str
    because: str
    where: tuple[Place, ...]
    given: Place | None = None  # the difference that this one follows from, which must be there
    world: re.Pattern[str] | None = None  # what must be declared in the case's world

    def place(self, found: Found, facts: Facts) -> Place | None:
        """The place of the rule that this difference is at."""
        return next((place for place in self.where if place.holds(found, facts)), None)

    def applies(self, everything: Sequence[Found], facts: Facts) -> bool:
        """Whether its root is among what differs, and the world is such."""
        if self.world is not None and not self.world.fullmatch(orjson.dumps(facts.world).decode()):
            return False
        return self.given is None or any(self.given.holds(each, facts) for each in everything)


def read_named(file: Path = FILE) -> list[Named]:
    """The list; a field that no difference has is an error, since it would match nothing."""
    return [_named(raw) for raw in yaml.safe_load(file.read_text(encoding="utf-8")) or []]


def _named(raw: dict[str, Any]) -> Named:
    name = str(raw["name"])
    return Named(
        name=name,
        decision=str(raw["decision"]),
        because=" ".join(str(raw["because"]).split()),
        where=tuple(_place(name, each) for each in raw["where"]),
        given=_place(name, raw["given"]) if "given" in raw else None,
        world=re.compile(raw["world"], re.DOTALL) if "world" in raw else None,
    )


def _place(rule: str, raw: dict[str, Any]) -> Place:
    unknown = set(raw) - {*_FIELDS, _MOST, _AT_MOST}
    if unknown or not set(raw) & set(_FIELDS):
        raise ValueError(f"{rule}: a place is named by {', '.join(_FIELDS)}, not by {sorted(unknown)}")
    if raw.get(_AT_MOST, _BOUNDS[0]) not in _BOUNDS:
        raise ValueError(f"{rule}: {_AT_MOST} is one of {', '.join(_BOUNDS)}")
    return Place(
        texts=tuple((key, str(raw[key])) for key in _FIELDS if key in raw),
        most=raw.get(_MOST),
        at_most=str(raw.get(_AT_MOST, "")),
    )


def sort_out(
    found: Iterable[Found], named: list[Named], facts: Facts | None = None
) -> tuple[list[Found], Counter[str]]:
    """The differences that are not named, and how often each named one was met."""
    known, everything = facts or Facts(), list(found)
    applying = [one for one in named if one.applies(everything, known)]
    rest, met, used = [], Counter[str](), Counter[tuple[str, Place]]()
    for each in everything:
        rule = _covering(each, applying, known, used)
        if rule is None:
            rest.append(each)
        else:
            met[rule.name] += 1
    return rest, met


def _covering(found: Found, rules: list[Named], facts: Facts, used: Counter[tuple[str, Place]]) -> Named | None:
    """The first rule that covers a difference, and has not covered as many in that phase as it may."""
    for rule in rules:
        place = rule.place(found, facts)
        if place is not None and (place.most is None or used[found.phase, place] < place.most):
            used[found.phase, place] += 1
            return rule
    return None


def listed(named: list[Named], met: Counter[str]) -> list[str]:
    """For the end of a run: each named difference that was met, in how many places."""
    return [
        f"  {one.name} (decision {one.decision}, {met[one.name]} places): {one.because}"
        for one in named
        if met[one.name]
    ]

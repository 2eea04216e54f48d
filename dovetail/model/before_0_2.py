"""Reads what 0.1.0 remembers on objects: each memory's text as entries of today.

Nothing writes these texts any more. The release after 0.2.0 takes this module away, with all that asks it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final
from zlib import crc32

from dovetail.model.values.json import Json
from dovetail.model.values.memory import VERSION, mark
from dovetail.model.values.time import format_time

_KEEP_PLACES: Final = "dovetail.sh/keep-places"
_MOVED_FROM: Final = "dovetail.sh/moved-from"
PLANNED: Final = frozenset({_KEEP_PLACES, _MOVED_FROM})  # what planning writes on a claim
_LAUNCH: Final = re.compile(r"([a-z0-9][-a-z0-9.]{0,252})@([0-9]{1,12})=([0-9a-f.]*)\Z")
_LEFT: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9._]{0,62})/([a-z-]{1,20})@([0-9]{1,12})\Z")


def marks(text: str) -> tuple[str, str]:
    """What the text is known by: the mark of today, and the one of before."""
    return mark(text), f"{crc32(text.encode()):08x}"


def unused_launches(text: str) -> Iterator[Json]:
    """<claim>@<when>=<pod>.…,…"""
    for found in _matches(_LAUNCH, text):
        yield {"claim": found[1], "at": _moment(found[2]), "pods": list(filter(None, found[3].split(".")))}


def remembered(annotations: Mapping[str, str]) -> str:
    """What a NodeClaim remembers; its moves are <type>/<capacity type>@<when>,…"""
    if PLANNED.isdisjoint(annotations):
        return ""
    left = _matches(_LEFT, annotations.get(_MOVED_FROM, ""))
    moved = [{"type": found[1], "capacity": found[2], "at": _moment(found[3])} for found in left]
    return json.dumps(
        {"v": VERSION, "entries": [{"keeps_places": annotations.get(_KEEP_PLACES) == "true", "moved_from": moved}]}
    )


def _matches(entry: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return filter(None, map(entry.match, text.split(",")))


def _moment(digits: str) -> str:
    return format_time(float(digits))

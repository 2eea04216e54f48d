"""Reads what 0.1.0, and builds between it and 0.2.0, remember on objects: each memory's text as entries of today.

Nothing writes these texts any more. The release after 0.2.0 takes this module away, with all that asks it.
"""

import re
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from dovetail.model.values.json import Json
from dovetail.model.values.memory import mark
from dovetail.model.values.time import format_time

_HAPPENED: Final = r"[0-9]{1,12}:[0-9a-f]{8}"
_BREAKER: Final = re.compile(
    rf"([A-Za-z]{{1,40}})@([0-9a-z]{{0,40}})=(?:({_HAPPENED}(?:\.{_HAPPENED})*)"
    rf"(?:/([0-9]{{1,12}})x([0-9]{{1,9}}))?(?:\+({_HAPPENED}))?)?(?:-([0-9]{{1,12}}))?\Z"
)
_BEGUN: Final = re.compile(r"([A-Za-z]{1,40})@([0-9]{1,12})(?:=([0-9a-f]{8})|\*([0-9]{1,6}))\Z")
_COUNTS: Final = r"(?:[0-9]{1,12}x[0-9]{1,6}(?:\.[0-9]{1,12}x[0-9]{1,6})*)?"
_MOVES: Final = re.compile(rf"({_COUNTS});({_COUNTS})\Z")
_LAUNCH: Final = re.compile(
    r"([a-z0-9][-a-z0-9.]{0,252})@([0-9]{1,12})=([0-9a-f.]*)(?:/([0-9a-f.]*)(?::([0-9a-f.]*))?)?\Z"
)
_LEFT: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9._]{0,62})/([a-z-]{1,20})@([0-9]{1,12})\Z")


def marks(text: str) -> tuple[str, str]:
    """What the text is known by: the mark of today, and the one of before."""
    return mark(text), f"{crc32(text.encode()):08x}"


def breakers(text: str) -> Iterator[Json]:
    """<reason>@<template>=<when>:<mark>.…/<opened>x<tries>+<when>:<mark>-<ended>,…"""
    for found in _matches(_BREAKER, text):
        reason, template, failures, opened, tries, probe, ended = found.groups()
        entry: Json = {"reason": reason, "template": template, "tries": int(tries or 0)}
        entry["failures"] = [_happened(each) for each in failures.split(".")] if failures else []
        entry |= {"opened": _moment(opened)} if opened else {}
        entry |= {"probe": _happened(probe)} if probe else {}
        yield entry | ({"ended": _moment(ended)} if ended else {})


def begun(text: str) -> Iterator[Json]:
    """<reason>@<when>=<mark>,<reason>@<when>*<nodes>,…"""
    for found in _matches(_BEGUN, text):
        yield {"at": _moment(found[2]), "reason": found[1], "mark": found[3] or "", "nodes": int(found[4] or 1)}


def returned_moves(text: str) -> Iterator[Json]:
    """<when>x<nodes taken>.…;<when>x<returned>.…"""
    for found in _matches(_MOVES, text):
        for what, counts in (("taken", found[1]), ("returned", found[2])):
            for at, nodes in (each.split("x") for each in filter(None, counts.split("."))):
                yield {"at": _moment(at), "what": what, "nodes": int(nodes)}


def unused_launches(text: str) -> Iterator[Json]:
    """<claim>@<when>=<pod>.…/<owner>.…:<namespace>.…,…"""
    for found in _matches(_LAUNCH, text):
        pods, owners, namespaces = (list(filter(None, (each or "").split("."))) for each in found.groups()[2:])
        whose = {"owners": owners, "namespaces": namespaces}
        yield {"claim": found[1], "at": _moment(found[2]), "pods": pods, "whose": whose}


def moved_from(text: str) -> Iterator[Json]:
    """<type>/<capacity type>@<when>,…"""
    for found in _matches(_LEFT, text):
        yield {"type": found[1], "capacity": found[2], "at": _moment(found[3])}


def _matches(entry: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return filter(None, map(entry.match, text.split(",")))


def _happened(text: str) -> Json:
    at, _, known = text.partition(":")
    return {"at": _moment(at), "mark": known}


def _moment(digits: str) -> str:
    return format_time(float(digits))

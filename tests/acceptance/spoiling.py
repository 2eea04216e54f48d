"""Ways to spoil a play: calls too many, too few or changed, Events and objects that are not as they were."""

import copy
from collections.abc import Callable, Iterator

from acceptance.traffic.playing import Played, PlayedPhase
from dovetail.model.values.json import Json

Spoil = Callable[[Played], object]
CONDITION = "Status condition transitioned"


def phase(played: Played, name: str) -> PlayedPhase:
    """One phase of a play, to be changed in place."""
    return next(each for each in played.phases if each.name == name)


def calls(played: Played, op: str, within: str = "", *, dry: bool = False) -> list[Json]:
    """The ledger's lines of one operation."""
    return [
        entry
        for each in played.phases
        for entry in each.entries
        if entry["op"] == op and within in ("", each.name) and bool(entry["input"].get("DryRun")) is dry
    ]


def repeated(op: str, times: int, within: str, change: Callable[[Json, int], object] | None = None) -> Spoil:
    """The first such call of a phase, made as often again, each changed a little."""

    def spoil(played: Played) -> None:
        first = calls(played, op, within)[0]
        for number in range(1, times + 1):
            entry = copy.deepcopy(first)
            if change is not None:
                change(entry, number)
            phase(played, within).entries.append(entry)

    return spoil


def added(op: str, given: Json, within: str, error: str | None = None) -> Spoil:
    """One call more that nothing asked for."""

    def spoil(played: Played) -> None:
        entries = phase(played, within).entries
        line = {"op": op, "input": given, "time": entries[-1]["time"] if entries else 0.0}
        entries.append({**line, **({"error": error} if error else {})})

    return spoil


def without(op: str, *, dry: bool = False) -> Spoil:
    """No such call was ever made."""

    def spoil(played: Played) -> None:
        gone = calls(played, op, dry=dry)
        assert gone, f"the play has no {op}"
        for each in played.phases:
            each.entries[:] = [entry for entry in each.entries if entry not in gone]

    return spoil


def changed(op: str, change: Callable[[Json], object], *, dry: bool = False) -> Spoil:
    """The first such call, changed."""

    def spoil(played: Played) -> None:
        change(calls(played, op, dry=dry)[0])

    return spoil


def objects(played: Played, kind: str, within: str = "") -> Iterator[Json]:
    """All objects of a kind, in one phase or in all."""
    for each in played.phases:
        if within in ("", each.name):
            yield from each.objects.get(kind) or []


def each_object(kind: str, change: Callable[[Json], object], within: str = "") -> Spoil:
    """Every object of a kind, changed."""

    def spoil(played: Played) -> None:
        found = list(objects(played, kind, within))
        assert found, f"the play has no {kind}"
        for body in found:
            change(body)

    return spoil


def doubled(kind: str, within: str, times: int = 1) -> Spoil:
    """More objects like the last of that kind, under other names."""

    def spoil(played: Played) -> None:
        listed = phase(played, within).objects[kind]
        for number in range(times):
            body = copy.deepcopy(listed[-1])
            holder = body.get("metadata") or body
            key = "id" if kind == "instances" else "name"
            holder[key] = f"{holder[key]}{number}"
            listed.append(body)

    return spoil


def no_object(kind: str, within: str) -> Spoil:
    """The last object of that kind is not there."""
    return lambda played: phase(played, within).objects[kind].pop()


def each_condition(kind: str, change: Callable[[Json], object], only: str = "") -> Spoil:
    """Every condition (or those of one type) of every object of a kind, changed."""

    def spoil(body: Json) -> None:
        for condition in (body.get("status") or {}).get("conditions") or []:
            if only in ("", condition["type"]):
                change(condition)

    return each_object(kind, spoil)


def no_event(reason: str, kind: str = "") -> Spoil:
    """No Event of that reason was ever published."""

    def spoil(played: Played) -> None:
        told = 0
        for each in played.phases:
            kept = [e for e in each.objects["events"] if e["reason"] != reason or kind not in ("", e["kind"])]
            told += len(each.objects["events"]) - len(kept)
            each.objects["events"] = kept
        assert told, f"the play has no {reason}"

    return spoil


def event(within: str, text: str, message: str = "") -> Spoil:
    """One Event more: `Warning Reason Kind/name`; `$claim` and `$node` are the last ones of that phase."""

    def spoil(played: Played) -> None:
        type_, reason, about = text.split(" ")
        kind, _, name = about.partition("/")
        there = phase(played, within).objects
        for word, listed in (("$claim", "nodeClaims"), ("$node", "nodes")):
            if name == word:
                name = there[listed][-1]["metadata"]["name"]
        there["events"].append({"kind": kind, "name": name, "type": type_, "reason": reason, "message": message})

    return spoil


def each_event(reason: str, change: Callable[[Json], object]) -> Spoil:
    """Every Event of a reason, changed."""

    def spoil(played: Played) -> None:
        found = [each for each in objects(played, "events") if each["reason"] == reason]
        assert found, f"the play has no {reason}"
        for body in found:
            change(body)

    return spoil


def no_transition(kind: str) -> Spoil:
    """That an object of this kind became ready was never told."""

    def spoil(played: Played) -> None:
        for each in played.phases:
            each.objects["events"] = [
                told
                for told in each.objects["events"]
                if not (told["kind"] == kind and told["message"].startswith(CONDITION))
            ]

    return spoil


def together(*spoils: Spoil) -> Spoil:
    """Several at once."""

    def spoil(played: Played) -> None:
        for each in spoils:
            each(played)

    return spoil

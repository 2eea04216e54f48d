"""Judges whether what we played agrees with itself, whatever upstream did.

Named differences let a value be another than theirs (another zone, fewer fleets). Then it must still be the one that
follows from the rest of our play: an instance was brought by a fleet and is where that fleet says, its NodeClaim and
its Node are in its zone. Nothing is asked or told without end.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from acceptance.traffic.playing import Played, PlayedPhase
from dovetail.model.values.json import Json

CLAIM_UID: Final = "dovetail.sh/claim-uid"
ZONE: Final = "topology.kubernetes.io/zone"
ZONE_ID: Final = "topology.k8s.aws/zone-id"
MOST_EQUAL: Final = 10  # equal calls or Events in a phase, and one for each of its seconds beside


def disagreements(played: Played) -> list[tuple[str, str]]:
    """(phase, in words) for everything in which the play contradicts itself."""
    brought: dict[str, str] = {}
    subnets: dict[str, Json] = {}
    found: list[tuple[str, str]] = []
    for phase in played.phases:
        brought |= _brought(phase)
        subnets |= _subnets(phase)
        zone_ids = {each["zone"]: each["zoneID"] for each in subnets.values() if each.get("zoneID")}
        found += [(phase.name, words) for words in _instances(phase, brought, subnets)]
        for kind in ("nodeClaims", "nodes"):
            for body in phase.objects.get(kind) or []:
                found += [(phase.name, words) for words in _place(kind, body, zone_ids)]
        found += [(phase.name, words) for words in _endless(phase)]
    return found


def _brought(phase: PlayedPhase) -> dict[str, str]:
    """The zone of each instance that the phase's fleets brought."""
    answers = [entry.get("output") or {} for entry in phase.entries if entry["op"] == "CreateFleet"]
    groups = [group for answer in answers for group in answer.get("instances") or ()]
    return {each: str(group["zone"]) for group in groups for each in group["ids"]}


def _subnets(phase: PlayedPhase) -> dict[str, Json]:
    """By id, as the classes have read them."""
    statuses = [body.get("status") or {} for body in phase.objects.get("nodeClasses") or []]
    return {each["id"]: each for status in statuses for each in status.get("subnets") or ()}


def _instances(phase: PlayedPhase, brought: Mapping[str, str], subnets: Mapping[str, Json]) -> Iterator[str]:
    """What was launched for a claim came from a fleet, and is in a subnet of a class, where the fleet put it."""
    for body in phase.objects.get("instances") or []:
        name, zone, subnet = body["id"], body.get("zone"), body.get("subnet")
        if CLAIM_UID not in (body.get("tags") or {}):
            continue
        if name not in brought:
            yield f"{name} was brought by no fleet"
        elif zone != brought[name]:
            yield f"{name} is in {zone}, and its fleet put it into {brought[name]}"
        if (subnets.get(str(subnet)) or {}).get("zone") != zone:
            yield f"{name} is in {zone}, and the classes know no subnet {subnet} there"


def _place(kind: str, body: Json, zone_ids: Mapping[str, str]) -> Iterator[str]:
    """The zone of a provider id is that of the labels."""
    labels = body["metadata"].get("labels") or {}
    provider = (body.get("status" if kind == "nodeClaims" else "spec") or {}).get("providerID") or ""
    if not provider.startswith("aws:///"):
        return
    name, zone = body["metadata"]["name"], provider.removeprefix("aws:///").partition("/")[0]
    if labels.get(ZONE, zone) != zone:
        yield f"{kind} {name} is in {zone}, and its label says {labels[ZONE]}"
    wanted = zone_ids.get(zone)
    if wanted is not None and labels.get(ZONE_ID, wanted) != wanted:
        yield f"{kind} {name} is in {zone}, which is {wanted}, and its label says {labels[ZONE_ID]}"


def _endless(phase: PlayedPhase) -> Iterator[str]:
    """Calls and Events that came again and again: how often says nothing, but there is an end to it."""
    most = MOST_EQUAL + phase.seconds
    calls = Counter(_key(entry["op"], entry.get("input")) for entry in phase.entries)
    events = Counter(
        _key(f"{each['reason']} {each['kind']}/{each['name']}", each.get("message"))
        for each in phase.objects.get("events") or []
    )
    for (subject, _), times in (*calls.items(), *events.items()):
        if times > most:
            yield f"{subject} came {times} times in {phase.seconds:.0f} s"


def _key(subject: str, content: object) -> tuple[str, bytes]:
    return subject, orjson.dumps(content, option=orjson.OPT_SORT_KEYS)

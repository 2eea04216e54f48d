"""Judges whether calls came in the few orders that matter (rule 1 of the recording's README).

Only our ledger is judged: a template is described, then created, before a fleet names it; a profile is created, then
gets its role; an instance is terminated before its NodeClaim disappears, tagged after its Node is known.
"""

from collections.abc import Iterator
from typing import Final

from acceptance.traffic.playing import Played
from dovetail.model.values.json import Json

LATENESS: Final = 0.5  # the cluster is read every 0.3 s


def disorders(played: Played) -> list[tuple[str, str]]:
    """(phase, in words) for each order that was not kept."""
    described: set[str] = set()
    known: set[str] = set()
    profiles: set[str] = set()
    found: list[tuple[str, str]] = []
    for phase in played.phases:
        for entry in phase.entries:
            found += [(phase.name, words) for words in _templates(entry, described, known)]
            found += [(phase.name, words) for words in _profile(entry, profiles)]
            found += [(phase.name, words) for words in _instances(entry, played)]
    return found


def _templates(entry: Json, described: set[str], known: set[str]) -> Iterator[str]:
    given = entry.get("input") or {}
    match entry["op"]:
        case "DescribeLaunchTemplates":
            names = set(given.get("LaunchTemplateNames") or ())
            described |= names
            if not entry.get("error"):
                known |= names
        case "CreateLaunchTemplate":
            name = given.get("LaunchTemplateName", "")
            if name not in described:
                yield f"template {name} was created before it was looked for"
            if not entry.get("error"):
                known.add(name)
        case "CreateFleet":
            for config in given.get("LaunchTemplateConfigs") or ():
                name = (config.get("LaunchTemplateSpecification") or {}).get("LaunchTemplateName", "")
                if name not in known:
                    yield f"a fleet names template {name}, which was neither found nor created before"


def _profile(entry: Json, profiles: set[str]) -> Iterator[str]:
    name = (entry.get("input") or {}).get("InstanceProfileName", "")
    if entry["op"] == "CreateInstanceProfile" and not entry.get("error"):
        profiles.add(name)
    if entry["op"] == "AddRoleToInstanceProfile" and name not in profiles:
        yield f"profile {name} gets its role before it was created"


def _instances(entry: Json, played: Played) -> Iterator[str]:
    given = entry.get("input") or {}
    if entry["op"] == "TerminateInstances" and not entry.get("error"):
        for each in given.get("InstanceIds") or ():
            gone = _at(played.vanished, each)
            if gone is not None and gone + LATENESS < entry["time"]:
                yield f"{each} was terminated after its NodeClaim had disappeared"
    if entry["op"] == "CreateTags" and not entry.get("error"):
        for each in given.get("Resources") or ():
            seen = _at(played.nodes_seen, each)
            if seen is None or seen - LATENESS > entry["time"]:
                yield f"{each} was tagged before its Node was known"


def _at(moments: dict[str, float], instance: str) -> float | None:
    return next((moment for provider, moment in moments.items() if provider.endswith(f"/{instance}")), None)

"""The notation of a declared world, of an instance and of their parts: which keys there are.

A key that nothing here reads would be silently ignored, and the world would differ from the declaration. So every
change is checked first, and an unknown key is refused by its name.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from testbed.cloud.json_object import Json

_POOL: Final = ("instanceType", "zone", "capacityType")
WORLD: Final = frozenset(
    (
        "region", "zones", "types", "offerings", "prices", "spotPrices", "subnets", "securityGroups", "roles", "images",
        "ssm", "reservations", "placementGroups", "zonalShift", "instanceStatus", "ice", "fail", "rateLimits",
        "fleetMax", "runSeconds", "bootSeconds", "shutdownSeconds", "visibleAfter", "profilesAfter", "clockAhead",
        "pageSize", "mostTemplates", "neverJoin",
        "checkInstanceProfiles", "unknownIds", "fleetOrder", "memoryOverhead", "eks", "kubernetesVersion",
    )
)  # fmt: skip
# The members of the world's lists. A list of names (`types`, `roles`) has none, `neverJoin` may also be a word.
MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "subnets": frozenset(("id", "zone", "free", "public", "cidr", "tags")),
    "securityGroups": frozenset(("id", "name", "tags")),
    "images": frozenset(("id", "name", "arch", "created", "deprecated", "owner", "state", "tags", "rootGiB")),
    "reservations": frozenset(
        (
            "id", "type", "zone", "available", "total", "state", "match", "rtype", "endIn", "owner", "interruptible",
            "tags",
        )
    ),
    "placementGroups": frozenset(("id", "name", "strategy", "partitions", "state", "tags")),
    "zonalShift": frozenset(("zoneId", "applied", "endIn")),
    "instanceStatus": frozenset(("filter", "body")),
    "ice": frozenset((*_POOL, "code", "message", "times")),
    "neverJoin": frozenset((*_POOL, "times")),
    "bootSeconds": frozenset((*_POOL, "seconds", "times")),
    "fail": frozenset(
        (
            "op", "service", "has", "dryRun", "times", "skip", "share", "when", "answer", "code", "message", "status",
            "delay",
        )
    ),
}  # fmt: skip
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "unknownIds": ("error", "nothing"),  # what a question for an id that is nowhere is answered
    "fleetOrder": ("strategy", "price"),  # what a fleet's choice goes by: as its call says, or always by the price
}
ADDED: Final = frozenset(("type", "zone", "subnet", "image", "tags", "age", "spot", "securityGroups", "join"))
CHANGED: Final = frozenset(
    ("state", "tags", "securityGroups", "subnet", "image", "spot", "cr", "crPref", "joinsIn", "extra")
)


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """ValueError that names the unknown keys, and the known ones."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"{where} has no {', '.join(unknown)}; it knows {', '.join(sorted(known))}")


def check_world(change: Json) -> None:
    """ValueError if a change of the world has a key that nothing reads."""
    refuse_unknown(change, WORLD, "the world")
    for key, known in MEMBERS.items():
        for number, member in enumerate(_members(change.get(key))):
            refuse_unknown(member, known, f"{key}[{number}]")
    for key, choices in CHOICES.items():
        if change.get(key) not in (None, *choices):
            raise ValueError(f"{key} is one of {', '.join(choices)}, not {change[key]!r}")


def _members(declared: Any) -> list[Json]:
    return [each for each in declared if isinstance(each, dict)] if isinstance(declared, list) else []

"""From which instance types cheaper nodes took over their pods, so that no move is undone within a day.

Prices that go up and down would otherwise move the same pods back and forth. The memory is an annotation on the claim
that took over, so that it survives restarts and the loss of the database, and ends with its node. A node that takes
over from such a node inherits its memory. An entry that cannot be read is ignored.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.model import names
from dovetail.model.nodes import NodeClaim

REMEMBERED_SECONDS: Final = 86_400.0
MOST_KINDS: Final = 200  # of the newest; with more, an annotation would fill a plan

Kind = tuple[str, str]  # instance type and capacity type

_ENTRY: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9._]{0,62})/([a-z-]{1,20})@(\d{1,12})\Z")


def moved_from(candidates: Iterable[Candidate], now: float) -> dict[Kind, float]:
    """What pods of these nodes were moved away from in the last day, and when."""
    found: dict[Kind, float] = {}
    for candidate in candidates:
        for kind, at in _read(candidate.claim).items():
            if now - at < REMEMBERED_SECONDS:
                found[kind] = max(at, found.get(kind, at))
    return found


def moved_from_text(candidates: Iterable[Candidate], before: Mapping[Kind, float], now: float) -> str:
    """The annotation for a claim that takes over from these nodes. `before`: what they remember."""
    found = dict(before) | {
        (c.instance_type.name, c.capacity_type): now for c in candidates if c.instance_type is not None
    }
    newest = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_KINDS]
    return ",".join(f"{name}/{capacity_type}@{at:.0f}" for (name, capacity_type), at in newest)


def _read(claim: NodeClaim) -> dict[Kind, float]:
    text = claim.annotations.get(names.MOVED_FROM, "")
    matches = [match for entry in text.split(",") if (match := _ENTRY.match(entry))] if text else []
    return {(match[1], match[2]): float(match[3]) for match in matches}

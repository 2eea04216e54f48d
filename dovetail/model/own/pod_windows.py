"""What a pod says about when it may be moved: windows of its own, in an annotation.

    dovetail.sh/disruption-window: "Sat,Sun 02:00-06:00; Wed 22:00-04:00 Europe/Berlin"

Outside them it counts as a pod that must not be disrupted, by the rules of do-not-disrupt: they hold its node and
widen nothing. Unreadable windows hold it too.
"""

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.model.values.quoting import shown
from dovetail.model.values.remembering import MEGABYTE, remembered

if TYPE_CHECKING:  # few pods have windows, and who writes one annotation reads no policy
    from dovetail.model.own.policies import Policy

LONGEST: Final = 256
EXAMPLE: Final = "Sat,Sun 02:00-06:00 Europe/Berlin"

_TIME: Final = r"(?:[01]\d|2[0-3]):[0-5]\d"
_ANY: Final = "any"  # the reason for which a node leaves plays no part


def why_outside(text: str, now: float) -> str:
    """Why the pod may not be moved now; empty if it may."""
    policy = _read(text)
    return policy.fault or ("it is outside its windows" if policy.why_closed(_ANY, now) else "")


def opens_at(text: str, now: float) -> float | None:
    """When one of the windows opens, if all are closed now and that is known."""
    from dovetail.model.own.policies import next_opening

    return next_opening((_read(text),), _ANY, now)


def window_fault(pod: Pod) -> str:
    return "" if pod.disruption_window is None else _read(pod.disruption_window).fault


def window_words(fault: str) -> str:
    """What that fault means, for an Event."""
    return f"Invalid {names.DISRUPTION_WINDOW} annotation: {fault}; until it is put right the pod is not moved"


@cache
def _window() -> re.Pattern[str]:
    from dovetail.model.own.openings import DAYS

    day = f"(?:{'|'.join(DAYS)})"
    return re.compile(
        rf"(?:(?P<days>{day}(?:,{day})*) )?(?P<start>{_TIME})-(?P<end>{_TIME})(?: (?P<zone>\S+))?", re.ASCII
    )


@remembered(MEGABYTE)
def _read(text: str) -> "Policy":
    """The windows as a policy. All share one time zone, which may be written after any of them; UTC if there is
    none."""
    from dovetail.model.own.openings import DAYS, Window, second_of
    from dovetail.model.own.policies import Policy, zone_named

    windows, zones, written = [], set(), _window()
    for part in text[: LONGEST + 1].split(";"):
        found = written.fullmatch(" ".join(part.split()))
        if found is None or len(text) > LONGEST:
            return Policy(name="", fault=f"{shown(text)} are no windows like {EXAMPLE}")
        days = frozenset(DAYS.index(day) for day in (found["days"] or "").split(",") if day)
        windows.append(Window(start=second_of(found["start"]), end=second_of(found["end"]), days=days))
        zones |= {found["zone"]} - {None}
    if len(zones) > 1:
        return Policy(name="", fault=f"{shown(text)} names more than one time zone")
    policy = Policy(name="", zone=next(iter(zones), "UTC"), allow=tuple(windows))
    try:
        zone_named(policy.zone)
    except ValueError as error:
        return replace(policy, fault=str(error))
    return policy

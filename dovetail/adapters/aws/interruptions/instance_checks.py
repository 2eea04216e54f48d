"""What EC2's own checks have found of our instances (AWS-136 to AWS-139).

Asked once a minute. Failed reachability counts after two minutes, a scheduled event at once, unless AWS says that it is
over (upstream does not look, AWS-179). A failed volume check is not the instance's fault.
"""

import re
from datetime import datetime
from typing import Any, Final

from dovetail.adapters.aws.calls import Calls
from dovetail.messages.interruptions import Interruption, InterruptionReason
from dovetail.model.json import Json

IMPAIRED_SECONDS: Final = 120.0
_CODES: Final = ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"]
_QUERIES: Final = (
    ("instance-status.status", ["impaired"]),
    ("system-status.status", ["impaired"]),
    ("event.code", _CODES),
)
_OVER: Final = re.compile(r"\[(completed|cancell?ed)\]", re.IGNORECASE)  # how EC2 marks an event that is over


async def troubles(calls: Calls, now: float) -> tuple[Interruption, ...]:
    """One per instance and category."""
    rows: dict[str, Json] = {}
    for name, values in _QUERIES:
        for row in await calls.every(
            "ec2", "DescribeInstanceStatus", "InstanceStatuses", Filters=[{"Name": name, "Values": values}]
        ):
            identity = row.get("InstanceId")
            if identity:
                rows[identity] = {**rows.get(identity, {}), **row}
    return tuple(found for key in sorted(rows) for found in read_status(rows[key], now))


def read_status(row: Json, now: float) -> list[Interruption]:
    """What one instance's status says."""
    found: list[Interruption] = []
    categories: tuple[tuple[str, InterruptionReason], ...] = (
        ("InstanceStatus", "instance_status"),
        ("SystemStatus", "system_status"),
    )
    for key, reason in categories:
        details = (row.get(key) or {}).get("Details") or ()
        if any(_failed(detail, now) for detail in details):
            found.append(_trouble(row, reason))
    events = [event for event in row.get("Events") or () if not _OVER.match(event.get("Description") or "")]
    if events:
        found.append(_trouble(row, "event_status"))
    return found


def _failed(detail: Json, now: float) -> bool:
    since: Any = detail.get("ImpairedSince")
    if detail.get("Name") != "reachability" or detail.get("Status") != "failed":
        return False
    return isinstance(since, datetime) and now - since.timestamp() >= IMPAIRED_SECONDS


def _trouble(row: Json, reason: InterruptionReason) -> Interruption:
    identity: str = row["InstanceId"]
    return Interruption(id=f"{identity}/{reason}", reason=reason, instances=(identity,), at=0.0)

"""What EC2's own checks have found about our instances (AWS-136 to AWS-139).

Asked once a minute. Failed reachability counts after two minutes, a scheduled event at once, unless AWS marks it as
over (upstream does not look, AWS-179). A failed volume check is not the instance's fault.
"""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import Denied, refusal
from dovetail.adapters.aws.instances.instance import INSTANCE_ID
from dovetail.messages.interruptions import Interruption, InterruptionReason, Warned
from dovetail.model.values.json import Json

IMPAIRED_SECONDS: Final = 120.0
_CODES: Final = ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"]
_QUERIES: Final = (
    ("instance-status.status", ["impaired"]),
    ("system-status.status", ["impaired"]),
    ("event.code", _CODES),
)
_STAYS: Final = frozenset({"pending", "running"})
_MOST_IDS: Final = 100  # of one question
_UNKNOWN: Final = "InvalidInstanceID.NotFound"
_GONE: Final[Json] = {"InstanceState": {"Name": "terminated"}}
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


async def borne_out(calls: Calls, warned: Collection[Warned], now: float) -> frozenset[Warned]:
    """The warnings that EC2 confirms: any about an instance that is neither running nor starting, and for a running one
    those that match its checks and events. An id that EC2 refuses to know means an instance that is gone; one that its
    answer merely lacks means nothing."""
    ids = sorted({instance for instance, _ in warned if INSTANCE_ID.fullmatch(instance)})
    rows: dict[str, Json] = {}
    for start in range(0, len(ids), _MOST_IDS):
        rows |= await _statuses(calls, ids[start : start + _MOST_IDS])
    return frozenset(
        (instance, reason)
        for instance, reason in warned
        if instance in rows and (_state(rows[instance]) not in _STAYS or reason in _reasons(rows[instance], now))
    )


async def _statuses(calls: Calls, ids: Sequence[str]) -> dict[str, Json]:
    """By id. One unknown id makes EC2 refuse the whole question; the refusal names it."""
    answer = await calls.attempt("ec2", "DescribeInstanceStatus", InstanceIds=list(ids), IncludeAllInstances=True)
    if not isinstance(answer, Denied):
        return {row["InstanceId"]: row for row in answer.get("InstanceStatuses") or () if row.get("InstanceId")}
    if answer.code != _UNKNOWN:
        raise refusal("ec2:DescribeInstanceStatus", answer)
    named = frozenset(INSTANCE_ID.findall(answer.message))
    unknown = [each for each in ids if each in named or len(ids) == 1]
    known = [each for each in ids if each not in unknown]
    found = dict.fromkeys(unknown, _GONE)
    half = 0 if unknown else len(known) // 2
    for each in (known[:half], known[half:]):
        found |= await _statuses(calls, each) if each else {}
    return found


def _state(row: Json) -> str:
    return str((row.get("InstanceState") or {}).get("Name") or "running")


def _reasons(row: Json, now: float) -> frozenset[InterruptionReason]:
    found = {each.reason for each in read_status(row, now)}
    return frozenset({*found, "scheduled_change"} if "event_status" in found else found)


def read_status(row: Json, now: float) -> list[Interruption]:
    found: list[Interruption] = []
    categories: tuple[tuple[str, InterruptionReason], ...] = (
        ("InstanceStatus", "instance_status"),
        ("SystemStatus", "system_status"),
    )
    for key, reason in categories:
        details = (row.get(key) or {}).get("Details") or ()
        if any(_failed(detail, now) for detail in details):
            found.append(_trouble(row, reason, now))
    events = [event for event in row.get("Events") or () if not _OVER.match(event.get("Description") or "")]
    if events:
        found.append(_trouble(row, "event_status", now))
    return found


def _failed(detail: Json, now: float) -> bool:
    since: Any = detail.get("ImpairedSince")
    if detail.get("Name") != "reachability" or detail.get("Status") != "failed":
        return False
    return isinstance(since, datetime) and now - since.timestamp() >= IMPAIRED_SECONDS


def _trouble(row: Json, reason: InterruptionReason, now: float) -> Interruption:
    identity: str = row["InstanceId"]
    return Interruption(id=f"{identity}/{reason}", reason=reason, instances=(identity,), at=now)

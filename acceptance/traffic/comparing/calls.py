"""One call to AWS, in a form in which equal calls are equal.

Both sides are read so before they are compared. Lists that are sets in AWS become maps or bags, user data its content,
and what the recording's README calls free or informational is left out here.
"""

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from acceptance.traffic.comparing.user_data import of_no_type, parsed
from acceptance.traffic.comparing.values import Bag
from dovetail.model.values.json import Json

FREE: Final = ("ClientToken", "ReceiptHandle")  # a token of one's own, and a queue's handle, say nothing
# Polling and refreshing: left out of the recorded lists (but for those of a start), counted there as background.
BACKGROUND: Final = frozenset(
    {
        "DescribeInstanceStatus",
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeSpotPriceHistory",
        "GetManagedResource",
        "GetProducts",
        "GetQueueUrl",
        "ListInstanceProfiles",
        "ReceiveMessage",
    }
)
_READS: Final = ("Describe", "Get", "List")
_SORTED: Final = frozenset(
    {"InstanceIds", "LaunchTemplateNames", "ProductDescriptions", "Groups", "Resources", "Names"}
)
CLAIM_TAGS: Final = frozenset({"karpenter.sh/nodeclaim", "dovetail.sh/claim-uid"})
# One refusal, which the service names by header and body in two ways (AWS-188).
_SAME_CODE: Final = {"AWS.SimpleQueueService.NonExistentQueue": "QueueDoesNotExist"}
_POOL_TAG: Final = "karpenter.sh/nodepool"


@dataclass(slots=True, kw_only=True)
class Call:
    """One call, or several equal ones folded."""

    op: str
    body: Json = field(default_factory=dict)  # input, error and outcome, to be compared as a whole
    times: int = 1  # how many equal ones are folded into it

    @property
    def error(self) -> str:
        """The code that was answered; empty where it was carried out."""
        return str(self.body.get("error") or "")

    @property
    def is_read(self) -> bool:
        """It changes nothing."""
        return self.op.startswith(_READS)

    @property
    def is_dry(self) -> bool:
        """It only checks whether the call would be allowed."""
        return bool((self.body.get("input") or {}).get("DryRun"))

    @property
    def counts(self) -> bool:
        """Whether it matters how often it was made: it changed something."""
        return not self.is_read and not self.error

    @property
    def is_background(self) -> bool:
        """Polling and refreshing; a list by tags is, a question for certain ids is not."""
        given = self.body.get("input") or {}
        if self.op in ("DescribeInstances", "DescribeLaunchTemplates"):
            return "InstanceIds" not in given and "LaunchTemplateNames" not in given
        return self.op in BACKGROUND

    def key(self) -> bytes:
        """Equal for equal calls."""
        return orjson.dumps([self.op, self.body], option=orjson.OPT_SORT_KEYS, default=list)


def read_calls(entries: Iterable[Json]) -> list[Call]:
    """Recorded calls, or lines of our ledger, in order; folded where a number says nothing."""
    folded: list[Call] = []
    seen: dict[bytes, Call] = {}
    for entry in entries:
        call = _read(entry)
        if call.op == "CreateFleet" and call.counts:
            _add_fleet(folded, call)
        elif call.counts or call.key() not in seen:
            seen[call.key()] = call
            folded.append(call)
        else:
            seen[call.key()].times += call.times
    return _by_ids(folded)


def without_claim_tags(entries: Iterable[Json]) -> tuple[list[Json], list[str]]:
    """Our fleets without the tags that distinguish claims, which upstream sets later, and which tags those were.

    With them no two fleets would be equal, and none could be folded.
    """
    found: set[str] = set()
    kept = []
    for entry in entries:
        if entry["op"] == "CreateFleet":
            entry = copy.deepcopy(entry)
            for each in entry["input"].get("TagSpecifications") or ():
                found |= {tag["Key"] for tag in each["Tags"]} & CLAIM_TAGS
                each["Tags"] = [tag for tag in each["Tags"] if tag["Key"] not in CLAIM_TAGS]
        kept.append(entry)
    return kept, sorted(found)


def _read(entry: Json) -> Call:
    given = {key: value for key, value in (entry.get("input") or {}).items() if key not in FREE}
    body: Json = {"input": _value(given)}
    if entry.get("error"):
        body["error"] = _SAME_CODE.get(entry["error"], entry["error"])
    call = Call(op=entry["op"], body=body, times=int(entry.get("times") or 1))
    if call.op == "CreateFleet" and not entry.get("error"):
        body["outcome"] = _outcome(entry.get("output") or {})
    if call.is_dry or _is_validation(call):
        _forget_choice(body["input"])
    return call


def _outcome(output: Json) -> Json:
    """What it launched where, and which pools refused."""
    launched: dict[str, int] = {}
    for each in output.get("instances") or ():
        place = f"{each.get('type')}/{each.get('zone')}"
        launched[place] = launched.get(place, 0) + len(each.get("ids") or ())
    refused = sorted(
        {f"{each.get('code')}/{each.get('type')}/{each.get('zone')}" for each in output.get("errors") or ()}
    )
    return {"launched": launched, "refused": refused}


def _value(found: Any, name: str = "") -> Any:
    """Sets as maps or bags."""
    if isinstance(found, dict):
        return {key: _value(value, key) for key, value in found.items() if value not in (None, [])}
    if isinstance(found, list):
        return _list(found, name)
    if name == "UserData" and isinstance(found, str):
        return parsed(found)
    if name == "QueueUrl":
        return str(found).rsplit("/", 2)[-2:]  # account and queue: the host is each side's own
    return "<time>" if name == "StartTime" else found


def _list(found: list[Any], name: str) -> Any:
    match name:
        case "Tags":
            return {each["Key"]: each.get("Value", "") for each in found}
        case "TagSpecifications":
            return {each["ResourceType"]: _value(each.get("Tags") or [], "Tags") for each in found}
        case "Filters":
            return _filters(found)
        case "Overrides":
            return {f"{each.get('InstanceType')}/{each.get('SubnetId')}": _value(each) for each in found}
        case "LaunchTemplateConfigs":
            return Bag([_value(each) for each in found])
        case _ if name in _SORTED:
            return sorted(found)
        case _:
            return [_value(each) for each in found]


def _filters(found: list[Json]) -> Json:
    """By name; one name may come twice, and both must hold. The pricing service calls them otherwise."""
    kept: dict[str, list[Any]] = {}
    for each in found:
        if "Field" in each:
            kept.setdefault(each["Field"], []).append([each.get("Type"), each.get("Value")])
        else:
            kept.setdefault(each["Name"], []).append(sorted(each.get("Values") or ()))
    return {name: sorted(values) for name, values in kept.items()}


# ---- validation --------------------------------------------------------------------------------------------


def _is_validation(call: Call) -> bool:
    """The template that only the dry runs use: its tag of the NodePool is empty."""
    tags = (call.body["input"].get("TagSpecifications") or {}).get("launch-template") or {}
    return call.op == "CreateLaunchTemplate" and tags.get(_POOL_TAG) == ""


def _forget_choice(given: Json) -> None:
    """Type, image and number of pods are upstream's choice at random (rule 4)."""
    given.pop("InstanceType", None)
    data = given.get("LaunchTemplateData")
    if isinstance(data, dict):
        data.pop("ImageId", None)
        if "UserData" in data:
            data["UserData"] = of_no_type(data["UserData"])
    for config in given.get("LaunchTemplateConfigs") or ():
        overrides = (config.get("Overrides") or {}).values()
        config["Overrides"] = sorted({each.get("SubnetId", "") for each in overrides})


# ---- folding -----------------------------------------------------------------------------------------------


def _add_fleet(folded: list[Call], call: Call) -> None:
    """Equal launches are one with their sum: how claims are batched says nothing."""
    target = call.body["input"]["TargetCapacitySpecification"]
    capacity = int(target.pop("TotalTargetCapacity", 1))
    if not call.body["outcome"]["launched"]:
        capacity = 0  # it brought nothing: how often that is tried says nothing either
    for other in folded:
        if other.op == call.op and other.counts and other.body["input"] == call.body["input"]:
            other.times += call.times
            other.body["capacity"] += capacity
            launched = other.body["outcome"]["launched"]
            for place, count in call.body["outcome"]["launched"].items():
                launched[place] = launched.get(place, 0) + count
            refused = {*other.body["outcome"]["refused"], *call.body["outcome"]["refused"]}
            other.body["outcome"]["refused"] = sorted(refused)
            return
    call.body["capacity"] = capacity
    folded.append(call)


def _by_ids(calls: list[Call]) -> list[Call]:
    """Reads by id as one with all ids, and so terminations that were carried out, but with how often each was told."""
    kept: list[Call] = []
    for call in calls:
        given = call.body.get("input") or {}
        ids = given.get("InstanceIds")
        if ids and call.op == "TerminateInstances" and call.counts:
            ids = given["InstanceIds"] = dict(Counter(ids))
        same = next((each for each in kept if ids and _same_but_ids(each, call)), None)
        if same is None:
            kept.append(call)
        else:
            same.times += call.times
            same.body["input"]["InstanceIds"] = _together(same.body["input"]["InstanceIds"], ids)
    return kept


def _together(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {each: one.get(each, 0) + other.get(each, 0) for each in sorted({*one, *other})}
    return sorted({*one, *other})


def _same_but_ids(one: Call, other: Call) -> bool:
    if one.op != other.op or "InstanceIds" not in (one.body.get("input") or {}) or one.error != other.error:
        return False
    return {k: v for k, v in one.body["input"].items() if k != "InstanceIds"} == {
        k: v for k, v in other.body["input"].items() if k != "InstanceIds"
    }

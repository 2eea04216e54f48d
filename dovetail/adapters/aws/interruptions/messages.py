"""What a message of the queue says (AWS-124, AWS-125).

Pure: text in, a warning or the reason why there is none out. Version, source and detail-type together make the kind;
any other valid message is `no_op`. A message that cannot be read raises, so that the caller can delete it: it must
neither stop the others nor come back for ever.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from dovetail.messages.interruptions import Interruption, InterruptionReason
from dovetail.model.json import Json

Detail = tuple[InterruptionReason, tuple[str, ...]]

_NOTHING: Final[Detail] = ("no_op", ())
_STOPPED: Final = frozenset({"stopping", "stopped"})
_ENDED: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


class UnreadableMessage(ValueError):
    """A body that is no EventBridge envelope."""


def read_message(body: str) -> Interruption:
    """The warning of a body. Raises UnreadableMessage."""
    try:
        envelope: Json = json.loads(body)
        key = (str(envelope["version"]), str(envelope["source"]), str(envelope["detail-type"]))
        read = _KINDS.get(key)
        reason, instances = _NOTHING if read is None else read(envelope.get("detail") or {})
        at = _moment(envelope["time"]) if "time" in envelope else 0.0
        return Interruption(id=str(envelope.get("id", "")), reason=reason, instances=instances, at=at)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableMessage(f"not a message of EventBridge: {type(error).__name__}: {error}") from error


def _moment(text: str) -> float:
    stamp = datetime.fromisoformat(text)
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def _one(reason: InterruptionReason) -> Callable[[Json], Detail]:
    def read(detail: Json) -> Detail:
        return reason, (_text(detail["instance-id"]),)

    return read


def _state(detail: Json) -> Detail:
    """The state in any case of letters; `Stopping` stops like `stopping` (upstream takes it for terminated,
    AWS-171)."""
    state = _text(detail["state"]).lower()
    if state not in _ENDED:
        return _NOTHING
    return ("instance_stopped" if state in _STOPPED else "instance_terminated"), (_text(detail["instance-id"]),)


def _health(detail: Json) -> Detail:
    if detail.get("service") != "EC2" or detail.get("eventTypeCategory") != "scheduledChange":
        return _NOTHING
    named = (_text(each["entityValue"]) for each in detail.get("affectedEntities") or ())
    return "scheduled_change", tuple(dict.fromkeys(named))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value


_KINDS: Final[dict[tuple[str, str, str], Callable[[Json], Detail]]] = {
    ("0", "aws.ec2", "EC2 Spot Instance Interruption Warning"): _one("spot_interrupted"),
    ("0", "aws.ec2", "EC2 Instance Rebalance Recommendation"): _one("rebalance_recommendation"),
    ("0", "aws.ec2", "EC2 Instance State-change Notification"): _state,
    ("0", "aws.health", "AWS Health Event"): _health,
    ("0", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _one(
        "capacity_reservation_interrupted"
    ),
}

"""What a message of the queue means (AWS-124, AWS-125).

Pure: text in, a warning or the reason for none out. Version, source and detail-type together make the kind; any other
valid message is `no_op`. A message that cannot be read raises, so that the caller can delete it: it must neither stop
the others nor come back forever. Anyone who may write to the queue may write anything, so an id is either an id of EC2
or dropped, and no text of a message is passed on at full length.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.aws.instances.instance import INSTANCE_ID
from dovetail.messages.interruptions import Interruption, InterruptionReason
from dovetail.model.values.json import Json
from dovetail.model.values.time import utc_moment

Detail = tuple[InterruptionReason, tuple[str, ...]]

_NOTHING: Final[Detail] = ("no_op", ())
_ID_CHARACTERS: Final = 100  # of a message's own id; EventBridge's have 36
_PROBLEM_CHARACTERS: Final = 500
_STOPPED: Final = frozenset({"stopping", "stopped"})
_ENDED: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
_HEALTH: Final = "aws.health"
OLDEST_SECONDS: Final = 3600.0  # what still holds is found by EC2's own checks, or the instance is gone


class UnreadableMessage(ValueError):
    """A body that is not an EventBridge envelope."""


class ForeignMessage(ValueError):
    """A warning of another account or region, or one read too late; the text is the same for all of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whose warnings are believed; empty fields are not compared. `waited`: how long the message was in the queue, by
    the queue's own clock: the time in a warning is used only for its latency."""

    account: str = ""
    region: str = ""
    waited: float = 0.0

    def check(self, envelope: Json) -> None:
        """Raises ForeignMessage. A health event itself names the account and region concerned: copies of it are sent to
        another region. No other may overrule its envelope."""
        detail, is_health = envelope.get("detail") or {}, envelope.get("source") == _HEALTH
        for ours, named, in_detail in (
            (self.account, "account", "affectedAccount"),
            (self.region, "region", "eventRegion"),
        ):
            said = [str(each) for each in (detail.get(in_detail), envelope.get(named)) if each]
            believed = said[:1] if is_health else said
            for theirs in believed if ours else ():
                if theirs != ours and not (is_health and theirs == "global"):
                    raise ForeignMessage(f"{named} {theirs[:_ID_CHARACTERS]!r} is not ours, {ours}")
        if self.waited >= OLDEST_SECONDS:
            raise ForeignMessage("nobody has read it for an hour")


def read_message(body: str, place: Place | None = None) -> Interruption:
    """The warning of a body. Raises UnreadableMessage, and ForeignMessage for one from elsewhere."""
    try:
        envelope: Json = json.loads(body)
        key = (str(envelope["version"]), str(envelope["source"]), str(envelope["detail-type"]))
        read = _KINDS.get(key)
        reason, instances = _NOTHING if read is None else read(envelope.get("detail") or {})
        at = utc_moment(envelope["time"]) if "time" in envelope else 0.0
        if place is not None and reason != "no_op":
            place.check(envelope)
        return Interruption(id=_identity(envelope.get("id", "")), reason=reason, instances=instances, at=at)
    except ForeignMessage:
        raise
    except Exception as error:  # whatever a stranger's text makes of the reading (lists in lists without end, …)
        text = f"not a message of EventBridge: {type(error).__name__}: {error}"
        raise UnreadableMessage(text[:_PROBLEM_CHARACTERS]) from error


def _identity(value: Any) -> str:
    return str(value)[:_ID_CHARACTERS].encode(errors="replace").decode()


def _one(reason: InterruptionReason) -> Callable[[Json], Detail]:
    def read(detail: Json) -> Detail:
        return reason, (_instance(detail["instance-id"]),)

    return read


def _state(detail: Json) -> Detail:
    """The state in any letter case; `Stopping` stops like `stopping` (upstream takes it for terminated, AWS-171)."""
    state = _text(detail["state"]).lower()
    if state not in _ENDED:
        return _NOTHING
    return ("instance_stopped" if state in _STOPPED else "instance_terminated"), (_instance(detail["instance-id"]),)


def _health(detail: Json) -> Detail:
    if detail.get("service") != "EC2" or detail.get("eventTypeCategory") != "scheduledChange":
        return _NOTHING
    named = (_text(each["entityValue"]) for each in detail.get("affectedEntities") or ())
    return "scheduled_change", tuple(dict.fromkeys(text for text in named if INSTANCE_ID.fullmatch(text)))


def _instance(value: Any) -> str:
    text = _text(value)
    if not INSTANCE_ID.fullmatch(text):
        raise ValueError(f"not the id of an instance: {text[:_ID_CHARACTERS]!r}")
    return text


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text but {type(value).__name__}")
    return value


_KINDS: Final[dict[tuple[str, str, str], Callable[[Json], Detail]]] = {
    ("0", "aws.ec2", "EC2 Spot Instance Interruption Warning"): _one("spot_interrupted"),
    ("0", "aws.ec2", "EC2 Instance Rebalance Recommendation"): _one("rebalance_recommendation"),
    ("0", "aws.ec2", "EC2 Instance State-change Notification"): _state,
    ("0", _HEALTH, "AWS Health Event"): _health,
    ("0", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _one(
        "capacity_reservation_interrupted"
    ),
}

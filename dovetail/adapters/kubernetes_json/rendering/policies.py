"""The status of a DisruptionPolicy as it is written."""

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.json import Json
from dovetail.model.policies import Opening, PolicyStatus
from dovetail.model.time import format_time


def render_status(status: PolicyStatus) -> Json:
    """The whole status."""
    return {
        "nodePools": list(status.pools),
        "openings": [_opening(each) for each in status.openings],
        "conditions": fields.conditions(status.conditions),
    }


def _opening(opening: Opening) -> Json:
    until = {} if opening.until is None else {"until": format_time(opening.until)}
    return {"reason": opening.reason, "open": opening.open, **until, **({"why": opening.why} if opening.why else {})}

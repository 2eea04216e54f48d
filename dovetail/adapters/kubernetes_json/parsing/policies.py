"""DisruptionPolicies and Freezes: JSON of the API in, dovetail.model out.

None is ever unreadable: one that was left out would hold nothing. An error makes a `fault`, and the object then holds
the NodePools that it applies to; if not even those can be read, it applies to every NodePool.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, Final

from dovetail.adapters.kubernetes_json.parsing.declared import checked, fields_in, metadata_of, read_or, words_of
from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.reading import reading
from dovetail.api.own.disruption_policy import DisruptionPolicySpec, NodePoolSelector, PolicyDrain, PolicyExpiry
from dovetail.api.own.freeze import FreezeSpec
from dovetail.api.schema.structural import ApiModel
from dovetail.api.validation import InvalidSpec
from dovetail.model.nodes import Condition
from dovetail.model.own.drain_rules import DrainRules, HookRules
from dovetail.model.own.forms import moment
from dovetail.model.own.health import ALERTS, HealthResult, HealthState
from dovetail.model.own.policies import Expiry, Freeze, Policy, PolicyStatus
from dovetail.model.values.json import ReadOnlyJson

_FORCES_NOTHING: Final = DrainRules(hooks=HookRules(), unread=True)
_HOLDS_EXPIRY: Final = Expiry(hard_after=inf)


def parse_policy(raw: ReadOnlyJson) -> Policy:
    with reading("DisruptionPolicy", raw):
        return _policy(raw)


def parse_freeze(raw: ReadOnlyJson) -> Freeze:
    with reading("Freeze", raw):
        return _freeze(raw)


def _policy(raw: ReadOnlyJson) -> Policy:
    """Three parts are judged separately. An error in the windows must not close pools that the selector does not
    select. If expiry cannot be read it is held: a slip in a manifest must not delete what waits for its replacement. If
    what it says of drains cannot be read, or nobody can read for which NodePools, it forces nothing, whatever other
    policies say, and a hook then holds until a person decides."""
    spec, said = raw.get("spec"), dict[str, Any]()
    try:
        said = fields_in(Policy, checked(DisruptionPolicySpec, spec))
    except (InvalidSpec, *RAW_FAULTS) as error:
        selects = {"nodePoolSelector": NodePoolSelector}
        said = {
            **read_or(lambda: _apart(spec, selects), {}),
            **read_or(lambda: _apart(spec, {"expiry": PolicyExpiry}), {"expiry": _HOLDS_EXPIRY}),
            **read_or(lambda: _apart(spec, {**selects, "drain": PolicyDrain}), {"drain": _FORCES_NOTHING}),
            "fault": words_of(error),
        }
    return Policy(**said, **metadata_of(raw["metadata"]), status=_status(raw.get("status")))


def _apart(spec: Any, models: Mapping[str, type[ApiModel]]) -> dict[str, Any]:
    """The last of these parts, with those before it; nothing where it is not given."""
    *_, last = models
    given = {key: checked(model, spec[key]) for key, model in models.items() if spec.get(key) is not None}
    return fields_in(Policy, given) if last in given else {}


def _freeze(raw: ReadOnlyJson) -> Freeze:
    """If it is not understood, its end is used if that can be read."""
    spec, said = raw.get("spec") or {}, dict[str, Any]()
    try:
        said = fields_in(Freeze, checked(FreezeSpec, spec))
    except (InvalidSpec, *RAW_FAULTS) as error:
        said = {"fault": words_of(error), "until": read_or(lambda: moment(spec["until"]), None)}
    known = read_or(lambda: conditions((raw.get("status") or {}).get("conditions")), tuple[Condition, ...]())
    return Freeze(**said, **metadata_of(raw["metadata"]), conditions=known)


def _status(raw: Any) -> PolicyStatus:
    """Part by part. A health that cannot be read counts as a failure, which a further look may end, and alerts as never
    asked."""
    given = raw if isinstance(raw, dict) else {}
    if isinstance(given.get("alerts"), dict):
        given = {**given, "alerts": {**given["alerts"], "name": ALERTS}}
    said = fields_in(PolicyStatus, given, [])
    if given.get("health") and "health" not in said:
        said["health"] = HealthState(result=HealthResult.FAILING, since=0.0, message="a status that cannot be read")
    return PolicyStatus(**said)

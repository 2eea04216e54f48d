"""The input of upstream's hash: the JSON of a NodePool's template as the structure that upstream makes of it.

Names and order of the fields are upstream's (NPL-3); they are part of the result. The JSON is hashed and not the model,
because to the model `labels: {}` and no labels at all are the same.
"""

from calendar import timegm
from datetime import datetime
from typing import Any, Final

from dovetail.model.values.durations import parse_nanoseconds
from dovetail.model.values.hashing import Int, Raw, Struct, Value, hash_value
from dovetail.model.values.json import ReadOnlyJson

_UNIX_TO_YEAR_ONE: Final = 62135596800  # Go counts a time's seconds from year 1


def template_hash(raw: ReadOnlyJson) -> str:
    """karpenter.sh/nodepool-hash of a spec.template, version v3 (NPL-1 to NPL-3)."""
    meta, spec = raw.get("metadata") or {}, raw.get("spec") or {}
    metadata = Struct("ObjectMeta", (("Labels", meta.get("labels")), ("Annotations", meta.get("annotations"))))
    fields = Struct(
        "NodeClaimTemplateSpec",
        (
            ("Taints", _taints(spec.get("taints"))),
            ("StartupTaints", _taints(spec.get("startupTaints"))),
            ("NodeClassRef", _reference(spec.get("nodeClassRef"))),
            ("TerminationGracePeriod", _grace(spec.get("terminationGracePeriod"))),
            ("ExpireAfter", _expiry(spec)),
        ),
    )
    # Requirements are left out of the hash, but a present list keeps the spec from being a zero value.
    has_spec = not fields.is_zero or spec.get("requirements") is not None
    template = Struct(
        "NodeClaimTemplate",
        (("ObjectMeta", None if metadata.is_zero else metadata), ("Spec", fields if has_spec else None)),
    )
    return str(hash_value(template))


def _reference(ref: ReadOnlyJson | None) -> Value:
    if ref is None:
        return None
    return Struct(
        "NodeClassReference", tuple((name, ref.get(name.lower()) or None) for name in ("Kind", "Name", "Group"))
    )


def _taints(raw: Any) -> Value:
    return None if raw is None else tuple(_taint(taint) for taint in raw)


def _taint(raw: ReadOnlyJson) -> Struct:
    added = raw.get("timeAdded")
    return Struct(
        "Taint",
        (
            ("Key", raw.get("key") or None),
            ("Value", raw.get("value") or None),
            ("Effect", raw.get("effect") or None),
            ("TimeAdded", None if added is None else Struct("Time", (("Time", _binary_time(added)),))),
        ),
    )


def _binary_time(text: str) -> Raw:
    """A time as Go marshals it: a version, seconds, nanoseconds, the offset of the local zone (taken to be UTC)."""
    stamp = datetime.fromisoformat(text)
    seconds = timegm(stamp.utctimetuple()) + _UNIX_TO_YEAR_ONE
    return Raw(b"\x01" + seconds.to_bytes(8, "big") + (stamp.microsecond * 1000).to_bytes(4, "big") + b"\x00\x00")


def _grace(text: str | None) -> Value:
    if text is None:
        return None
    value = parse_nanoseconds(text)
    return Struct("Duration", (("Duration", Int(value) if value else None),))


def _expiry(spec: ReadOnlyJson) -> Value:
    if "expireAfter" not in spec or spec["expireAfter"] == "Never":
        return None
    text = spec["expireAfter"]
    if text is None:
        raise ValueError('time: invalid duration ""')  # as upstream decodes a null, which the API server would drop
    # Upstream keeps a pointer to this number, and a pointer to 0 is no zero value.
    return Struct("NillableDuration", (("Duration", Int(parse_nanoseconds(text))),))

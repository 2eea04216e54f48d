"""NodeOverlays: JSON of the API in, dovetail.model out.

What the API server accepted and the rules forbid (API-25) makes an overlay with a `fault`, not an unreadable object:
people look for it in the overlay's status. `price` and `priceAdjustment` become one field, in which the sign marks an
adjustment.
"""

from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.reading import name_of, reading
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_expressions
from dovetail.api.karpenter.node_overlay import NodeOverlaySpec
from dovetail.api.runtime_checks import node_overlay_faults
from dovetail.api.validation import InvalidSpec, parse_spec
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import QuantityError, parse_resources
from dovetail.model.values.time import optional_time


def parse_node_overlay(raw: ReadOnlyJson) -> NodeOverlay:
    with reading("NodeOverlay", raw) as place:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        name, created = name_of(meta), optional_time(meta.get("creationTimestamp"))
        place.field = "spec.requirements"
        requirements = parse_expressions(spec.get("requirements"))
        place.field = "spec or status"
        fault = _fault(spec)
        return NodeOverlay(
            name=name,
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
            generation=meta.get("generation") or 0,
            created=created or 0.0,
            requirements=requirements,
            price=str(spec.get("price") or spec.get("priceAdjustment") or ""),
            capacity={} if fault else parse_resources(spec.get("capacity")),
            weight=spec.get("weight") or 0,
            fault=fault,
            conditions=conditions(status.get("conditions")),
        )


def _fault(spec: ReadOnlyJson) -> str:
    """Why the overlay cannot be used; empty if it can (API-17, API-25)."""
    try:
        faults = node_overlay_faults(parse_spec(NodeOverlaySpec, spec))
        parse_resources(spec.get("capacity"))
    except (InvalidSpec, QuantityError) as error:
        return str(error)
    return "; ".join(faults)

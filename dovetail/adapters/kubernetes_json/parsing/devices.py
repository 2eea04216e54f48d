"""ResourceSlices, ResourceClaims, ResourceClaimTemplates and DeviceClasses become dovetail.model objects.

What the API allows and placement does not understand is not an error: the device, the request or the claim names the
field (`aside`), and is left alone.
"""

from typing import Final

from dovetail.adapters.kubernetes_json.parsing.reading import list_of, name_of, number_of, reading, text_of
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_expressions
from dovetail.model.pods import NodeTerm
from dovetail.model.scheduling.devices import (
    NODE_NAME,
    Allocation,
    Attribute,
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    MatchConstraint,
    NodeChoice,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Version,
)
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import NANO, parse_quantity

POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
_NOT_UNDERSTOOD: Final = ("allowMultipleAllocations", "consumesCounters", "nodeName", "nodeSelector", "allNodes")


def parse_resource_slice(raw: ReadOnlyJson) -> ResourceSlice:
    with reading("ResourceSlice", raw) as place:
        place.field = "metadata"
        name = name_of(raw["metadata"])
        place.field = "spec"
        spec = raw["spec"]
        driver, pool = text_of(spec["driver"]), spec["pool"]
        place.field = "spec.devices"
        devices = tuple(parse_device(driver, text_of(pool["name"]), each) for each in list_of(spec.get("devices")))
        place.field = "spec"
        node = text_of(spec.get("nodeName") or "")
        return ResourceSlice(
            name=name,
            driver=driver,
            pool=text_of(pool["name"]),
            generation=number_of(pool.get("generation") or 0),
            count=number_of(pool.get("resourceSliceCount") or 0),
            nodes=NodeChoice(names=frozenset({node})) if node else _choice(spec.get("nodeSelector")),
            devices=() if spec.get("perDeviceNodeSelection") else devices,
        )


def parse_device(driver: str, pool: str, raw: ReadOnlyJson) -> Device:
    """One device of a slice, or of an instance type."""
    attributes, capacity = raw.get("attributes") or {}, raw.get("capacity") or {}
    aside = next((field for field in _NOT_UNDERSTOOD if raw.get(field)), "")
    taints = [each for each in list_of(raw.get("taints")) if each.get("effect") != "None"]
    read = {qualified(driver, name): _attribute(attributes[name]) for name in attributes}
    return Device(
        id=DeviceId(driver, pool, text_of(raw["name"])),
        attributes={name: value for name, value in read.items() if value is not None},
        capacity={
            qualified(driver, name): parse_quantity(str(capacity[name]["value"]).strip(), NANO) for name in capacity
        },
        aside=aside or ("taints" if taints else ""),
    )


def qualified(driver: str, name: str) -> str:
    """The whole name of an attribute or capacity of that driver's devices."""
    return name if "/" in name else f"{driver}/{name}"


def _attribute(raw: ReadOnlyJson) -> Attribute | None:
    """None for a kind of value that is newer than this code."""
    if "string" in raw:
        return text_of(raw["string"])
    if "bool" in raw:
        return bool(raw["bool"])
    if "int" in raw:
        return number_of(raw["int"])
    return Version(text_of(raw["version"])) if "version" in raw else None


def _choice(raw: ReadOnlyJson | None) -> NodeChoice:
    names: set[str] = set()
    terms: list[NodeTerm] = []
    for term in list_of((raw or {}).get("nodeSelectorTerms")):
        fields = list_of(term.get("matchFields"))
        if not fields:
            terms.append(NodeTerm(expressions=parse_expressions(term.get("matchExpressions"))))
            continue
        for each in fields:
            if each["key"] != NODE_NAME or each["operator"] != "In":
                raise ValueError(f"matchFields by {each['key']} {each['operator']}")
            names.update(map(text_of, each["values"]))
    return NodeChoice(names=frozenset(names), terms=tuple(terms))


def parse_resource_claim(raw: ReadOnlyJson) -> ResourceClaim:
    with reading("ResourceClaim", raw) as place:
        place.field = "metadata"
        metadata = raw["metadata"]
        owners = [each for each in list_of(metadata.get("ownerReferences")) if each.get("kind") == "Pod"]
        place.field = "spec"
        spec = _claim_spec(raw.get("spec") or {})
        place.field = "status"
        status = raw.get("status") or {}
        return ResourceClaim(
            name=name_of(metadata),
            namespace=text_of(metadata.get("namespace") or "default"),
            uid=text_of(metadata.get("uid") or ""),
            spec=spec,
            owner=text_of(owners[0].get("uid") or "") if owners else "",
            pod_claim=text_of((metadata.get("annotations") or {}).get(POD_CLAIM) or ""),
            allocation=_allocation(status["allocation"]) if status.get("allocation") else None,
            reserved_for=frozenset(map(_consumer, list_of(status.get("reservedFor")))),
        )


def _consumer(raw: ReadOnlyJson) -> str:
    """A pod's UID; for a consumer that is not a pod, a text that matches none."""
    uid, resource = text_of(raw["uid"]), text_of(raw.get("resource") or "")
    return uid if resource == "pods" else f"{resource}/{uid}"


def _allocation(raw: ReadOnlyJson) -> Allocation:
    results = list_of((raw.get("devices") or {}).get("results"))
    return Allocation(
        devices=tuple(
            DeviceId(text_of(each["driver"]), text_of(each["pool"]), text_of(each["device"]))
            for each in results
            if not each.get("adminAccess")
        ),
        nodes=_choice(raw.get("nodeSelector")),
    )


def parse_claim_template(raw: ReadOnlyJson) -> ResourceClaimTemplate:
    with reading("ResourceClaimTemplate", raw) as place:
        place.field = "metadata"
        metadata = raw["metadata"]
        name, namespace = name_of(metadata), text_of(metadata.get("namespace") or "default")
        place.field = "spec.spec"
        return ResourceClaimTemplate(name=name, namespace=namespace, spec=_claim_spec(raw["spec"].get("spec") or {}))


def parse_device_class(raw: ReadOnlyJson) -> DeviceClass:
    with reading("DeviceClass", raw) as place:
        place.field = "metadata"
        name = name_of(raw["metadata"])
        place.field = "spec.selectors"
        return DeviceClass(name=name, selectors=_selectors(raw.get("spec") or {}))


def _selectors(raw: ReadOnlyJson) -> tuple[str, ...]:
    return tuple(text_of(each["cel"]["expression"]) for each in list_of(raw.get("selectors")))


def _claim_spec(raw: ReadOnlyJson) -> ClaimSpec:
    devices = raw.get("devices") or {}
    constraints = list_of(devices.get("constraints"))
    others = [field for each in constraints for field in each if field not in ("requests", "matchAttribute")]
    return ClaimSpec(
        requests=tuple(_request(each) for each in list_of(devices.get("requests"))),
        constraints=tuple(
            MatchConstraint(
                attribute=text_of(each["matchAttribute"]),
                requests=tuple(map(text_of, list_of(each.get("requests")))),
            )
            for each in constraints
            if "matchAttribute" in each
        ),
        aside=f"constraints.{others[0]}" if others else "",
    )


def _request(raw: ReadOnlyJson) -> tuple[DeviceRequest, ...]:
    name = text_of(raw["name"])
    if "firstAvailable" in raw:
        return tuple(_alternative(f"{name}/{text_of(each['name'])}", each) for each in list_of(raw["firstAvailable"]))
    return (_alternative(name, raw["exactly"]),) if "exactly" in raw else (_unknown(name),)


def _unknown(name: str) -> DeviceRequest:
    return DeviceRequest(name=name, device_class="", aside="neither exactly nor firstAvailable")


def _alternative(name: str, raw: ReadOnlyJson) -> DeviceRequest:
    mode = raw.get("allocationMode") or "ExactCount"
    aside = (
        "capacity" if (raw.get("capacity") or {}).get("requests") else "adminAccess" if raw.get("adminAccess") else ""
    )
    if mode not in ("ExactCount", "All"):
        aside = f"allocationMode {mode}"
    return DeviceRequest(
        name=name,
        device_class=text_of(raw["deviceClassName"]),
        selectors=_selectors(raw),
        count=None if mode == "All" else number_of(raw.get("count") or 1),
        aside=aside,
    )

"""CapacityBuffers and what they refer to: JSON of the API in, dovetail.model out.

An unusable spec that the API server accepted makes a buffer with a `fault`, and an unreadable template a source with a
`fault`: people look for them in the buffer's status. A workload with such a template is still read, because default
spreading needs its selector.
"""

from dataclasses import replace

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.reading import name_of, number_of, reading
from dovetail.adapters.kubernetes_json.parsing.requests import pod_requests
from dovetail.adapters.kubernetes_json.parsing.shapes import parse_shape
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_selector_source
from dovetail.api.karpenter.capacity_buffer import CapacityBufferSpec
from dovetail.api.validation import InvalidSpec, parse_spec
from dovetail.model.objects.buffers import BufferStatus, CapacityBuffer, WorkloadRef
from dovetail.model.objects.workloads import PodSource, SelectorSource
from dovetail.model.pods import Pod
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import QuantityError, parse_resources


def parse_capacity_buffer(raw: ReadOnlyJson) -> CapacityBuffer:
    with reading("CapacityBuffer", raw) as place:
        meta = raw["metadata"]
        buffer = CapacityBuffer(
            name=name_of(meta),
            namespace=meta.get("namespace") or "default",
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
            generation=meta.get("generation") or 0,
            deleting=bool(meta.get("deletionTimestamp")),
        )
        place.field = "status"
        buffer = replace(buffer, status=_status(raw.get("status") or {}))
        place.field = "spec"
        return _with_spec(buffer, raw.get("spec") or {})


def _with_spec(buffer: CapacityBuffer, raw: ReadOnlyJson) -> CapacityBuffer:
    """The buffer with the content of its spec, or with the reason why the spec cannot be used (PLC-211)."""
    buffer = replace(buffer, strategy=str(raw.get("provisioningStrategy") or ""))
    try:
        spec = parse_spec(CapacityBufferSpec, raw)
        limits = parse_resources(spec.limits)
    except InvalidSpec as error:
        faults = (f"{f'spec.{place}' if place else 'spec'}: {message}" for place, message in error.problems)
        return replace(buffer, fault="; ".join(faults))
    except QuantityError as error:
        return replace(buffer, fault=f"spec.limits: {error}")
    followed = spec.scalable_ref
    return replace(
        buffer,
        strategy=spec.provisioning_strategy,
        template=spec.pod_template_ref.name if spec.pod_template_ref else "",
        workload=WorkloadRef(group=followed.api_group or "", kind=followed.kind, name=followed.name)
        if followed
        else None,
        replicas=spec.replicas,
        percentage=spec.percentage,
        limits=limits,
    )


def _status(raw: ReadOnlyJson) -> BufferStatus:
    return BufferStatus(
        template=(raw.get("podTemplateRef") or {}).get("name"),
        template_generation=raw.get("podTemplateGeneration"),
        replicas=raw.get("replicas"),
        strategy=raw.get("provisioningStrategy"),
        conditions=conditions(raw.get("conditions")),
    )


def parse_pod_template(raw: ReadOnlyJson) -> PodSource:
    with reading("PodTemplate", raw):
        return _source(raw, raw.get("template"))


def parse_workload(kind: str, raw: ReadOnlyJson) -> SelectorSource:
    """A ReplicaSet or StatefulSet, as default spreading reads it and as buffers do."""
    source = parse_selector_source(kind, raw)
    with reading(kind, raw) as place:
        place.field = "spec"
        return replace(source, pods=pods_of_workload(raw))


def pods_of_workload(raw: ReadOnlyJson) -> PodSource:
    """What its pods are like, and how many it wants."""
    spec = raw.get("spec") or {}
    wanted = spec.get("replicas")
    return replace(_source(raw, spec.get("template")), replicas=1 if wanted is None else number_of(wanted))


def _source(raw: ReadOnlyJson, template: ReadOnlyJson | None) -> PodSource:
    """What the pods would be like, or why that is unknown (PLC-212)."""
    generation = raw["metadata"].get("generation") or 0
    try:
        return PodSource(pod=_pod(raw["metadata"], template or {}), generation=generation)
    except RAW_FAULTS as fault:
        text = f"missing {fault}" if isinstance(fault, KeyError) else str(fault)
        return PodSource(fault=f"template: {text}", generation=generation)


def _pod(owner: ReadOnlyJson, template: ReadOnlyJson) -> Pod:
    """A pod of the template as the API server would admit it, but without its volumes."""
    spec = {**template["spec"], "containers": template["spec"]["containers"], "volumes": None}
    metadata = {**(template.get("metadata") or {}), "namespace": owner.get("namespace")}
    requests = pod_requests({"spec": spec}, limits_as_requests=True)
    return Pod(name="", uid="", shape=parse_shape(metadata, spec), requests=requests)

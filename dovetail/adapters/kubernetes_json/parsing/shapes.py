"""What decides where a pod may go: the parts of its spec that make a PodShape, shared among pods that are alike.

Placement asks each of its questions once per shape, so equal shapes are one object for as long as any pod has it. When
the last such pod is gone, nothing of the shape is left.
"""

from typing import Final

import orjson

from dovetail.adapters.kubernetes_json.parsing.reading import (
    list_of,
    number_of,
    optional_number,
    optional_text,
    text_of,
)
from dovetail.adapters.kubernetes_json.parsing.selectors import (
    parse_label_selector,
    parse_node_term,
    parse_node_terms,
    parse_toleration,
)
from dovetail.model.pods import DeviceClaimUse, HostPort, NodeTerm, PodShape, PodTerm, SpreadConstraint, VolumeUse
from dovetail.model.scheduling.host_ports import canonical_address
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.remembering import Shared, fingerprint

_SHAPES: Final[Shared[bytes, PodShape]] = Shared()


def _preferred_node_terms(affinity: ReadOnlyJson) -> tuple[NodeTerm, ...]:
    entries = (affinity.get("nodeAffinity") or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(
        [parse_node_term(entry.get("preference") or {}, number_of(entry.get("weight") or 0)) for entry in entries]
    )


def _pod_term(raw: ReadOnlyJson, weight: int = 0) -> PodTerm:
    return PodTerm(
        topology_key=text_of(raw["topologyKey"]),
        selector=parse_label_selector(raw.get("labelSelector")),
        namespaces=tuple(sorted(map(text_of, list_of(raw.get("namespaces"))))),
        namespace_selector=parse_label_selector(raw.get("namespaceSelector")),
        weight=weight,
    )


def _required_pod_terms(affinity: ReadOnlyJson, kind: str) -> tuple[PodTerm, ...]:
    entries = (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple([_pod_term(entry) for entry in entries])


def _preferred_pod_terms(affinity: ReadOnlyJson, kind: str) -> tuple[PodTerm, ...]:
    entries = (affinity.get(kind) or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple([_pod_term(entry["podAffinityTerm"], number_of(entry.get("weight") or 0)) for entry in entries])


def parse_spread(raw: ReadOnlyJson) -> SpreadConstraint:
    """One topology spread constraint, with the API's defaults."""
    policy = raw["whenUnsatisfiable"]
    if policy not in ("DoNotSchedule", "ScheduleAnyway"):
        raise ValueError(f"whenUnsatisfiable {policy!r} is neither DoNotSchedule nor ScheduleAnyway")
    return SpreadConstraint(
        topology_key=text_of(raw["topologyKey"]),
        max_skew=number_of(raw["maxSkew"]),
        when_unsatisfiable=policy,
        selector=parse_label_selector(raw.get("labelSelector")),
        min_domains=optional_number(raw.get("minDomains")),
        node_affinity_policy="Ignore" if raw.get("nodeAffinityPolicy") == "Ignore" else "Honor",
        node_taints_policy="Honor" if raw.get("nodeTaintsPolicy") == "Honor" else "Ignore",
        match_label_keys=tuple(map(text_of, list_of(raw.get("matchLabelKeys")))),
    )


def _host_ports(ports: list[ReadOnlyJson]) -> tuple[HostPort, ...]:
    return tuple(
        [
            HostPort(
                address=canonical_address(port.get("hostIP") or "0.0.0.0"),
                port=number_of(port["hostPort"]),
                protocol=text_of(port.get("protocol") or "TCP"),
            )
            for port in ports
        ]
    )


def _volume_uses(volumes: list[ReadOnlyJson]) -> tuple[VolumeUse, ...]:
    uses = []
    for volume in volumes:
        if claim := volume.get("persistentVolumeClaim"):
            uses.append(VolumeUse(claim_name=text_of(claim["claimName"])))
        elif "ephemeral" in volume:
            template = ((volume["ephemeral"] or {}).get("volumeClaimTemplate") or {}).get("spec") or {}
            uses.append(
                VolumeUse(
                    claim_name=text_of(volume["name"]),
                    ephemeral=True,
                    storage_class=optional_text(template.get("storageClassName")),
                )
            )
    return tuple(uses)


def _device_claims(entries: ReadOnlyJson | None) -> tuple[DeviceClaimUse, ...]:
    return tuple(
        [
            DeviceClaimUse(
                name=text_of(each["name"]),
                claim=text_of(each.get("resourceClaimName") or ""),
                template=text_of(each.get("resourceClaimTemplateName") or ""),
            )
            for each in list_of(entries)
        ]
    )


def _uses_resource_claims(spec: ReadOnlyJson) -> bool:
    if spec.get("resourceClaims"):
        return True
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources")
            if resources and resources.get("claims"):
                return True
    return False


def _build(parts: ReadOnlyJson) -> PodShape:
    labels, affinity, selector = parts["labels"], parts["affinity"] or {}, parts["nodeSelector"] or {}
    return PodShape(
        namespace=parts["namespace"],
        labels={str(key): str(labels[key]) for key in labels},
        node_selector=tuple(sorted((text_of(key), text_of(selector[key])) for key in selector)),
        required_terms=parse_node_terms(
            (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        ),
        preferred_terms=_preferred_node_terms(affinity),
        tolerations=tuple([parse_toleration(entry) for entry in parts["tolerations"] or ()]),
        affinity=_required_pod_terms(affinity, "podAffinity"),
        preferred_affinity=_preferred_pod_terms(affinity, "podAffinity"),
        anti_affinity=_required_pod_terms(affinity, "podAntiAffinity"),
        preferred_anti_affinity=_preferred_pod_terms(affinity, "podAntiAffinity"),
        spread=tuple([parse_spread(entry) for entry in parts["spread"] or ()]),
        host_ports=_host_ports(parts["ports"]),
        volumes=_volume_uses(parts["volumes"]),
        uses_resource_claims=parts["claims"],
        device_claims=_device_claims(parts["devices"]),
    )


def _ports_on_the_host(spec: ReadOnlyJson) -> list[ReadOnlyJson]:
    """Those of the regular containers; ports of init containers are not counted (PLC-82)."""
    return [
        port
        for container in spec.get("containers") or ()
        if "ports" in container
        for port in container["ports"] or ()
        if port.get("hostPort")
    ]


def claims_among(volumes: list[ReadOnlyJson] | None) -> list[ReadOnlyJson]:
    """The volumes that refer to claims. The token volume, which every pod has, has a new name in each."""
    return [volume for volume in volumes or () if "persistentVolumeClaim" in volume or "ephemeral" in volume]


def parse_shape(metadata: ReadOnlyJson, spec: ReadOnlyJson) -> PodShape:
    """The shape of a pod (or of a template) with this metadata and spec.

    It is made of these parts alone and identified by their text: a part missing from the text would give pods each
    other's shapes.
    """
    parts = {
        "namespace": text_of(metadata.get("namespace") or "default"),
        "labels": metadata.get("labels") or {},
        "affinity": spec.get("affinity"),
        "spread": spec.get("topologySpreadConstraints"),
        "nodeSelector": spec.get("nodeSelector"),
        "tolerations": spec.get("tolerations"),
        "ports": _ports_on_the_host(spec),
        "claims": _uses_resource_claims(spec),
        "devices": spec.get("resourceClaims"),
        "volumes": claims_among(spec.get("volumes")),
    }
    text = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return _SHAPES.one(fingerprint(text), lambda: _build(parts))

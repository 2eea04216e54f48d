"""What is in a launch template (AWS-83, AWS-86, AWS-87).

Pure: the same inputs give the same bytes, whose digest is the template's name, so that equal launches share a template
and a deleted one is recreated identically. Security groups are on the network interfaces, because EC2 refuses them on
the template next to interfaces.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws.launch.launch_terms import FleetTerms, LaunchTerms
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.image_families import FAMILIES
from dovetail.adapters.aws.tags import tag_specification
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_quantity

_GIB: Final = 2**30
_ISO_PREFIXES: Final = ("us-iso", "eu-isoe")
NAME_PREFIX: Final = "karpenter.k8s.aws/"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateInputs:
    node_class: NodeClass
    region: str
    terms: LaunchTerms
    fleet: FleetTerms
    user_data: str
    tags: Mapping[str, str]
    group_id: str | None = None  # of the placement group
    ipv6: bool = False
    reserved_capacity: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A named template, ready to be made."""

    name: str
    data: Json
    tags: Mapping[str, str]


def template_of(inputs: TemplateInputs) -> Template:
    data = template_data(inputs)
    text = json.dumps([data, sorted(inputs.tags.items())], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).digest()
    return Template(name=f"{NAME_PREFIX}{int.from_bytes(digest[:8], 'big')}", data=data, tags=inputs.tags)


def user_data_bytes(data: Json) -> int:
    """The decoded size of a template's user data, which is what EC2 limits."""
    return len(base64.b64decode(data.get("UserData", "")))


def template_data(inputs: TemplateInputs) -> Json:
    spec = inputs.node_class.spec
    data: Json = {
        "ImageId": inputs.terms.image,
        "UserData": base64.b64encode(inputs.user_data.encode()).decode(),
        "Monitoring": {"Enabled": bool(spec.detailed_monitoring)},
        "MetadataOptions": _metadata(inputs),
        "NetworkInterfaces": _interfaces(inputs),
        "EnclaveOptions": {"Enabled": spec.wants_enclaves},
        "Placement": _placement(inputs),
        "TagSpecifications": [tag_specification(kind, inputs.tags) for kind in _tagged_kinds(inputs)],
    }
    if inputs.node_class.status.instance_profile:
        data["IamInstanceProfile"] = {"Name": inputs.node_class.status.instance_profile}
    mappings = block_devices(inputs.node_class)
    if mappings:
        data["BlockDeviceMappings"] = mappings
    if spec.cpu_options is not None and spec.cpu_options.nested_virtualization is not None:
        data["CpuOptions"] = {"NestedVirtualization": spec.cpu_options.nested_virtualization}
    if inputs.reserved_capacity:
        data.update(_reservation(inputs))
    return data


def _tagged_kinds(inputs: TemplateInputs) -> tuple[str, ...]:
    return (
        ("network-interface", "spot-instances-request")
        if inputs.fleet.capacity_type == "spot"
        else ("network-interface",)
    )


def _placement(inputs: TemplateInputs) -> Json:
    placement: Json = {"Tenancy": inputs.fleet.tenancy}
    if inputs.group_id:
        placement["GroupId"] = inputs.group_id
    if inputs.fleet.partition:
        placement["PartitionNumber"] = int(inputs.fleet.partition)
    return placement


def _metadata(inputs: TemplateInputs) -> Json:
    options = inputs.node_class.spec.metadata_options
    data: Json = {
        "HttpEndpoint": options.http_endpoint,
        "HttpTokens": options.http_tokens,
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
        "InstanceMetadataTags": "disabled",
    }
    if not inputs.region.startswith(_ISO_PREFIXES):
        data["HttpProtocolIpv6"] = options.http_protocol_ipv6
    return data


def _interfaces(inputs: TemplateInputs) -> list[Json]:
    spec = inputs.node_class.spec
    rows: list[Json]
    if spec.network_interfaces:
        rows = [
            {"NetworkCardIndex": i.network_card_index, "DeviceIndex": i.device_index, "InterfaceType": i.interface_type}
            for i in spec.network_interfaces
        ]
    elif inputs.terms.efa:
        # One per card: the first is the node's own interface, too.
        rows = [
            {"NetworkCardIndex": card, "DeviceIndex": 0 if card == 0 else 1, "InterfaceType": "efa"}
            for card in range(inputs.terms.efa)
        ]
    else:
        rows = [{"DeviceIndex": 0}]
    shared, first = _shared(inputs), _first(inputs)
    groups = list(inputs.node_class.security_groups)
    return [
        {
            **row,
            "Groups": groups,
            # One of the fabric alone has no addresses: EC2 refuses prefixes and connection tracking there.
            **(shared if row.get("InterfaceType") != "efa-only" else {}),
            **(first if (row.get("NetworkCardIndex", 0), row["DeviceIndex"]) == (0, 0) else {}),
        }
        for row in rows
    ]


def _shared(inputs: TemplateInputs) -> Json:
    spec = inputs.node_class.spec
    shared: Json = {}
    if spec.ip_prefix_count is not None:
        shared["Ipv6PrefixCount" if inputs.ipv6 else "Ipv4PrefixCount"] = spec.ip_prefix_count
    tracking = spec.connection_tracking
    if tracking is not None:
        timeouts = {
            "TcpEstablishedTimeout": tracking.tcp_established_timeout,
            "UdpStreamTimeout": tracking.udp_stream_timeout,
            "UdpTimeout": tracking.udp_timeout,
        }
        shared["ConnectionTrackingSpecification"] = {k: v for k, v in timeouts.items() if v is not None}
    return shared


def _first(inputs: TemplateInputs) -> Json:
    """What only the node's own interface has."""
    first: Json = {}
    if inputs.node_class.spec.associate_public_ip_address is not None:
        first["AssociatePublicIpAddress"] = inputs.node_class.spec.associate_public_ip_address
    if inputs.ipv6:
        first["PrimaryIpv6"] = True
        if inputs.node_class.spec.ip_prefix_count is None:
            first["Ipv6AddressCount"] = 1
    return first


def block_devices(node_class: NodeClass) -> list[Json]:
    """BlockDeviceMappings; sizes in whole GiB, rounded up."""
    given = node_class.spec.block_device_mappings
    raw = [mapping.as_object() for mapping in given] if given else [dict(d) for d in FAMILIES[node_class.family].disks]
    return [_block_device(mapping) for mapping in raw]


_EBS: Final = {
    "deleteOnTermination": "DeleteOnTermination",
    "encrypted": "Encrypted",
    "iops": "Iops",
    "kmsKeyID": "KmsKeyId",
    "snapshotID": "SnapshotId",
    "throughput": "Throughput",
    "volumeInitializationRate": "VolumeInitializationRate",
    "volumeType": "VolumeType",
}


def _block_device(mapping: Json) -> Json:
    row: Json = {}
    if mapping.get("deviceName"):
        row["DeviceName"] = mapping["deviceName"]
    ebs = mapping.get("ebs")
    if ebs is not None:
        row["Ebs"] = {name: ebs[key] for key, name in _EBS.items() if ebs.get(key) is not None}
        if ebs.get("volumeSize"):
            row["Ebs"]["VolumeSize"] = -(-parse_quantity(ebs["volumeSize"]) // _GIB)
    return row


def _reservation(inputs: TemplateInputs) -> Json:
    """Launches without a reservation stay out of open ones (AWS-87)."""
    if not inputs.terms.reservation_id:
        return {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    specification = {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": inputs.terms.reservation_id},
    }
    market = {"InstanceMarketOptions": {"MarketType": inputs.terms.market}} if inputs.terms.market else {}
    return {"CapacityReservationSpecification": specification, **market}

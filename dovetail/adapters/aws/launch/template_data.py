"""What stands in a launch template (W-83, W-86, W-87)?

Pure: the same wish gives the same bytes, whose digest is the template's name, so that equal launches share one and a
template deleted behind our back is made again just so. The trap avoided: a security group on the template itself, which
EC2 refuses beside network interfaces.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.image_families import FAMILIES
from dovetail.adapters.aws.tags import tag_specification
from dovetail.model.resources import parse_quantity

Json = dict[str, Any]

_GIB: Final = 2**30
_ISO_PREFIXES: Final = ("us-iso", "eu-isoe")
NAME_PREFIX: Final = "karpenter.k8s.aws/"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateWish:
    """Everything that shapes a template."""

    node_class: NodeClass
    region: str
    image: str
    user_data: str
    tags: Mapping[str, str]
    capacity_type: str
    tenancy: str
    efa: int = 0
    enclaves: bool = False
    ipv6: bool = False
    reserved_capacity: bool = True
    reservation_id: str = ""
    market: str = ""  # capacity-block, interruptible-capacity-reservation
    group_id: str = ""
    partition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A named template, ready to be made."""

    name: str
    data: Json
    tags: Mapping[str, str]


def template_of(wish: TemplateWish) -> Template:
    """The template of a wish."""
    data = template_data(wish)
    text = json.dumps([data, sorted(wish.tags.items())], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).digest()
    return Template(name=f"{NAME_PREFIX}{int.from_bytes(digest[:8], 'big')}", data=data, tags=wish.tags)


def user_data_bytes(data: Json) -> int:
    """How large the user data of a template is, decoded, which is what EC2 limits."""
    return len(base64.b64decode(data.get("UserData", "")))


def template_data(wish: TemplateWish) -> Json:
    """LaunchTemplateData."""
    spec = wish.node_class.spec
    data: Json = {
        "ImageId": wish.image,
        "UserData": base64.b64encode(wish.user_data.encode()).decode(),
        "Monitoring": {"Enabled": bool(spec.detailed_monitoring)},
        "MetadataOptions": _metadata(wish),
        "NetworkInterfaces": _interfaces(wish),
        "EnclaveOptions": {"Enabled": wish.enclaves},
        "Placement": _placement(wish),
        "TagSpecifications": [tag_specification(kind, wish.tags) for kind in _tagged_kinds(wish)],
    }
    if wish.node_class.status.instance_profile:
        data["IamInstanceProfile"] = {"Name": wish.node_class.status.instance_profile}
    mappings = block_devices(wish.node_class)
    if mappings:
        data["BlockDeviceMappings"] = mappings
    if spec.cpu_options is not None and spec.cpu_options.nested_virtualization is not None:
        data["CpuOptions"] = {"NestedVirtualization": spec.cpu_options.nested_virtualization}
    if wish.reserved_capacity:
        data.update(_reservation(wish))
    return data


def _tagged_kinds(wish: TemplateWish) -> tuple[str, ...]:
    return ("network-interface", "spot-instances-request") if wish.capacity_type == "spot" else ("network-interface",)


def _placement(wish: TemplateWish) -> Json:
    placement: Json = {"Tenancy": wish.tenancy}
    if wish.group_id:
        placement["GroupId"] = wish.group_id
    if wish.partition:
        placement["PartitionNumber"] = int(wish.partition)
    return placement


def _metadata(wish: TemplateWish) -> Json:
    options = wish.node_class.spec.metadata_options
    data: Json = {
        "HttpEndpoint": options.http_endpoint,
        "HttpTokens": options.http_tokens,
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
        "InstanceMetadataTags": "disabled",
    }
    if not wish.region.startswith(_ISO_PREFIXES):
        data["HttpProtocolIpv6"] = options.http_protocol_ipv6
    return data


def _interfaces(wish: TemplateWish) -> list[Json]:
    spec = wish.node_class.spec
    rows: list[Json]
    if spec.network_interfaces:
        rows = [
            {"NetworkCardIndex": i.network_card_index, "DeviceIndex": i.device_index, "InterfaceType": i.interface_type}
            for i in spec.network_interfaces
        ]
    elif wish.efa:
        # One per card: the first is the node's own interface, too.
        rows = [
            {"NetworkCardIndex": card, "DeviceIndex": 0 if card == 0 else 1, "InterfaceType": "efa"}
            for card in range(wish.efa)
        ]
    else:
        rows = [{"DeviceIndex": 0}]
    shared = _shared(wish)
    return [{**row, **shared, **(_first(wish) if _is_first(row) else {})} for row in rows]


def _is_first(row: Json) -> bool:
    return (row.get("NetworkCardIndex", 0), row["DeviceIndex"]) == (0, 0)


def _shared(wish: TemplateWish) -> Json:
    """What every interface has."""
    spec = wish.node_class.spec
    shared: Json = {"Groups": list(wish.node_class.security_groups)}
    if spec.ip_prefix_count is not None:
        shared["Ipv6PrefixCount" if wish.ipv6 else "Ipv4PrefixCount"] = spec.ip_prefix_count
    tracking = spec.connection_tracking
    if tracking is not None:
        timeouts = {
            "TcpEstablishedTimeout": tracking.tcp_established_timeout,
            "UdpStreamTimeout": tracking.udp_stream_timeout,
            "UdpTimeout": tracking.udp_timeout,
        }
        shared["ConnectionTrackingSpecification"] = {k: v for k, v in timeouts.items() if v is not None}
    return shared


def _first(wish: TemplateWish) -> Json:
    """What only the node's own interface has."""
    first: Json = {}
    if wish.node_class.spec.associate_public_ip_address is not None:
        first["AssociatePublicIpAddress"] = wish.node_class.spec.associate_public_ip_address
    if wish.ipv6:
        first["PrimaryIpv6"] = True
        if wish.node_class.spec.ip_prefix_count is None:
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


def _reservation(wish: TemplateWish) -> Json:
    """W-87: other launches stay out of open reservations."""
    if not wish.reservation_id:
        return {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    specification = {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": wish.reservation_id},
    }
    market = {"InstanceMarketOptions": {"MarketType": wish.market}} if wish.market else {}
    return {"CapacityReservationSpecification": specification, **market}

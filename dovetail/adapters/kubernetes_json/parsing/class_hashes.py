"""karpenter.k8s.aws/ec2nodeclass-hash, bit for bit as upstream computes it (AWS-115, AWS-116, version v6).

Names and order of the fields are upstream's; they are part of the result. If one bit differed, a cluster taken over
from Karpenter would replace every node. An empty text behind a pointer is not a zero value; a plain false is one. It is
here because both AWS's adapter and the simulated cloud write it.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from dovetail.api.aws.ami_selectors import AMI_FAMILIES
from dovetail.model.values.hashing import Int, Struct, Value, hash_value
from dovetail.model.values.json import Json
from dovetail.model.values.resources import parse_quantity

EC2_NODE_CLASS_HASH_VERSION: Final = "v6"


_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")


def ec2_node_class_hash(spec: Json, ca_bundle: str | None = None) -> str:
    """The hash of a spec as written in JSON, with the family in effect and the cluster's CA bundle."""
    return str(hash_value((_spec(spec), ami_family(spec), ca_bundle or "", canonical_json(spec.get("kubelet")))))


def ami_family(spec: Json) -> str:
    """The family in effect (AWS-14): the field, else the alias's, else Custom."""
    if spec.get("amiFamily"):
        return str(spec["amiFamily"])
    for term in spec.get("amiSelectorTerms") or ():
        if term.get("alias"):
            return AMI_FAMILIES.get(str(term["alias"]).partition("@")[0], "Custom")
    return "Custom"


def _spec(spec: Json) -> Struct:
    return Struct(
        "EC2NodeClassSpec",
        (
            ("PlacementGroupSelector", _texts("PlacementGroupSelector", spec.get("placementGroupSelector"), _GROUP)),
            ("AssociatePublicIPAddress", _flag(spec.get("associatePublicIPAddress"))),
            ("UserData", spec.get("userData")),
            ("Role", spec.get("role") or None),
            ("InstanceProfile", spec.get("instanceProfile")),
            ("Tags", spec.get("tags")),
            ("BlockDeviceMappings", _list(spec.get("blockDeviceMappings"), _mapping)),
            ("InstanceStorePolicy", spec.get("instanceStorePolicy")),
            ("NetworkInterfaces", _list(spec.get("networkInterfaces"), _interface)),
            ("DetailedMonitoring", _flag(spec.get("detailedMonitoring"))),
            ("MetadataOptions", _metadata(spec.get("metadataOptions"))),
            ("EnclaveOptions", _enclaves(spec.get("enclaveOptions"))),
            ("ConnectionTracking", _tracking(spec.get("connectionTracking"))),
            ("Context", spec.get("context")),
            ("CPUOptions", _texts("CPUOptions", spec.get("cpuOptions"), _CPU)),
        ),
    )


_GROUP: Final = (("Name", "name"), ("ID", "id"))
_CPU: Final = (("NestedVirtualization", "nestedVirtualization"),)


def _texts(name: str, raw: Json | None, fields: Iterable[tuple[str, str]]) -> Value:
    return None if raw is None else Struct(name, tuple((field, raw.get(key)) for field, key in fields))


def _flag(raw: bool | None) -> Value:
    return None if raw is None else Int(int(raw), 1)


def _number(raw: int | None, width: int) -> Value:
    return None if raw is None else Int(int(raw), width)


def _list(raw: list[Json] | None, one: Any) -> Value:
    return None if raw is None else tuple(one(entry) for entry in raw)


def canonical_json(raw: Json | None) -> str:
    """JSON as Go's encoder writes it: top-level keys sorted, no white space, HTML's characters escaped."""
    if not raw:  # upstream keeps an empty one as none at all
        return "null"
    text = json.dumps(dict(sorted(raw.items())), separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _mapping(raw: Json) -> Struct:
    return Struct(
        "BlockDeviceMapping",
        (
            ("DeviceName", raw.get("deviceName")),
            ("EBS", _volume(raw.get("ebs"))),
            ("RootVolume", Int(1, 1) if raw.get("rootVolume") else None),
        ),
    )


def _volume(raw: Json | None) -> Value:
    if raw is None:
        return None
    size = raw.get("volumeSize")
    return Struct(
        "BlockDevice",
        (
            ("DeleteOnTermination", _flag(raw.get("deleteOnTermination"))),
            ("Encrypted", _flag(raw.get("encrypted"))),
            ("IOPS", _number(raw.get("iops"), 8)),
            ("KMSKeyID", raw.get("kmsKeyID")),
            ("SnapshotID", raw.get("snapshotID")),
            ("Throughput", _number(raw.get("throughput"), 8)),
            ("VolumeInitializationRate", _number(raw.get("volumeInitializationRate"), 4)),
            ("VolumeSize", None if size is None else canonical_quantity(str(size))),
            ("VolumeType", raw.get("volumeType")),
        ),
    )


def canonical_quantity(text: str) -> str:
    """A whole quantity as Go prints it: with the largest suffix of its own kind that leaves a whole number."""
    value = parse_quantity(text)
    binary = text.endswith("i")
    step, suffixes = (1024, _BINARY) if binary else (1000, _DECIMAL)
    power = 0
    while value and value % step == 0 and power + 1 < len(suffixes):
        value, power = value // step, power + 1
    return f"{value}{suffixes[power]}" if value else "0"


def _interface(raw: Json) -> Struct:
    return Struct(
        "NetworkInterface",
        (
            ("NetworkCardIndex", _number(raw.get("networkCardIndex") or None, 4)),
            ("DeviceIndex", _number(raw.get("deviceIndex") or None, 4)),
            ("InterfaceType", raw.get("interfaceType") or None),
        ),
    )


def _metadata(raw: Json | None) -> Value:
    if raw is None:
        return None
    return Struct(
        "MetadataOptions",
        (
            ("HTTPEndpoint", raw.get("httpEndpoint")),
            ("HTTPProtocolIPv6", raw.get("httpProtocolIPv6")),
            ("HTTPPutResponseHopLimit", _number(raw.get("httpPutResponseHopLimit"), 8)),
            ("HTTPTokens", raw.get("httpTokens")),
        ),
    )


def _enclaves(raw: Json | None) -> Value:
    """Options that say no are another thing than none."""
    return None if raw is None else Struct("EnclaveOptions", (("Enabled", Int(1, 1) if raw.get("enabled") else None),))


def _tracking(raw: Json | None) -> Value:
    if raw is None:
        return None
    fields = (
        ("TCPEstablishedTimeout", "tcpEstablishedTimeout"),
        ("UDPStreamTimeout", "udpStreamTimeout"),
        ("UDPTimeout", "udpTimeout"),
    )
    return Struct("ConnectionTracking", tuple((name, _number(raw.get(key), 4)) for name, key in fields))

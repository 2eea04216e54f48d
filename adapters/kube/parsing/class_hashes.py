"""The hash that upstream's AWS provider writes for an EC2NodeClass, from the class's JSON (W-115, W-116).

Asked by upkeep, which stamps it on the class, and at launch, which stamps it on the claim. Names and order of the
fields are upstream's. The position of connectionTracking among them is not known from any recording that sets another
field beside it; everything else is. The trap avoided: kubelet counts by the text of its values, not by their meaning.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from core.model.hashing import Int, Struct, Value, hash_value

EC2_NODE_CLASS_HASH_VERSION: Final = "v6"

Json = Mapping[str, Any]

_FAMILIES: Final = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}


def ec2_node_class_hash(spec: Json, ca_bundle: str | None = None) -> str:
    """karpenter.k8s.aws/ec2nodeclass-hash: the spec, and beside it what does not come from the spec's own text."""
    parts: tuple[Value, ...] = (_spec(spec), ami_family(spec), ca_bundle or "", _canonical(spec.get("kubelet")))
    return str(hash_value(parts))


def ami_family(spec: Json) -> str:
    """W-14: the field, else the alias's family, else Custom."""
    if spec.get("amiFamily"):
        return str(spec["amiFamily"])
    aliases = [term["alias"] for term in spec.get("amiSelectorTerms") or () if term.get("alias")]
    return _FAMILIES.get(aliases[0].partition("@")[0], "Custom") if aliases else "Custom"


def _canonical(kubelet: Json | None) -> str:
    """The kubelet part as Go writes JSON: keys of the first level sorted, no white space, HTML's characters escaped."""
    if kubelet is None:
        return "null"
    text = orjson.dumps({key: kubelet[key] for key in sorted(kubelet)}).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _spec(spec: Json) -> Struct:
    return Struct(
        "EC2NodeClassSpec",
        (
            ("PlacementGroupSelector", _group(spec.get("placementGroupSelector"))),
            ("AssociatePublicIPAddress", _flag(spec.get("associatePublicIPAddress"))),
            ("UserData", spec.get("userData")),
            ("Role", spec.get("role") or None),
            ("InstanceProfile", spec.get("instanceProfile")),
            ("Tags", spec.get("tags")),
            ("BlockDeviceMappings", _each(spec.get("blockDeviceMappings"), _mapping)),
            ("NetworkInterfaces", _each(spec.get("networkInterfaces"), _interface)),
            ("ConnectionTracking", _tracking(spec.get("connectionTracking"))),
            ("InstanceStorePolicy", spec.get("instanceStorePolicy")),
            ("DetailedMonitoring", _flag(spec.get("detailedMonitoring"))),
            ("MetadataOptions", _metadata_options(spec.get("metadataOptions"))),
            ("Context", spec.get("context")),
            ("CPUOptions", _cpu_options(spec.get("cpuOptions"))),
        ),
    )


def _each(raw: Any, read: Any) -> Value:
    return None if raw is None else tuple(read(entry) for entry in raw)


def _flag(value: bool | None) -> Value:
    return None if value is None else Int(int(value), 1)


def _number(value: int | None, width: int = 8) -> Value:
    return None if value is None else Int(value, width)


def _group(raw: Json | None) -> Value:
    if raw is None:
        return None
    return Struct("PlacementGroupSelector", (("Name", raw.get("name") or None), ("ID", raw.get("id") or None)))


def _mapping(raw: Json) -> Struct:
    ebs = raw.get("ebs")
    return Struct(
        "BlockDeviceMapping",
        (
            ("DeviceName", raw.get("deviceName")),
            ("EBS", None if ebs is None else _device(ebs)),
            ("RootVolume", Int(1, 1) if raw.get("rootVolume") else None),
        ),
    )


def _device(raw: Json) -> Struct:
    size = raw.get("volumeSize")
    return Struct(
        "BlockDevice",
        (
            ("DeleteOnTermination", _flag(raw.get("deleteOnTermination"))),
            ("Encrypted", _flag(raw.get("encrypted"))),
            ("IOPS", _number(raw.get("iops"))),
            ("KMSKeyID", raw.get("kmsKeyID")),
            ("SnapshotID", raw.get("snapshotID")),
            ("Throughput", _number(raw.get("throughput"))),
            ("VolumeInitializationRate", _number(raw.get("volumeInitializationRate"), 4)),
            ("VolumeSize", None if size is None else canonical_quantity(str(size))),
            ("VolumeType", raw.get("volumeType")),
        ),
    )


def canonical_quantity(text: str) -> str:
    """A whole quantity with the largest suffix that leaves it whole: 20480Mi is 20Gi."""
    body = text.rstrip("KMGTPEik")
    suffix = text[len(body) :]
    for family, base in ((("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1024), (("", "k", "M", "G", "T", "P", "E"), 1000)):
        if suffix in family and suffix and body.isdigit():
            number, step = int(body), family.index(suffix)
            while number and number % base == 0 and step < len(family) - 1:
                number, step = number // base, step + 1
            return f"{number}{family[step]}" if number else "0"
    return text


def _interface(raw: Json) -> Struct:
    return Struct(
        "NetworkInterface",
        (
            ("NetworkCardIndex", Int(raw["networkCardIndex"], 4) if raw.get("networkCardIndex") else None),
            ("DeviceIndex", Int(raw["deviceIndex"], 4) if raw.get("deviceIndex") else None),
            ("InterfaceType", raw.get("interfaceType") or None),
        ),
    )


def _tracking(raw: Json | None) -> Value:
    if raw is None:
        return None
    names = (
        ("TCPEstablishedTimeout", "tcpEstablishedTimeout"),
        ("UDPStreamTimeout", "udpStreamTimeout"),
        ("UDPTimeout", "udpTimeout"),
    )
    return Struct("ConnectionTracking", tuple((field, _number(raw.get(key), 4)) for field, key in names))


def _metadata_options(raw: Json | None) -> Value:
    if raw is None:
        return None
    return Struct(
        "MetadataOptions",
        (
            ("HTTPEndpoint", raw.get("httpEndpoint")),
            ("HTTPProtocolIPv6", raw.get("httpProtocolIPv6")),
            ("HTTPPutResponseHopLimit", _number(raw.get("httpPutResponseHopLimit"))),
            ("HTTPTokens", raw.get("httpTokens")),
        ),
    )


def _cpu_options(raw: Json | None) -> Value:
    return None if raw is None else Struct("CPUOptions", (("NestedVirtualization", raw.get("nestedVirtualization")),))

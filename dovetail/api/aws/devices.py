"""What may an EC2NodeClass say about disks, network interfaces, metadata, processors and enclaves (AWS-17 to AWS-20)?

The pattern of `volumeSize` is Karpenter's, oddities included (a bare "Ti" passes, 18Ti does not), because the same
manifest must be accepted or refused.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.schema.field_types import Bool, Int32, Int64
from dovetail.api.schema.rules import Obeys, Rule
from dovetail.api.schema.structural import ApiModel

VOLUME_SIZE = (
    r"^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi"
    r"|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G"
    r"|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$"
)


class BlockDevice(ApiModel):
    """An EBS volume."""

    rules = (
        Rule(
            message="snapshotID or volumeSize must be defined",
            cel="has(self.snapshotID) || has(self.volumeSize)",
            holds=lambda device: device.snapshot_id is not None or device.volume_size is not None,
        ),
        Rule(
            message="snapshotID must be set when volumeInitializationRate is set",
            cel="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
            holds=lambda device: device.volume_initialization_rate is None or bool(device.snapshot_id),
        ),
    )

    delete_on_termination: Bool | None = None
    """Whether the volume goes with the instance."""
    encrypted: Bool | None = None
    """Whether the volume is encrypted."""
    iops: Int64 | None = None
    """Operations per second, for io1, io2 and gp3."""
    kms_key_id: str | None = Field(default=None, alias="kmsKeyID")
    """The key that the volume is encrypted with."""
    snapshot_id: str | None = Field(default=None, alias="snapshotID")
    """The snapshot that the volume is made from."""
    throughput: Int64 | None = None
    """MiB per second, for gp3."""
    volume_initialization_rate: Annotated[Int32, Field(ge=100, le=300)] | None = None
    """MiB per second at which the snapshot is copied; needs snapshotID."""
    volume_size: Annotated[str, Field(pattern=VOLUME_SIZE)] | None = None
    """The volume's size in Gi, G, Ti or T."""
    volume_type: Literal["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"] | None = None
    """The volume's type."""


class BlockDeviceMapping(ApiModel):
    """A disk of every instance."""

    device_name: str | None = None
    """The device's name, for example /dev/xvda."""
    ebs: BlockDevice | None = None
    """The volume."""
    root_volume: Bool | None = None
    """Whether the kubelet's directory lies on this disk."""


BlockDeviceMappings = Annotated[
    tuple[BlockDeviceMapping, ...],
    Field(max_length=50),
    Obeys(
        Rule(
            message="must have only one blockDeviceMappings with rootVolume",
            cel="self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",
            holds=lambda mappings: sum(1 for mapping in mappings if mapping.root_volume) <= 1,
        )
    ),
]


class MetadataOptions(ApiModel):
    """How instances reach their metadata service."""

    http_endpoint: Literal["enabled", "disabled"] = "enabled"
    """Whether the service answers at all."""
    http_protocol_ipv6: Annotated[Literal["enabled", "disabled"], Field(alias="httpProtocolIPv6")] = "disabled"
    """Whether it answers over IPv6."""
    http_put_response_hop_limit: Annotated[Int64, Field(ge=1, le=64)] = 1
    """How many network hops its answers may travel."""
    http_tokens: Literal["required", "optional"] = "required"
    """Whether requests must carry a session token."""


class NetworkInterface(ApiModel):
    """A network interface of every instance."""

    network_card_index: Annotated[Int32, Field(ge=0)]
    """The network card."""
    device_index: Annotated[Int32, Field(ge=0)]
    """The device on the card."""
    interface_type: Literal["interface", "efa-only"]
    """An ordinary interface or one for the Elastic Fabric Adapter only."""


def _has_primary(interfaces: tuple[NetworkInterface, ...]) -> bool:
    return not interfaces or any(
        (interface.network_card_index, interface.device_index, interface.interface_type) == (0, 0, "interface")
        for interface in interfaces
    )


def _no_clash(interfaces: tuple[NetworkInterface, ...]) -> bool:
    places = [(interface.network_card_index, interface.device_index) for interface in interfaces]
    fabric = [interface.network_card_index for interface in interfaces if interface.interface_type == "efa-only"]
    return len(set(places)) == len(places) and len(set(fabric)) == len(fabric)


NetworkInterfaces = Annotated[
    tuple[NetworkInterface, ...],
    Field(max_length=150),
    Obeys(
        Rule(
            message="networkInterfaces must include a primary interface with interfaceType='interface'",
            cel="self.size() == 0"
            " || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && x.interfaceType == 'interface')",
            holds=_has_primary,
        ),
        Rule(
            message="networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs,"
            " and can have at most one efa device per network card",
            cel="self.all(x, self.exists_one(y, y.networkCardIndex == x.networkCardIndex"
            " && y.deviceIndex == x.deviceIndex) && (x.interfaceType != 'efa-only'"
            " || self.exists_one(y, y.networkCardIndex == x.networkCardIndex && y.interfaceType == 'efa-only')))",
            holds=_no_clash,
        ),
    ),
]


class ConnectionTracking(ApiModel):
    """How long the network remembers idle connections, in seconds."""

    rules = (
        Rule(
            message="at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
            cel="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
            holds=lambda tracking: bool(tracking.model_dump(exclude_none=True)),
        ),
    )

    tcp_established_timeout: Annotated[Int32, Field(ge=60, le=432000)] | None = None
    """For established TCP connections."""
    udp_stream_timeout: Annotated[Int32, Field(ge=60, le=180)] | None = None
    """For UDP flows with more than one answer."""
    udp_timeout: Annotated[Int32, Field(ge=30, le=60)] | None = None
    """For UDP flows in one direction or with a single answer."""


class CpuOptions(ApiModel):
    """How instances present their processors."""

    nested_virtualization: Literal["enabled", "disabled"] | None = None
    """Whether instances may run virtual machines of their own."""


class EnclaveOptions(ApiModel):
    """Whether instances may run Nitro Enclaves."""

    enabled: Bool
    """Whether they may; then only types that support Nitro Enclaves are launched."""

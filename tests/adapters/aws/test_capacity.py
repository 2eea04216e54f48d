"""Sizes of instance types by upstream's formulas: the numbers of AWS-62, and what a class changes about them."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.adapters.aws.instance_types.capacity import Sizes, sizes_of, threshold
from dovetail.adapters.aws.instance_types.observed_memory import ObservedMemory
from dovetail.adapters.aws.instance_types.type_facts import read_type
from dovetail.adapters.aws.node_class.node_class import Image, NodeClass, read_class
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.values.resources import NANO
from testbed.cloud.state.catalogue import read_types
from worlds.aws import a_claim_of_ec2, class_spec

MIB = 2**20
TABLE = {
    # type: memory capacity Mi, pods, allocatable millicores, allocatable Mi
    "t4g.small": (1835, 11, 1930, 1359),
    "m5.large": (7577, 29, 1930, 6903),
    "c6g.large": (3729, 29, 1930, 3055),
    "m5.xlarge": (15155, 58, 3920, 14162),
    "c7g.4xlarge": (30251, 234, 15890, 27322),
    "m5.metal": (363724, 737, 95690, 355262),
    "p5.48xlarge": (1939865, 100, 191450, 1938410),
    "g5.12xlarge": (181862, 737, 47810, 173400),
}


def a_class(**change: Any) -> NodeClass:
    found = read_class({"metadata": {"name": "default", "uid": "u", "generation": 1}, "spec": class_spec(**change)})
    assert isinstance(found, NodeClass), found
    return found


def sizes(name: str, settings: AwsSettings | None = None, **change: Any) -> Sizes:
    facts = read_type(read_types([name])[name])
    return sizes_of(facts, a_class(**change), settings or AwsSettings(cluster="c"))


def figures(found: Sizes) -> tuple[int, int, int, int]:
    left = {name: found.capacity[name] - found.overhead[name] for name in ("cpu", "memory")}
    return found.capacity["memory"] // MIB, found.pods, left["cpu"] * 1000 // NANO, left["memory"] // MIB


@pytest.mark.parametrize("name", TABLE)
def test_a_type_has_upstream_s_capacity_and_leaves_upstream_s_amounts_to_pods(name: str) -> None:
    """AWS-54, AWS-56, AWS-57, AWS-60 to AWS-62."""
    assert figures(sizes(name)) == TABLE[name]


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        # maxPods changes the pods, not what AL2023 keeps for the kubelet
        ("m5.large", {"kubelet": {"maxPods": 110}}, (7577, 110, 1930, 6903)),
        # Bottlerocket keeps by the pods that there are: 11 * 110 + 255 = 1465, and 100 for evictions
        (
            "m5.large",
            {"kubelet": {"maxPods": 110}, "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
            (7577, 110, 1930, 6012),
        ),
        ("m5.large", {"kubelet": {"podsPerCore": 4}}, (7577, 8, 1930, 6903)),
        # Bottlerocket does not know podsPerCore
        (
            "m5.large",
            {"kubelet": {"podsPerCore": 4}, "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]},
            (7577, 29, 1930, 6903),
        ),
        (
            "m5.large",
            {"kubelet": {"kubeReserved": {"cpu": "1"}, "systemReserved": {"memory": "103Mi"}}},
            (7577, 29, 1000, 6800),
        ),
        ("m5.large", {"kubelet": {"evictionHard": {"memory.available": "10%"}}}, (7577, 29, 1930, 6245)),
        ("m5.large", {"kubelet": {"evictionHard": {"memory.available": "100%"}}}, (7577, 29, 1930, 7003)),
        # evictionSoft never counts
        (
            "m5.large",
            {
                "kubelet": {
                    "evictionSoft": {"memory.available": "1Gi"},
                    "evictionSoftGracePeriod": {"memory.available": "1m"},
                }
            },
            (7577, 29, 1930, 6903),
        ),
        # Windows: 110 pods, not by interfaces
        ("m5.large", {"amiSelectorTerms": [{"alias": "windows2022@latest"}]}, (7577, 110, 1930, 6012)),
    ],
)
def test_what_a_class_says_of_its_kubelet_changes_what_is_left(
    name: str, change: dict[str, Any], expected: tuple[int, int, int, int]
) -> None:
    """AWS-56, AWS-60, AWS-61."""
    assert figures(sizes(name, **change)) == expected


def test_interfaces_that_are_kept_for_others_take_pods_away_but_not_what_the_kubelet_keeps() -> None:
    """AWS-57, AWS-60: RESERVED_ENIS."""
    assert figures(sizes("m5.large", AwsSettings(cluster="c", reserved_enis=1))) == (7577, 20, 1930, 6903)


def test_interfaces_of_the_first_card_that_carry_efa_alone_take_pods_away() -> None:
    """AWS-57: 15 interfaces of 50 addresses on p4d's first card, one of them for EFA; another card's takes none."""

    def fabric(card: int, device: int) -> dict[str, Any]:
        return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": "efa-only"}

    plain = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    pods = [
        sizes("p4d.24xlarge", networkInterfaces=interfaces).pods
        for interfaces in ([plain], [plain, fabric(0, 1)], [plain, fabric(1, 1)])
    ]

    assert pods == [15 * 49 + 2, 14 * 49 + 2, 15 * 49 + 2]


def test_devices_are_counted_by_their_maker_and_windows_counts_addresses() -> None:
    """AWS-59: EC2 lists no type with AMD's or Habana's devices any more, but the formula knows them."""
    raw = read_types(["g5.xlarge"])["g5.xlarge"]

    def devices(maker: str) -> dict[str, int]:
        gpus = [{"Manufacturer": maker, "Name": "x", "Count": 4, "MemoryInfo": {"SizeInMiB": 1024}}]
        facts = read_type({**raw, "GpuInfo": {"Gpus": gpus}})
        found = sizes_of(facts, a_class(), AwsSettings(cluster="c")).capacity
        return {name: amount for name, amount in found.items() if name.endswith(("/gpu", "/gaudi"))}

    windows = sizes("m5.large", amiSelectorTerms=[{"alias": "windows2022@latest"}]).capacity
    assert devices("AMD") == {"amd.com/gpu": 4}
    assert devices("NVIDIA") == {"nvidia.com/gpu": 4}
    assert devices("Habana") == {"habana.ai/gaudi": 4}
    assert windows["vpc.amazonaws.com/PrivateIPv4Address"] == 9
    assert "vpc.amazonaws.com/PrivateIPv4Address" not in sizes("m5.large").capacity


@pytest.mark.parametrize(
    ("hard", "kept"),
    [
        ({}, 2**30 + 2 * 2**30),  # 1 GiB for the kubelet, a tenth of 20 GiB
        ({"nodefs.available": "15%"}, 2**30 + 3 * 2**30),
        ({"nodefs.available": "5Gi"}, 2**30 + 5 * 2**30),
        ({"nodefs.available": "100%"}, 2**30),
    ],
)
def test_evictions_keep_a_tenth_of_the_storage_or_what_the_class_says(hard: dict[str, str], kept: int) -> None:
    """AWS-60, AWS-61."""
    found = sizes("m5.large", kubelet={"evictionHard": hard} if hard else None)

    assert found.overhead["ephemeral-storage"] == kept


@pytest.mark.parametrize(
    ("text", "total", "kept"),
    [("25%", 498 * MIB, 130547713), ("25%", 7 * 2**30, 1879048193), ("10%", 7 * 2**30, 751619277), ("100%", 9, 0)],
)
def test_a_share_is_worked_out_in_floats_as_upstream_does(text: str, total: int, kept: int) -> None:
    """AWS-61: of one percent first, and a byte more where that is not exact."""
    assert threshold(text, total) == kept


def test_the_share_of_memory_that_the_hypervisor_keeps_is_a_setting() -> None:
    """AWS-54: VM_MEMORY_OVERHEAD_PERCENT."""
    assert sizes("m5.large", AwsSettings(cluster="c", memory_overhead=0.0)).capacity["memory"] == 8192 * MIB


def test_memory_that_nodes_have_shown_replaces_the_capacity_but_not_the_share_for_evictions() -> None:
    """AWS-55, AWS-61."""
    facts = read_type(read_types(["m5.large"])["m5.large"])
    node_class = a_class(kubelet={"evictionHard": {"memory.available": "10%"}})

    found = sizes_of(facts, node_class, AwsSettings(cluster="c"), observed_memory=7600 * MIB)

    assert found.capacity["memory"] == 7600 * MIB
    assert found.overhead["memory"] == 574 * MIB + -(-7577 * MIB // 10)


@pytest.mark.parametrize(
    ("change", "storage"),
    [
        ({}, 20 * 2**30),
        ({"instanceStorePolicy": "RAID0"}, 75 * 10**9),
        ({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi"}}]}, 50 * 2**30),
        ({"blockDeviceMappings": [{"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "50Gi"}}]}, 20 * 2**30),
        (
            {
                "blockDeviceMappings": [
                    {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "5Gi"}},
                    {"deviceName": "/dev/xvdf", "rootVolume": True, "ebs": {"volumeSize": "70Gi"}},
                ]
            },
            70 * 2**30,
        ),
        ({"amiSelectorTerms": [{"alias": "windows2022@latest"}]}, 50 * 2**30),
        # the last one of a custom image, whatever its name
        (
            {
                "amiFamily": "Custom",
                "amiSelectorTerms": [{"id": "ami-0a12023a"}],
                "blockDeviceMappings": [
                    {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "5Gi"}},
                    {"deviceName": "/dev/sdz", "ebs": {"volumeSize": "60Gi"}},
                ],
            },
            60 * 2**30,
        ),
    ],
)
def test_storage_is_that_of_the_volume_that_holds_the_pods(change: dict[str, Any], storage: int) -> None:
    """AWS-58."""
    assert sizes("m5d.large", **change).capacity["ephemeral-storage"] == storage


class Cluster:
    """Claims with their nodes, and the time."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.standing: list[tuple[NodeClaim, Node]] = []
        self.memory = ObservedMemory(lambda: tuple(self.standing), lambda: self.now)

    def shows(self, mib: int, image: str = "ami-1", *, registered: bool = True) -> None:
        condition = Condition(type="Registered", status="True" if registered else "Unknown")
        claim = replace(
            a_claim_of_ec2(image_id=image, conditions=(condition,)),
            labels={"node.kubernetes.io/instance-type": "m5.large"},
        )
        self.standing = [(claim, Node(name="n", labels={}, capacity={"memory": mib * MIB}, allocatable={}))]
        self.now += 10.0

    def seen(self, *images: str) -> dict[str, int]:
        found = a_class()
        shown = tuple(Image(id=each, name="", requirements={}) for each in images or ("ami-1",))
        return {name: least // MIB for name, least in self.memory.of_class(replace(found, images=shown)).items()}


def test_the_least_memory_that_registered_nodes_have_shown_is_kept_for_sixty_days() -> None:
    """AWS-55."""
    cluster = Cluster()
    for mib in (7600, 7590, 7610):
        cluster.shows(mib)
        cluster.seen()
    cluster.standing = []

    soon = cluster.seen()
    cluster.now += 59 * 24 * 3600
    late = cluster.seen()
    cluster.now += 2 * 24 * 3600

    assert (soon, late, cluster.seen()) == ({"m5.large": 7590}, {"m5.large": 7590}, {})


def test_what_a_node_shows_before_it_is_registered_or_with_another_image_says_nothing() -> None:
    """AWS-55."""
    cluster = Cluster()
    cluster.shows(7600, registered=False)
    before = cluster.seen()
    cluster.shows(7600, image="ami-old")

    assert (before, cluster.seen(), cluster.seen("ami-1", "ami-old")) == ({}, {}, {"m5.large": 7600})

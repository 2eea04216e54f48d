"""What is accepted and refused of an EC2NodeClass's disks, network and plain fields (AWS-8, AWS-17 to AWS-24)."""

from tests.api.case import MATCH, REQUIRED, At, one, vary
from tests.api.manifests import a_node_class

AT_LEAST_ONE = "expected at least one, got none, "
DISKS = "spec.blockDeviceMappings"
INTERFACES, TRACKING, OPTIONS = "spec.networkInterfaces", "spec.connectionTracking", "spec.metadataOptions"

FULL_DISK = {
    "deviceName": "/dev/xvda",
    "rootVolume": True,
    "ebs": {
        "deleteOnTermination": True,
        "encrypted": True,
        "iops": 3000,
        "kmsKeyID": "alias/a",
        "snapshotID": "snap-1",
        "throughput": 125,
        "volumeInitializationRate": 100,
        "volumeSize": "100Gi",
        "volumeType": "gp3",
    },
}
DEVICES = [
    *vary(
        "AWS-17",
        a_node_class,
        DISKS,
        "",
        {"a disk with everything": [FULL_DISK], "50 disks": [{"deviceName": "a"}] * 50},
    ),
    *vary(
        "AWS-17",
        a_node_class,
        DISKS,
        "",
        {
            f"size {size}": one(ebs={"volumeSize": size})
            for size in ("1Gi", "59000Gi", "64000G", "1Ti", "58Ti", "64T", "Ti", "T")
        },
    ),
    *vary(
        "AWS-17",
        a_node_class,
        DISKS,
        At(f"{DISKS}[0].ebs.volumeSize", MATCH),
        {
            f"size {size}": one(ebs={"volumeSize": size})
            for size in ("59001Gi", "64001G", "59Ti", "65T", "18Ti", "49Ti", "0Gi", "100", "100Mi", "1.5Ti")
        },
    ),
    *vary("AWS-17", a_node_class, DISKS, "at most 50 items", {"51 disks": [{"deviceName": "a"}] * 51}),
    *vary(
        "AWS-17",
        a_node_class,
        DISKS,
        "must have only one blockDeviceMappings with rootVolume",
        {"two roots": [{"rootVolume": True}, {"rootVolume": True}]},
    ),
    *vary("AWS-17", a_node_class, DISKS, "", {"one root of two": [{"rootVolume": True}, {"rootVolume": False}]}),
    *vary(
        "AWS-17",
        a_node_class,
        DISKS,
        At(f"{DISKS}[0].ebs", "snapshotID or volumeSize must be defined"),
        {"a volume of unknown size": one(ebs={"volumeType": "gp3"})},
    ),
    *vary(
        "AWS-17",
        a_node_class,
        DISKS,
        At(f"{DISKS}[0].ebs", "snapshotID must be set when volumeInitializationRate is set"),
        {"a rate without snapshot": one(ebs={"volumeSize": "1Gi", "volumeInitializationRate": 100})},
    ),
    *(
        case
        for rate, refusal in ((99, "greater than or equal to 100"), (301, "less than or equal to 300"))
        for case in vary(
            "AWS-17",
            a_node_class,
            DISKS,
            At(f"{DISKS}[0].ebs.volumeInitializationRate", refusal),
            {f"rate {rate}": one(ebs={"snapshotID": "snap-1", "volumeInitializationRate": rate})},
        )
    ),
    *vary(
        "AWS-17",
        a_node_class,
        DISKS,
        At(f"{DISKS}[0].ebs.volumeType", "gp3"),
        {"type gp9": one(ebs={"volumeSize": "1Gi", "volumeType": "gp9"})},
    ),
]


def _interface(card: int, device: int, kind: str = "efa-only") -> dict[str, object]:
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind}


PRIMARY = _interface(0, 0, "interface")
NO_PRIMARY = "networkInterfaces must include a primary interface with interfaceType='interface'"
CLASH = "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs"
NETWORK = [
    *vary("AWS-18", a_node_class, OPTIONS, "", {"no options": {}, "64 hops": {"httpPutResponseHopLimit": 64}}),
    *vary("AWS-18", a_node_class, OPTIONS, "", {"all else": {"httpEndpoint": "disabled", "httpTokens": "optional"}}),
    *vary(
        "AWS-18",
        a_node_class,
        f"{OPTIONS}.httpPutResponseHopLimit",
        "less than or equal to 64",
        {"65 hops": 65},
    ),
    *vary("AWS-18", a_node_class, f"{OPTIONS}.httpPutResponseHopLimit", "greater than or equal to 1", {"0 hops": 0}),
    *vary("AWS-18", a_node_class, f"{OPTIONS}.httpTokens", "required", {"tokens maybe": "maybe"}),
    *vary("AWS-18", a_node_class, f"{OPTIONS}.httpEndpoint", "enabled", {"endpoint maybe": "maybe"}),
    *vary("AWS-18", a_node_class, f"{OPTIONS}.httpProtocolIPv6", "enabled", {"IPv6 maybe": "maybe"}),
    *vary(
        "AWS-19",
        a_node_class,
        INTERFACES,
        "",
        {
            "no interfaces": [],
            "one interface": [PRIMARY],
            "one efa-only per card": [PRIMARY, _interface(0, 1), _interface(1, 0)],
        },
    ),
    *vary(
        "AWS-19",
        a_node_class,
        INTERFACES,
        NO_PRIMARY,
        {"efa-only first": [_interface(0, 0)], "device 1 first": [_interface(0, 1, "interface")]},
    ),
    *vary(
        "AWS-19",
        a_node_class,
        INTERFACES,
        CLASH,
        {"one place twice": [PRIMARY, PRIMARY], "two efa-only": [PRIMARY, _interface(0, 1), _interface(0, 2)]},
    ),
    *vary(
        "AWS-19",
        a_node_class,
        INTERFACES,
        At(f"{INTERFACES}[1].interfaceType", "efa-only"),
        {"type efa": [PRIMARY, _interface(0, 1, "efa")]},
    ),
    *vary(
        "AWS-19",
        a_node_class,
        INTERFACES,
        "at most 150 items",
        {"151 interfaces": [PRIMARY, *(_interface(0, index, "interface") for index in range(1, 151))]},
    ),
    *vary("AWS-19", a_node_class, INTERFACES, At(f"{INTERFACES}[0].networkCardIndex", REQUIRED), {"no card": [{}]}),
    *vary(
        "AWS-20",
        a_node_class,
        TRACKING,
        "",
        {
            "the shortest": {"tcpEstablishedTimeout": 60, "udpStreamTimeout": 60, "udpTimeout": 30},
            "the longest": {"tcpEstablishedTimeout": 432000, "udpStreamTimeout": 180, "udpTimeout": 60},
            "one of them": {"udpTimeout": 45},
        },
    ),
    *vary("AWS-20", a_node_class, TRACKING, "at least one of tcpEstablishedTimeout", {"no timeout": {}}),
    *(
        case
        for name, least, most in (
            ("tcpEstablishedTimeout", 60, 432000),
            ("udpStreamTimeout", 60, 180),
            ("udpTimeout", 30, 60),
        )
        for value, refusal in (
            (least - 1, f"greater than or equal to {least}"),
            (most + 1, f"less than or equal to {most}"),
        )
        for case in vary("AWS-20", a_node_class, f"{TRACKING}.{name}", refusal, {f"{name} {value}": value})
    ),
]

PLAIN_FIELDS = {
    "associatePublicIPAddress": True,
    "detailedMonitoring": True,
    "userData": "#!/bin/bash",
    "context": "a",
    "ipPrefixCount": 0,
    "cpuOptions": {"nestedVirtualization": "enabled"},
    "enclaveOptions": {"enabled": False},
    "instanceStorePolicy": "RAID0",
}
REST = [
    *(
        case
        for name, value in PLAIN_FIELDS.items()
        for case in vary("AWS-21", a_node_class, f"spec.{name}", "", {f"{name}": value})
    ),
    *vary("AWS-20", a_node_class, "spec.instanceStorePolicy", "RAID0", {"policy RAID1": "RAID1"}),
    *vary("AWS-20", a_node_class, "spec.ipPrefixCount", "greater than or equal to 0", {"-1 prefixes": -1}),
    *vary("AWS-20", a_node_class, "spec.cpuOptions.nestedVirtualization", "disabled", {"nested maybe": "maybe"}),
    *vary("AWS-20", a_node_class, "spec.enclaveOptions", "", {"enclaves": {"enabled": True}}),
    *vary("AWS-20", a_node_class, "spec.enclaveOptions", "Required value", {"enclaves neither on nor off": {}}),
    *vary("AWS-21", a_node_class, "spec.tags", "", {"tags": {"a": "b", "c": ""}, "no tags": {}}),
    *vary("AWS-21", a_node_class, "spec.tags", "empty tag keys aren't supported", {"an empty tag key": {"": "a"}}),
    *(
        case
        for key, named in (
            ("kubernetes.io/cluster/mine", "kubernetes.io/cluster/"),
            ("eks:eks-cluster-name", "eks:eks-cluster-name"),
            ("karpenter.sh/nodepool", "karpenter.sh/nodepool"),
            ("karpenter.sh/nodeclaim", "karpenter.sh/nodeclaim"),
            ("karpenter.k8s.aws/ec2nodeclass", "karpenter.k8s.aws/ec2nodeclass"),
        )
        for case in vary(
            "AWS-8",
            a_node_class,
            "spec.tags",
            f"tag contains a restricted tag matching {named}",
            {f"tag {key}": {key: "a"}},
        )
    ),
    *vary(
        "AWS-23",
        a_node_class,
        "spec.kubelet",
        "",
        {
            "any kubelet field": {"maxPods": "max_pods - 1", "anything": {"at": ["all"]}},
            "an expression": {"kubeReserved": {"cpu": "vcpus * 33"}},
        },
    ),
]

DEVICE_CASES = [*DEVICES, *NETWORK, *REST]

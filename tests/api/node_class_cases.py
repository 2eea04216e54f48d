"""What Karpenter's API accepts and refuses of an EC2NodeClass (rules W-8 to W-24); see case.py."""

from tests.api.case import MATCH, REQUIRED, Case, one, vary
from tests.api.manifests import REMOVED, Manifest, a_node_class, changed

AT_LEAST_ONE = "expected at least one, got none, "
EMPTY_TAG = "empty tag keys or values aren't supported"
SUBNETS, GROUPS, AMIS = "spec.subnetSelectorTerms", "spec.securityGroupSelectorTerms", "spec.amiSelectorTerms"
RESERVATIONS, DISKS = "spec.capacityReservationSelectorTerms", "spec.blockDeviceMappings"
INTERFACES, TRACKING, OPTIONS = "spec.networkInterfaces", "spec.connectionTracking", "spec.metadataOptions"
GROUP = "spec.placementGroupSelector"
MANY_TAGS = {f"k{index}": "v" for index in range(21)}


def _of_family() -> Manifest:
    """A class without alias: images by id, the family said."""
    return changed(changed(a_node_class(), "spec.amiFamily", "AL2023"), AMIS, one(id="ami-1"))


def _with_profile() -> Manifest:
    return changed(changed(a_node_class(), "spec.role", REMOVED), "spec.instanceProfile", "profile")


ONE_IDENTITY = "must specify exactly one of ['role', 'instanceProfile']"
IDENTITY = [
    Case(cites="W-9", what="with nothing but what is required", manifest=a_node_class()),
    Case(cites="W-9", what="with a profile instead of a role", manifest=_with_profile()),
    *vary("W-9", a_node_class, "spec.role", ONE_IDENTITY, {"neither role nor profile": REMOVED}, "spec"),
    *vary("W-9", a_node_class, "spec.instanceProfile", ONE_IDENTITY, {"role and profile": "profile"}, "spec"),
    *vary("W-9", a_node_class, "spec.role", "role cannot be empty", {"an empty role": ""}),
    *vary("W-9", _with_profile, "spec.instanceProfile", "instanceProfile cannot be empty", {"an empty profile": ""}),
]

NO_OTHER_GROUP_FIELD = (
    "is mutually exclusive, cannot be set with a combination of other fields in a security group selector term"
)
SELECTORS = [
    *(
        case
        for path in (SUBNETS, GROUPS, AMIS)
        for case in vary("W-9", a_node_class, path, REQUIRED, {f"without {path}": REMOVED})
    ),
    *vary("W-10", a_node_class, SUBNETS, "", {"a subnet id": one(id="subnet-12"), "any tag": one(tags={"a": "*"})}),
    *vary("W-10", a_node_class, SUBNETS, "", {"30 terms": [{"id": "subnet-1"}] * 30}),
    *vary("W-10", a_node_class, SUBNETS, "at most 30 items", {"31 subnet terms": [{"id": "subnet-1"}] * 31}),
    *vary("W-10", a_node_class, SUBNETS, "subnetSelectorTerms cannot be empty", {"no subnet terms": []}),
    *vary("W-10", a_node_class, SUBNETS, AT_LEAST_ONE + "['tags', 'id']", {"an empty subnet term": [{}]}),
    *vary(
        "W-10",
        a_node_class,
        SUBNETS,
        "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term",
        {"subnet id and tags": one(id="subnet-1", tags={"a": "b"})},
    ),
    *vary("W-10", a_node_class, SUBNETS, MATCH, {"a wrong subnet id": one(id="net-1")}, f"{SUBNETS}[0].id"),
    *vary(
        "W-10",
        a_node_class,
        SUBNETS,
        EMPTY_TAG,
        {"an empty tag key": one(tags={"": "a"}), "an empty tag value": one(tags={"a": ""})},
        f"{SUBNETS}[0].tags",
    ),
    *vary("W-10", a_node_class, SUBNETS, "at most 20", {"21 tags": one(tags=MANY_TAGS)}, f"{SUBNETS}[0].tags"),
    *vary("W-11", a_node_class, GROUPS, "", {"a group id": one(id="sg-12"), "a group name": one(name="nodes")}),
    *vary("W-11", a_node_class, GROUPS, "securityGroupSelectorTerms cannot be empty", {"no group terms": []}),
    *vary("W-11", a_node_class, GROUPS, AT_LEAST_ONE + "['tags', 'id', 'name']", {"an empty group term": [{}]}),
    *vary(
        "W-11",
        a_node_class,
        GROUPS,
        f"'id' {NO_OTHER_GROUP_FIELD}",
        {"group id and tags": one(id="sg-1", tags={"a": "b"}), "group id and name": one(id="sg-1", name="nodes")},
    ),
    *vary(
        "W-11",
        a_node_class,
        GROUPS,
        f"'name' {NO_OTHER_GROUP_FIELD}",
        {"group name and tags": one(name="nodes", tags={"a": "b"})},
    ),
    *vary("W-11", a_node_class, GROUPS, MATCH, {"a wrong group id": one(id="group-1")}, f"{GROUPS}[0].id"),
]

NO_OTHER_AMI_FIELD = "is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms"
AMI_TERMS = [
    *vary(
        "W-12",
        _of_family,
        AMIS,
        "",
        {
            "an image name": one(name="x-*"),
            "an image name and its owner": one(name="x-*", owner="self"),
            "image tags": one(tags={"a": "b"}),
            "an SSM parameter": one(ssmParameter="/x/y"),
            "an id and an SSM parameter": one(id="ami-1", ssmParameter="/x/y"),
            "two terms": [{"id": "ami-1"}, {"id": "ami-2"}],
        },
    ),
    *vary("W-12", _of_family, AMIS, "at least 1 item", {"no image terms": []}),
    *vary(
        "W-12",
        _of_family,
        AMIS,
        AT_LEAST_ONE + "['tags', 'id', 'name', 'alias', 'ssmParameter']",
        {"an empty image term": [{}], "an owner alone": one(owner="self")},
    ),
    *vary(
        "W-12",
        _of_family,
        AMIS,
        f"'id' {NO_OTHER_AMI_FIELD}",
        {
            "image id and tags": one(id="ami-1", tags={"a": "b"}),
            "image id and name": one(id="ami-1", name="x"),
            "image id and owner": one(id="ami-1", owner="self"),
        },
    ),
    *vary(
        "W-12",
        a_node_class,
        AMIS,
        f"'alias' {NO_OTHER_AMI_FIELD}",
        {
            "alias and id": one(alias="al2023@latest", id="ami-1"),
            "alias and tags": one(alias="al2023@latest", tags={"a": "b"}),
            "alias and name": one(alias="al2023@latest", name="x"),
            "alias and owner": one(alias="al2023@latest", owner="self"),
        },
    ),
    *vary(
        "W-12",
        a_node_class,
        AMIS,
        "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
        {"alias and another term": [{"alias": "al2023@latest"}, {"id": "ami-1"}]},
    ),
    *vary("W-12", _of_family, AMIS, MATCH, {"a wrong image id": one(id="image-1")}, f"{AMIS}[0].id"),
    *vary(
        "W-13",
        a_node_class,
        AMIS,
        "",
        {
            alias: one(alias=alias)
            for alias in ("al2@latest", "al2023@v20240625", "bottlerocket@v1.10.0", "windows2025@latest")
        },
    ),
    *vary(
        "W-13",
        a_node_class,
        AMIS,
        "'alias' is improperly formatted, must match the format 'family@version'",
        {f"alias {alias}": one(alias=alias) for alias in ("al2023", "al2023@", "@latest", "al-2023@latest")},
        f"{AMIS}[0].alias",
    ),
    *vary(
        "W-13",
        a_node_class,
        AMIS,
        "family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket'",
        {f"alias {alias}": one(alias=alias) for alias in ("ubuntu@latest", "AL2023@latest")},
        f"{AMIS}[0].alias",
    ),
    *vary(
        "W-13",
        a_node_class,
        AMIS,
        "windows families may only specify version 'latest'",
        {"a pinned Windows": one(alias="windows2022@v1.0.0")},
        f"{AMIS}[0].alias",
    ),
    *vary("W-13", a_node_class, AMIS, "30", {"a long alias": one(alias="al2023@" + "v" * 24)}, f"{AMIS}[0].alias"),
    *vary("W-14", a_node_class, "spec.amiFamily", "", {"the alias's family": "AL2023", "family Custom": "Custom"}),
    *vary(
        "W-14",
        a_node_class,
        "spec.amiFamily",
        "if set, amiFamily must be 'AL2023' or 'Custom' when using an AL2023 alias",
        {"another family than the alias's": "Bottlerocket"},
        "spec",
    ),
    *vary(
        "W-14",
        lambda: changed(a_node_class(), "spec.amiFamily", "AL2023"),
        AMIS,
        "if set, amiFamily must be 'Bottlerocket' or 'Custom' when using a Bottlerocket alias",
        {"another alias than the family's": one(alias="bottlerocket@latest")},
        "spec",
    ),
    *vary("W-14", _of_family, "spec.amiFamily", "Windows2025", {"family Ubuntu": "Ubuntu"}),
    *vary(
        "W-14",
        _of_family,
        "spec.amiFamily",
        "must specify amiFamily if amiSelectorTerms does not contain an alias",
        {"neither alias nor family": REMOVED},
        "spec",
    ),
]

PLACEMENT = [
    *vary(
        "W-15",
        a_node_class,
        RESERVATIONS,
        "",
        {
            "a reservation id": one(id="cr-1"),
            "reservation tags and owner": one(tags={"a": "b"}, ownerID="123456789012"),
            "match criteria": one(instanceMatchCriteria="open"),
            "no reservations": [],
        },
    ),
    *vary(
        "W-15",
        a_node_class,
        RESERVATIONS,
        AT_LEAST_ONE + "['tags', 'id', 'instanceMatchCriteria']",
        {"a reservation owner alone": one(ownerID="123456789012")},
    ),
    *vary(
        "W-15",
        a_node_class,
        RESERVATIONS,
        "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
        {
            "reservation id and tags": one(id="cr-1", tags={"a": "b"}),
            "reservation id and owner": one(id="cr-1", ownerID="123456789012"),
            "reservation id and criteria": one(id="cr-1", instanceMatchCriteria="open"),
        },
    ),
    *vary("W-15", a_node_class, RESERVATIONS, MATCH, {"id xcr-1": one(id="xcr-1")}, f"{RESERVATIONS}[0].id"),
    *vary(
        "W-15",
        a_node_class,
        RESERVATIONS,
        MATCH,
        {"an owner of 11 digits": one(tags={"a": "b"}, ownerID="12345678901")},
        f"{RESERVATIONS}[0].ownerID",
    ),
    *vary("W-16", a_node_class, GROUP, "", {"a group's name": {"name": "a"}, "a group's id": {"id": "pg-1"}}),
    *vary("W-16", a_node_class, GROUP, AT_LEAST_ONE + "['name', 'id']", {"an empty selector": {}}),
    *vary("W-16", a_node_class, GROUP, "'name' and 'id' are mutually exclusive", {"both": {"name": "a", "id": "pg-1"}}),
    *vary("W-16", a_node_class, GROUP, "at least 1", {"an empty name": {"name": ""}}, f"{GROUP}.name"),
    *vary("W-16", a_node_class, GROUP, MATCH, {"id group-1": {"id": "group-1"}}, f"{GROUP}.id"),
]

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
        "W-17", a_node_class, DISKS, "", {"a disk with everything": [FULL_DISK], "50 disks": [{"deviceName": "a"}] * 50}
    ),
    *vary(
        "W-17",
        a_node_class,
        DISKS,
        "",
        {
            f"size {size}": one(ebs={"volumeSize": size})
            for size in ("1Gi", "59000Gi", "64000G", "1Ti", "58Ti", "64T", "Ti", "T")
        },
    ),
    *vary(
        "W-17",
        a_node_class,
        DISKS,
        MATCH,
        {
            f"size {size}": one(ebs={"volumeSize": size})
            for size in ("59001Gi", "64001G", "59Ti", "65T", "18Ti", "49Ti", "0Gi", "100", "100Mi", "1.5Ti")
        },
        f"{DISKS}[0].ebs.volumeSize",
    ),
    *vary("W-17", a_node_class, DISKS, "at most 50 items", {"51 disks": [{"deviceName": "a"}] * 51}),
    *vary(
        "W-17",
        a_node_class,
        DISKS,
        "must have only one blockDeviceMappings with rootVolume",
        {"two roots": [{"rootVolume": True}, {"rootVolume": True}]},
    ),
    *vary("W-17", a_node_class, DISKS, "", {"one root of two": [{"rootVolume": True}, {"rootVolume": False}]}),
    *vary(
        "W-17",
        a_node_class,
        DISKS,
        "snapshotID or volumeSize must be defined",
        {"a volume of unknown size": one(ebs={"volumeType": "gp3"})},
        f"{DISKS}[0].ebs",
    ),
    *vary(
        "W-17",
        a_node_class,
        DISKS,
        "snapshotID must be set when volumeInitializationRate is set",
        {"a rate without snapshot": one(ebs={"volumeSize": "1Gi", "volumeInitializationRate": 100})},
        f"{DISKS}[0].ebs",
    ),
    *(
        case
        for rate, refusal in ((99, "greater than or equal to 100"), (301, "less than or equal to 300"))
        for case in vary(
            "W-17",
            a_node_class,
            DISKS,
            refusal,
            {f"rate {rate}": one(ebs={"snapshotID": "snap-1", "volumeInitializationRate": rate})},
            f"{DISKS}[0].ebs.volumeInitializationRate",
        )
    ),
    *vary(
        "W-17",
        a_node_class,
        DISKS,
        "gp3",
        {"type gp9": one(ebs={"volumeSize": "1Gi", "volumeType": "gp9"})},
        f"{DISKS}[0].ebs.volumeType",
    ),
]


def _interface(card: int, device: int, kind: str = "efa-only") -> dict[str, object]:
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind}


PRIMARY = _interface(0, 0, "interface")
NO_PRIMARY = "networkInterfaces must include a primary interface with interfaceType='interface'"
CLASH = "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs"
NETWORK = [
    *vary("W-18", a_node_class, OPTIONS, "", {"no options": {}, "64 hops": {"httpPutResponseHopLimit": 64}}),
    *vary("W-18", a_node_class, OPTIONS, "", {"all else": {"httpEndpoint": "disabled", "httpTokens": "optional"}}),
    *vary(
        "W-18",
        a_node_class,
        f"{OPTIONS}.httpPutResponseHopLimit",
        "less than or equal to 64",
        {"65 hops": 65},
    ),
    *vary("W-18", a_node_class, f"{OPTIONS}.httpPutResponseHopLimit", "greater than or equal to 1", {"0 hops": 0}),
    *vary("W-18", a_node_class, f"{OPTIONS}.httpTokens", "required", {"tokens maybe": "maybe"}),
    *vary("W-18", a_node_class, f"{OPTIONS}.httpEndpoint", "enabled", {"endpoint maybe": "maybe"}),
    *vary("W-18", a_node_class, f"{OPTIONS}.httpProtocolIPv6", "enabled", {"IPv6 maybe": "maybe"}),
    *vary(
        "W-19",
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
        "W-19",
        a_node_class,
        INTERFACES,
        NO_PRIMARY,
        {"efa-only first": [_interface(0, 0)], "device 1 first": [_interface(0, 1, "interface")]},
    ),
    *vary(
        "W-19",
        a_node_class,
        INTERFACES,
        CLASH,
        {"one place twice": [PRIMARY, PRIMARY], "two efa-only": [PRIMARY, _interface(0, 1), _interface(0, 2)]},
    ),
    *vary(
        "W-19",
        a_node_class,
        INTERFACES,
        "efa-only",
        {"type efa": [PRIMARY, _interface(0, 1, "efa")]},
        f"{INTERFACES}[1].interfaceType",
    ),
    *vary(
        "W-19",
        a_node_class,
        INTERFACES,
        "at most 150 items",
        {"151 interfaces": [PRIMARY, *(_interface(0, index, "interface") for index in range(1, 151))]},
    ),
    *vary("W-19", a_node_class, INTERFACES, REQUIRED, {"no card": [{}]}, f"{INTERFACES}[0].networkCardIndex"),
    *vary(
        "W-20",
        a_node_class,
        TRACKING,
        "",
        {
            "the shortest": {"tcpEstablishedTimeout": 60, "udpStreamTimeout": 60, "udpTimeout": 30},
            "the longest": {"tcpEstablishedTimeout": 432000, "udpStreamTimeout": 180, "udpTimeout": 60},
            "one of them": {"udpTimeout": 45},
        },
    ),
    *vary("W-20", a_node_class, TRACKING, AT_LEAST_ONE, {"no timeout": {}}),
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
        for case in vary("W-20", a_node_class, f"{TRACKING}.{name}", refusal, {f"{name} {value}": value})
    ),
]

PLAIN_FIELDS = {
    "associatePublicIPAddress": True,
    "detailedMonitoring": True,
    "userData": "#!/bin/bash",
    "context": "a",
    "ipPrefixCount": 0,
    "cpuOptions": {"nestedVirtualization": "enabled"},
    "instanceStorePolicy": "RAID0",
}
REST = [
    *(
        case
        for name, value in PLAIN_FIELDS.items()
        for case in vary("W-21", a_node_class, f"spec.{name}", "", {f"{name}": value})
    ),
    *vary("W-20", a_node_class, "spec.instanceStorePolicy", "RAID0", {"policy RAID1": "RAID1"}),
    *vary("W-20", a_node_class, "spec.ipPrefixCount", "greater than or equal to 0", {"-1 prefixes": -1}),
    *vary("W-20", a_node_class, "spec.cpuOptions.nestedVirtualization", "disabled", {"nested maybe": "maybe"}),
    *vary("W-21", a_node_class, "spec.tags", "", {"tags": {"a": "b", "c": ""}, "no tags": {}}),
    *vary("W-21", a_node_class, "spec.tags", "empty tag keys aren't supported", {"an empty tag key": {"": "a"}}),
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
            "W-8",
            a_node_class,
            "spec.tags",
            f"tag contains a restricted tag matching {named}",
            {f"tag {key}": {key: "a"}},
        )
    ),
    *vary(
        "W-23",
        a_node_class,
        "spec.kubelet",
        "",
        {
            "any kubelet field": {"maxPods": "max_pods - 1", "anything": {"at": ["all"]}},
            "an expression": {"kubeReserved": {"cpu": "vcpus * 33"}},
        },
    ),
]

NODE_CLASS = [*IDENTITY, *SELECTORS, *AMI_TERMS, *PLACEMENT, *DEVICES, *NETWORK, *REST]

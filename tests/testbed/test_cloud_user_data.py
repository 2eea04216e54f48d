"""What a kubelet makes of its user data, and how large its node is (AWS-54 to AWS-62, AWS-97 to AWS-99)."""

import pytest

from testbed.cloud.kubelets.capacity import BootedInstance, amount, capacity_and_allocatable
from testbed.cloud.kubelets.node import ALIVE, KUBELET, SILENT, make_node
from testbed.cloud.kubelets.user_data import KubeletSetup, read_user_data
from testbed.cloud.state.catalogue import read_types
from testbed.plane import KUBELET_ALIVE, KUBELET_LABEL, KUBELET_SILENT

UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
LABELS = {"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "default"}
NODE_LABELS = "karpenter.sh/capacity-type=spot,karpenter.sh/nodepool=default"

AL2023 = f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo one

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 5
      kubeReserved:
        cpu: 200m

--//
Content-Type: application/node.eks.aws

# Karpenter Generated NodeConfig
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {{}}
spec:
  containerd: {{}}
  instance:
    localStorage:
      strategy: RAID0
  kubelet:
    config:
      evictionHard:
        memory.available: 5%
      maxPods: 42
      registerWithTaints:
      - effect: NoSchedule
        key: team
        value: blue
      - effect: NoExecute
        key: karpenter.sh/unregistered
    flags:
    - --node-labels="{NODE_LABELS}"

--//--
"""
AL2 = f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
/etc/eks/bootstrap.sh 'dovetail' --apiserver-endpoint 'https://cluster.example' --b64-cluster-ca 'Y2E=' \\
--use-max-pods false \\
--kubelet-extra-args '--node-labels="{NODE_LABELS}" --register-with-taints="team=blue:NoSchedule,karpenter.sh/unregistered:NoExecute" --max-pods=42 --eviction-hard="memory.available<5%" --kube-reserved="cpu=200m"' \\
--local-disks raid0
--//--
"""  # noqa: E501 # one argument is one line
BOTTLEROCKET = """[settings]
[settings.kubernetes]
max-pods = 42

[settings.kubernetes.node-labels]
'karpenter.sh/capacity-type' = 'spot'
'karpenter.sh/nodepool' = 'default'

[settings.kubernetes.node-taints]
'team' = ['blue:NoSchedule']
'karpenter.sh/unregistered' = [':NoExecute']

[settings.kubernetes.kube-reserved]
cpu = '200m'

[settings.kubernetes.eviction-hard]
'memory.available' = '5%'

[settings.bootstrap-commands.000-mount-instance-storage]
commands = [['apiclient', 'ephemeral-storage', 'init']]
"""
WINDOWS = f"""<powershell>
& $EKSBootstrapScriptFile -EKSClusterName 'dovetail' -KubeletExtraArgs '--node-labels="{NODE_LABELS}" --register-with-taints="team=blue:NoSchedule,karpenter.sh/unregistered:NoExecute" --max-pods=42 --eviction-hard="memory.available<5%" --kube-reserved="cpu=200m"' -DNSClusterIP '10.0.0.10'
</powershell>
"""  # noqa: E501 # one argument is one line


@pytest.mark.parametrize(
    ("family", "text"), [("al2023", AL2023), ("al2", AL2), ("bottlerocket", BOTTLEROCKET), ("windows", WINDOWS)]
)
def test_every_family_s_user_data_gives_the_kubelet_the_same(family: str, text: str) -> None:
    assert read_user_data(text) == KubeletSetup(
        family=family,
        labels=LABELS,
        taints=({"key": "team", "value": "blue", "effect": "NoSchedule"}, UNREGISTERED),
        max_pods=42,
        kube_reserved={"cpu": "200m"},
        eviction_hard={"memory.available": "5%"},
        local_disks=family != "windows",
    )


def test_custom_user_data_is_taken_to_register_with_the_taint() -> None:
    assert read_user_data("#!/bin/bash\n/opt/join\n") == KubeletSetup(family="custom", taints=(UNREGISTERED,))


@pytest.mark.parametrize(
    ("name", "memory", "pods", "cpu_left", "memory_left"),
    [
        ("t4g.small", 1835, 11, 1930, 1359),
        ("m5.large", 7577, 29, 1930, 6903),
        ("c6g.large", 3729, 29, 1930, 3055),
        ("m5.xlarge", 15155, 58, 3920, 14162),
        ("c7g.4xlarge", 30251, 234, 15890, 27322),
        ("m5.metal", 363724, 737, 95690, 355262),
        ("p5.48xlarge", 1939865, 100, 191450, 1938410),
        ("g5.12xlarge", 181862, 737, 47810, 173400),
    ],
)
def test_a_node_is_as_large_as_the_specification_says(
    name: str, memory: int, pods: int, cpu_left: int, memory_left: int
) -> None:
    """AWS-62's vectors (AL2023, defaults)."""
    booted = BootedInstance(
        facts=read_types([name])[name],
        block_devices=[],
        interfaces=[],
        setup=KubeletSetup(family="al2023"),
        memory_overhead=0.075,
    )

    capacity, allocatable = capacity_and_allocatable(booted)

    assert (amount(capacity["memory"]) / 2**20, capacity["pods"]) == (memory, str(pods))
    assert (allocatable["cpu"], amount(allocatable["memory"]) / 2**20) == (f"{cpu_left}m", memory_left)


@pytest.mark.parametrize(
    ("name", "family", "sizes"),
    [
        ("m5.large", "al2023", ["1Gi", "2Mi"]),
        ("m6g.large", "al2023", ["1Gi", "2Mi", "32Mi", "64Ki"]),
        ("m5.large", "windows", []),
    ],
)
def test_a_node_lists_the_huge_pages_that_it_has_none_of(name: str, family: str, sizes: list[str]) -> None:
    booted = BootedInstance(
        facts=read_types([name])[name],
        block_devices=[],
        interfaces=[],
        setup=KubeletSetup(family=family),
        memory_overhead=0.075,
    )

    for amounts in capacity_and_allocatable(booted):
        found = {key.removeprefix("hugepages-"): value for key, value in amounts.items() if "hugepages" in key}
        assert found == dict.fromkeys(sizes, "0")


def test_a_node_has_the_devices_of_its_type_and_the_volume_of_its_template() -> None:
    """AWS-58, AWS-59."""
    name = "g5.12xlarge"
    booted = BootedInstance(
        facts=read_types([name])[name],
        block_devices=[{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100}}],
        interfaces=[{"InterfaceType": "efa"}],
        setup=KubeletSetup(family="al2023"),
        memory_overhead=0.075,
    )

    capacity, allocatable = capacity_and_allocatable(booted)

    assert (capacity["nvidia.com/gpu"], capacity["vpc.amazonaws.com/efa"]) == ("4", "1")
    assert amount(capacity["ephemeral-storage"]) == 100 * 2**30
    # 1 GiB for the system and a tenth against eviction (AWS-60, AWS-61)
    assert amount(allocatable["ephemeral-storage"]) == 89 * 2**30


def test_local_disks_replace_the_root_volume() -> None:
    """AWS-58: RAID0 counts in gigabytes."""
    booted = BootedInstance(
        facts=read_types(["m5d.large"])["m5d.large"],
        block_devices=[{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100}}],
        interfaces=[],
        setup=KubeletSetup(family="al2023", local_disks=True),
        memory_overhead=0.075,
    )

    assert amount(capacity_and_allocatable(booted)[0]["ephemeral-storage"]) == 75 * 10**9


def test_a_node_carries_what_kubelet_and_cloud_write_on_it() -> None:
    instance = {
        "id": "i-00000000000000001",
        "nodeName": "ip-10-1-0-1.us-west-2.compute.internal",
        "type": "m6g.large",
        "region": "us-west-2",
        "zone": "us-west-2a",
        "zoneId": "usw2-az1",
        "providerID": "aws:///us-west-2a/i-00000000000000001",
        "address": "10.1.0.1",
        "blockDevices": [],
        "interfaces": [],
        "userData": AL2023,
        "memoryOverhead": 0.075,
    }

    node = make_node(instance, read_types(["m6g.large"])["m6g.large"], "v1.36.3")

    assert node["metadata"]["labels"] == LABELS | {
        "kubernetes.io/hostname": "ip-10-1-0-1.us-west-2.compute.internal",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "arm64",
        "node.kubernetes.io/instance-type": "m6g.large",
        "beta.kubernetes.io/instance-type": "m6g.large",
        "topology.kubernetes.io/region": "us-west-2",
        "failure-domain.beta.kubernetes.io/region": "us-west-2",
        "topology.kubernetes.io/zone": "us-west-2a",
        "failure-domain.beta.kubernetes.io/zone": "us-west-2a",
        "topology.ebs.csi.aws.com/zone": "us-west-2a",
        "topology.k8s.aws/zone-id": "usw2-az1",
        "dovetail.test/kubelet": "alive",
    }
    assert node["spec"] == {
        "providerID": "aws:///us-west-2a/i-00000000000000001",
        "taints": [{"key": "team", "value": "blue", "effect": "NoSchedule"}, UNREGISTERED],
    }


def test_kubelets_and_control_plane_agree_on_the_label() -> None:
    assert (KUBELET, ALIVE, SILENT) == (KUBELET_LABEL, KUBELET_ALIVE, KUBELET_SILENT)

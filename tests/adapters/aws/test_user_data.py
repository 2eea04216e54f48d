"""User data of every image family, read back as an instance would read it."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest
import yaml

from dovetail.adapters.aws.user_data.amazon_linux import node_config
from dovetail.adapters.aws.user_data.bootstrap import UNREGISTERED, BadUserData, Bootstrap, labels_for
from dovetail.adapters.aws.user_data.bottlerocket import go_duration
from dovetail.adapters.aws.user_data.mime import read_parts
from dovetail.adapters.aws.user_data.rendering import user_data
from dovetail.model.scheduling.taints import Taint
from testbed.cloud.kubelets.user_data import read_user_data
from worlds.aws import a_claim_of_ec2

KUBELET: dict[str, Any] = {
    "podsPerCore": 30,
    "systemReserved": {"cpu": "100m", "memory": "100Mi"},
    "kubeReserved": {"cpu": "200m"},
    "evictionHard": {"memory.available": "5%"},
    "evictionSoft": {"memory.available": "500Mi"},
    "evictionSoftGracePeriod": {"memory.available": "1m"},
    "evictionMaxPodGracePeriod": 60,
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 75,
    "cpuCFSQuota": True,
}
MIME = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo one

--B
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      serializeImagePulls: false

--B--
"""


def a_start(**change: Any) -> Bootstrap:
    start = Bootstrap(
        cluster="dovetail",
        endpoint="https://cluster.example",
        ca_bundle="Y2EtYnVuZGxl",
        service_cidr="10.0.0.0/24",
        dns=("10.0.0.10",),
        labels={"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot"},
        taints=(Taint(key="team", value="blue", effect="NoSchedule"), UNREGISTERED),
        max_pods=29,
        kubelet={},
        raid0=False,
        own="",
    )
    return replace(start, **change)


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025"])
def test_every_family_gives_the_kubelet_its_labels_taints_and_limits(family: str) -> None:
    """AWS-96 to AWS-99."""
    setup = read_user_data(user_data(family, a_start(kubelet=KUBELET)))

    assert dict(setup.labels) == {"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot"}
    assert sorted(setup.taints, key=lambda taint: taint["key"]) == [
        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        {"key": "team", "value": "blue", "effect": "NoSchedule"},
    ]
    assert setup.max_pods == 29
    assert dict(setup.kube_reserved) == {"cpu": "200m"}
    assert dict(setup.system_reserved) == {"cpu": "100m", "memory": "100Mi"}
    assert dict(setup.eviction_hard) == {"memory.available": "5%"}


def test_al2_runs_the_class_s_part_and_then_the_bootstrap_script() -> None:
    """AWS-97: its arguments are those of AL2's script, in upstream's order."""
    own, ours = read_parts(user_data("AL2", a_start(own="echo one", raid0=True)))

    assert (own.content_type, own.body) == (ours.content_type, "echo one\n")
    begins = "/etc/eks/bootstrap.sh 'dovetail' --apiserver-endpoint 'https://cluster.example'"
    labels = '--node-labels="karpenter.sh/capacity-type=spot,karpenter.sh/nodepool=default"'
    taints = '--register-with-taints="team=blue:NoSchedule,karpenter.sh/unregistered:NoExecute"'
    assert ours.body.splitlines()[2:] == [
        f"{begins} --b64-cluster-ca 'Y2EtYnVuZGxl' \\",
        "--dns-cluster-ip '10.0.0.10' \\",
        "--use-max-pods false \\",
        f"--kubelet-extra-args '{labels} {taints} --max-pods=29' \\",
        "--local-disks raid0",
    ]


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket"])
def test_instance_disks_are_joined_where_the_class_says_so(family: str) -> None:
    assert read_user_data(user_data(family, a_start(raid0=True))).local_disks
    assert not read_user_data(user_data(family, a_start())).local_disks


def test_only_what_the_class_says_is_written_never_a_default() -> None:
    """AWS-98, as recorded: empty maps stand where nothing is said."""
    config = node_config(a_start())

    assert config["spec"]["containerd"] == {}
    assert config["spec"]["instance"] == {"localStorage": {}}
    assert sorted(config["spec"]["kubelet"]["config"]) == ["clusterDNS", "maxPods", "registerWithTaints"]


def test_parts_of_the_class_come_first_and_ours_last() -> None:
    """AWS-98: the last NodeConfig wins."""
    parts = read_parts(user_data("AL2023", a_start(own=MIME)))

    assert [part.content_type for part in parts] == [
        'text/x-shellscript; charset="us-ascii"',
        "application/node.eks.aws",
        "application/node.eks.aws",
    ]
    assert yaml.safe_load(parts[1].body)["spec"] == {"kubelet": {"config": {"serializeImagePulls": False}}}
    assert yaml.safe_load(parts[2].body)["spec"]["cluster"]["name"] == "dovetail"


@pytest.mark.parametrize(
    ("own", "content_type"),
    [
        ("[" * 60_000, "text/x-shellscript"),
        ("a: " + "[" * 60_000, "text/x-shellscript"),
        ("a: " + "[" * 99 + "]" * 99, "application/node.eks.aws"),
        ("a: " + "[" * 100 + "]" * 100, "text/x-shellscript"),
        ("a: " + "9" * 60_000, "application/node.eks.aws"),
        ("- a\n", "text/x-shellscript"),
        ("a: b\n---\nc: d\n", "text/x-shellscript"),
        ("a: &a [x]\nb: &b [*a, *a]\n", "application/node.eks.aws"),
    ],
)
def test_the_form_of_a_text_is_seen_without_a_value_of_it(own: str, content_type: str) -> None:
    """Aliases are not followed, numbers not converted, and brackets need no stack."""
    assert read_parts(user_data("AL2023", a_start(own=own)))[0].content_type.startswith(content_type)


@pytest.mark.parametrize(
    ("own", "content_type"),
    [
        ("#!/bin/bash\r\necho hi\r\n", 'text/x-shellscript; charset="us-ascii"'),
        ("- a\n- b\n", 'text/x-shellscript; charset="us-ascii"'),
        ("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n", "application/node.eks.aws"),
    ],
)
def test_plain_user_data_is_recognised_by_its_form(own: str, content_type: str) -> None:
    first = read_parts(user_data("AL2023", a_start(own=own)))[0]

    assert first.content_type == content_type
    assert "\r" not in first.body


@pytest.mark.parametrize(
    ("family", "own"),
    [
        ("AL2023", 'MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nno boundary\n'),
        ("AL2", 'MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nno boundary\n'),
        ("Bottlerocket", "not = [toml"),
        ("Bottlerocket", "settings = 1"),
        ("Bottlerocket", "a = " + "[" * 60_000),
        ("Bottlerocket", "a = " + "9" * 60_000),
        *((family, "#" * 70_000) for family in ("AL2", "AL2023", "Bottlerocket", "Windows2022", "Custom")),
    ],
)  # fmt: skip
def test_user_data_that_cannot_be_merged_is_refused(family: str, own: str) -> None:
    with pytest.raises(BadUserData, match="userData"):
        user_data(family, a_start(own=own))


def test_bottlerocket_keeps_the_class_s_settings_below_the_cluster_s() -> None:
    """AWS-99: durations in Go's form, shares as texts."""
    own = '[settings.kubernetes]\ncluster-name = "other"\nlog-level = 3\n'
    own += "[settings.host-containers.admin]\nenabled = true\n"

    settings = tomllib.loads(user_data("Bottlerocket", a_start(own=own, kubelet=KUBELET)))["settings"]

    kubernetes = settings["kubernetes"]
    assert settings["host-containers"] == {"admin": {"enabled": True}}
    assert (kubernetes["cluster-name"], kubernetes["log-level"]) == ("dovetail", 3)
    assert kubernetes["eviction-soft-grace-period"] == {"memory.available": "1m0s"}
    assert kubernetes["image-gc-high-threshold-percent"] == "85"
    assert kubernetes["node-taints"] == {"team": ["blue:NoSchedule"], "karpenter.sh/unregistered": [":NoExecute"]}


@pytest.mark.parametrize(("version", "directories"), [("v1.45.0", True), ("1.46.0", False), ("latest", False)])
def test_older_bottlerocket_gets_the_directories_to_bind(version: str, directories: bool) -> None:
    settings = tomllib.loads(user_data("Bottlerocket", a_start(raid0=True, image_version=version)))["settings"]

    bind = settings["bootstrap-commands"]["000-mount-instance-storage"]["commands"][1]
    assert ("--dirs" in bind) is directories


@pytest.mark.parametrize(
    ("text", "written"), [("1m", "1m0s"), ("90s", "1m30s"), ("2h", "2h0m0s"), ("1.5s", "1.5s"), ("0s", "0s")]
)
def test_durations_are_written_as_go_writes_them(text: str, written: str) -> None:
    assert go_duration(text) == written


def test_custom_user_data_is_left_alone() -> None:
    assert user_data("Custom", a_start(own="anything\r\n")) == "anything\r\n"


def test_labels_that_a_kubelet_may_not_give_itself_are_left_out() -> None:
    """AWS-96; only custom images have their taints synchronised."""
    claim = a_claim_of_ec2(
        labels={"team": "blue", "kubernetes.io/os": "linux", "x.k8s.io/y": "z", "topology.kubernetes.io/zone": "a"}
    )

    labels = labels_for(claim, "spot", custom=False)

    assert labels == {
        "team": "blue",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/do-not-sync-taints": "true",
    }
    assert "karpenter.sh/do-not-sync-taints" not in labels_for(claim, "spot", custom=True)

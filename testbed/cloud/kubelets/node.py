"""The Node that a kubelet writes when it registers, one per instance.

Not ready at first, as a real one: kwok (in the kubelet's place) makes it ready a moment later.
"""

import time

from testbed.cloud.json_object import Json
from testbed.cloud.kubelets.capacity import BootedInstance, capacity_and_allocatable
from testbed.cloud.kubelets.user_data import read_user_data
from testbed.cloud.state.catalogue import architecture

KUBELET = "dovetail.test/kubelet"  # kwok looks after the nodes that carry this label with the value `alive`
ALIVE, SILENT = "alive", "silent"
CONTROLLER_ATTACHES = "volumes.kubernetes.io/controller-managed-attach-detach"  # else nobody attaches volumes
ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}


def _labels(instance: Json, given: dict[str, str], arch: str, system: str) -> dict[str, str]:
    own = {
        "kubernetes.io/hostname": instance["nodeName"],
        "kubernetes.io/os": system,
        "kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": system,
        "beta.kubernetes.io/arch": arch,
    }
    cloud = {
        "node.kubernetes.io/instance-type": instance["type"],
        "beta.kubernetes.io/instance-type": instance["type"],
        "topology.kubernetes.io/region": instance["region"],
        "failure-domain.beta.kubernetes.io/region": instance["region"],
        "topology.kubernetes.io/zone": instance["zone"],
        "failure-domain.beta.kubernetes.io/zone": instance["zone"],
        "topology.k8s.aws/zone-id": instance["zoneId"],
    }
    volumes = {"topology.ebs.csi.aws.com/zone": instance["zone"]}  # as if the EBS driver's pod were there at once
    return {**given, **own, **cloud, **volumes, KUBELET: ALIVE}


def make_node(instance: Json, facts: Json, version: str) -> Json:
    """The Node of an instance, as the control API shows instances."""
    setup = read_user_data(instance["userData"])
    booted = BootedInstance(
        facts=facts,
        block_devices=instance["blockDevices"],
        interfaces=instance["interfaces"],
        setup=setup,
        memory_overhead=float(instance["memoryOverhead"]),
    )
    capacity, allocatable = capacity_and_allocatable(booted)
    arch = ARCHITECTURES[architecture(facts)]
    system = "windows" if setup.family == "windows" else "linux"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": instance["nodeName"],
            "labels": _labels(instance, dict(setup.labels), arch, system),
            "annotations": {CONTROLLER_ATTACHES: "true"},
        },
        "spec": {"providerID": instance["providerID"], "taints": list(setup.taints)},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "addresses": [
                {"type": "InternalIP", "address": instance["address"]},
                {"type": "InternalDNS", "address": instance["nodeName"]},
                {"type": "Hostname", "address": instance["nodeName"]},
            ],
            "conditions": [condition("False", "KubeletNotReady", "container runtime network not ready")],
            "nodeInfo": {
                "architecture": arch,
                "operatingSystem": system,
                "kubeletVersion": version,
                "kubeProxyVersion": version,
                "osImage": setup.family,
                "kernelVersion": "6.12.0",
                "containerRuntimeVersion": "containerd://2.1.0",
                "bootID": instance["id"],
                "machineID": instance["id"],
                "systemUUID": instance["id"],
            },
        },
    }


def condition(status: str, reason: str, message: str) -> Json:
    """The Ready condition."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def is_ready(node: Json) -> bool:
    """Whether the Node's Ready condition is True."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

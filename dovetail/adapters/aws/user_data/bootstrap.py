"""What a new instance must know to join: the same facts for every family, before they take a family's form.

Labels of kubernetes.io and k8s.io are left out: a kubelet may not set them on itself and would not start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.aws import names
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.scheduling.taints import Taint, taint_text

UNREGISTERED: Final = Taint(key=core.UNREGISTERED_TAINT, effect="NoExecute")
_CLOSED_DOMAINS: Final = ("kubernetes.io", "k8s.io", "node-restriction.kubernetes.io")


class BadUserData(ValueError):
    """The class's own user data cannot be merged with what the instance must know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    cluster: str
    endpoint: str
    ca_bundle: str
    service_cidr: str
    dns: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    max_pods: int
    kubelet: Mapping[str, Any]  # the class's own settings, as written
    raid0: bool
    own: str  # spec.userData
    image_version: str = ""  # of the alias: Bottlerocket's commands differ by release

    @property
    def ipv6(self) -> bool:
        return any(":" in address for address in self.dns)

    @property
    def node_labels(self) -> str:
        """key=value, sorted, joined by commas."""
        return ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()))


def labels_for(claim: NodeClaim, capacity_type: str, *, custom: bool) -> dict[str, str]:
    """The labels with which the kubelet registers. Custom images register in their own way, so taints are synchronised
    (AWS-96)."""
    labels = {
        **claim.labels,
        **({names.NODE_CLASS: claim.node_class.name} if claim.node_class.name else {}),
        core.CAPACITY_TYPE: capacity_type,
        **({} if custom else {core.DO_NOT_SYNC_TAINTS: "true"}),
    }
    return {key: value for key, value in labels.items() if not _is_closed(key)}


def _is_closed(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and domain.endswith(_CLOSED_DOMAINS)


def taints_for(claim: NodeClaim) -> tuple[Taint, ...]:
    """In upstream's order."""
    return (*claim.taints, *claim.startup_taints, UNREGISTERED)


def kubelet_flags(start: Bootstrap) -> list[str]:
    """Command-line flags, for the families that take nothing else (AL2, Windows)."""
    kubelet = start.kubelet
    flags = [f'--node-labels="{start.node_labels}"'] if start.labels else []
    flags.append(f'--register-with-taints="{",".join(taint_text(taint) for taint in start.taints)}"')
    flags.append(f"--max-pods={start.max_pods}")
    if kubelet.get("podsPerCore") is not None:
        flags.append(f"--pods-per-core={kubelet['podsPerCore']}")
    for field, name, sign in (
        ("systemReserved", "system-reserved", "="),
        ("kubeReserved", "kube-reserved", "="),
        ("evictionHard", "eviction-hard", "<"),
        ("evictionSoft", "eviction-soft", "<"),
        ("evictionSoftGracePeriod", "eviction-soft-grace-period", "="),
    ):
        flags += _pairs(name, kubelet.get(field), sign)
    for field, name in (
        ("evictionMaxPodGracePeriod", "eviction-max-pod-grace-period"),
        ("imageGCHighThresholdPercent", "image-gc-high-threshold"),
        ("imageGCLowThresholdPercent", "image-gc-low-threshold"),
    ):
        if kubelet.get(field) is not None:
            flags.append(f"--{name}={kubelet[field]}")
    if kubelet.get("cpuCFSQuota") is not None:
        flags.append(f"--cpu-cfs-quota={'true' if kubelet['cpuCFSQuota'] else 'false'}")
    return flags


def _pairs(name: str, values: Mapping[str, Any] | None, sign: str) -> list[str]:
    if not values:
        return []
    joined = ",".join(f"{key}{sign}{value}" for key, value in sorted(values.items()))
    return [f'--{name}="{joined}"']


def without_carriage_returns(text: str) -> str:
    """Carriage returns would break a script (AWS-100)."""
    return text.replace("\r", "")

"""User data of Bottlerocket: settings in TOML, the class's own merged below what the cluster needs (AWS-99)."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from dovetail.adapters.aws.user_data.bootstrap import BadUserData, Bootstrap
from dovetail.adapters.aws.user_data.toml import write_toml
from dovetail.model.values.durations import parse_nanoseconds
from dovetail.model.values.json import Json

_INIT: Final = ["apiclient", "ephemeral-storage", "init"]
_BIND: Final = ["apiclient", "ephemeral-storage", "bind"]
_DIRECTORIES: Final = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]
_KNOWS_DIRECTORIES: Final = (1, 46)  # from this release on, `bind` finds the directories itself
_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)")


def bottlerocket(start: Bootstrap) -> str:
    try:
        document: Json = tomllib.loads(start.own)
    except (ValueError, RecursionError) as error:  # of thousands of digits and of brackets, too
        raise BadUserData(f"userData: is not TOML: {error}") from error
    settings = _table(document, "settings")
    _set_kubernetes(_table(settings, "kubernetes"), start)
    if start.raid0:
        _table(settings, "bootstrap-commands")["000-mount-instance-storage"] = {
            "commands": [_INIT, _BIND if _finds_directories(start.image_version) else [*_BIND, *_DIRECTORIES]],
            "mode": "always",
            "essential": True,
        }
    return write_toml(document)


def _table(parent: Json, name: str) -> Json:
    found = parent.setdefault(name, {})
    if not isinstance(found, dict):
        raise BadUserData(f"userData: {name} is not a table")
    return found


def _finds_directories(version: str) -> bool:
    found = _RELEASE.match(version)
    return found is None or (int(found[1]), int(found[2])) >= _KNOWS_DIRECTORIES


def _set_kubernetes(table: Json, start: Bootstrap) -> None:
    table["cluster-name"] = start.cluster
    table["api-server"] = start.endpoint
    if start.ca_bundle:
        table["cluster-certificate"] = start.ca_bundle
    if start.dns:
        table["cluster-dns-ip"] = start.dns[0]
    table["max-pods"] = start.max_pods
    table["node-labels"] = {**table.get("node-labels", {}), **start.labels}
    taints: dict[str, list[str]] = {}
    for taint in start.taints:
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    table["node-taints"] = taints
    table.update(_kubelet(start.kubelet))


def _kubelet(kubelet: Mapping[str, Any]) -> Json:
    result: Json = {}
    for field, name in (
        ("systemReserved", "system-reserved"),
        ("kubeReserved", "kube-reserved"),
        ("evictionHard", "eviction-hard"),
        ("evictionSoft", "eviction-soft"),
    ):
        if kubelet.get(field) is not None:
            result[name] = {key: str(value) for key, value in kubelet[field].items()}
    if kubelet.get("evictionSoftGracePeriod") is not None:
        periods = kubelet["evictionSoftGracePeriod"]
        result["eviction-soft-grace-period"] = {key: go_duration(str(text)) for key, text in periods.items()}
    if kubelet.get("evictionMaxPodGracePeriod") is not None:
        result["eviction-max-pod-grace-period"] = int(kubelet["evictionMaxPodGracePeriod"])
    for field, name in (
        ("imageGCHighThresholdPercent", "image-gc-high-threshold-percent"),
        ("imageGCLowThresholdPercent", "image-gc-low-threshold-percent"),
    ):
        if kubelet.get(field) is not None:
            result[name] = str(kubelet[field])
    if kubelet.get("cpuCFSQuota") is not None:
        result["cpu-cfs-quota-enforced"] = bool(kubelet["cpuCFSQuota"])
    return result


def go_duration(text: str) -> str:
    """A duration as Go prints it: 1m0s."""
    total = parse_nanoseconds(text)
    seconds, rest = divmod(total, 10**9)
    fraction = f"{rest / 1e9:.9f}".rstrip("0").removeprefix("0").rstrip(".")
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}{fraction}s"
    return f"{minutes}m{seconds}{fraction}s" if minutes else f"{seconds}{fraction}s"

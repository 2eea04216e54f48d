"""Reads user data: the kubelet's labels, taints and reservations, in every image family.

AL2023 (MIME with NodeConfig), AL2 (a call of bootstrap.sh), Bottlerocket (TOML), Windows (a call of the bootstrap
script). Custom user data says nothing that could be read; its kubelet is taken to register with Karpenter's taint.
"""

import email
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from testbed.cloud.json_object import Json

UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
EXTRA_ARGS = re.compile(r"--kubelet-extra-args\s+'([^']*)'|-KubeletExtraArgs\s+'([^']*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSetup:
    """With what the kubelet starts."""

    family: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ()
    max_pods: int | None = None
    pods_per_core: int = 0
    kube_reserved: Mapping[str, str] = field(default_factory=dict)
    system_reserved: Mapping[str, str] = field(default_factory=dict)
    eviction_hard: Mapping[str, str] = field(default_factory=dict)
    local_disks: bool = False


def read_user_data(text: str) -> KubeletSetup:
    """Recognise the family by its form and read it."""
    if "<powershell>" in text:
        return _from_arguments("windows", text)
    if "/etc/eks/bootstrap.sh" in text:
        return _from_arguments("al2", text)
    if "node.eks.aws" in text:
        return _from_node_configs(text)
    if "[settings" in text:
        return _from_toml(text)
    return KubeletSetup(family="custom", taints=(UNREGISTERED,))


def _pairs(text: str, separator: str = "=") -> dict[str, str]:
    return dict(part.split(separator, 1) for part in text.split(",") if separator in part)


def _taint(text: str) -> Json:
    """`key=value:Effect` or `key:Effect`."""
    named, effect = text.rsplit(":", 1)
    key, _, value = named.partition("=")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _flags(words: list[str]) -> dict[str, str]:
    return {name.lstrip("-"): value for name, _, value in (word.partition("=") for word in words)}


def _from_arguments(family: str, text: str) -> KubeletSetup:
    found = EXTRA_ARGS.search(text)
    flags = _flags(shlex.split((found.group(1) or found.group(2)) if found else ""))
    return KubeletSetup(
        family=family,
        labels=_pairs(flags.get("node-labels", "")),
        taints=tuple(_taint(each) for each in flags.get("register-with-taints", "").split(",") if each),
        max_pods=int(flags["max-pods"]) if "max-pods" in flags else None,
        pods_per_core=int(flags.get("pods-per-core", 0)),
        kube_reserved=_pairs(flags.get("kube-reserved", "")),
        system_reserved=_pairs(flags.get("system-reserved", "")),
        eviction_hard=_pairs(flags.get("eviction-hard", ""), "<"),
        local_disks="--local-disks raid0" in text,
    )


def _merge(old: Json, new: Json) -> Json:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _node_configs(text: str) -> list[Json]:
    parts = [text]
    if text.lstrip().startswith("MIME-Version"):
        message = email.message_from_string(text.lstrip())
        parts = [str(part.get_payload()) for part in message.walk() if not part.is_multipart()]
    parsed = (yaml.safe_load(part) for part in parts if "node.eks.aws" in part)
    return [each for each in parsed if isinstance(each, dict)]


def _from_node_configs(text: str) -> KubeletSetup:
    """Later parts override earlier ones; Karpenter's comes last."""
    merged: Json = {}
    for each in _node_configs(text):
        merged = _merge(merged, each.get("spec") or {})
    kubelet = merged.get("kubelet") or {}
    config = kubelet.get("config") or {}
    flags = _flags(shlex.split(" ".join(kubelet.get("flags") or ())))
    disks = ((merged.get("instance") or {}).get("localStorage") or {}).get("strategy")
    return KubeletSetup(
        family="al2023",
        labels=_pairs(flags.get("node-labels", "")),
        taints=tuple(
            {key: value for key, value in each.items() if value} for each in config.get("registerWithTaints", ())
        ),
        max_pods=config.get("maxPods"),
        pods_per_core=int(config.get("podsPerCore") or 0),
        kube_reserved=_texts(config.get("kubeReserved")),
        system_reserved=_texts(config.get("systemReserved")),
        eviction_hard=_texts(config.get("evictionHard")),
        local_disks=disks == "RAID0",
    )


def _texts(found: Mapping[str, Any] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (found or {}).items()}


def _from_toml(text: str) -> KubeletSetup:
    settings = tomllib.loads(text).get("settings") or {}
    kubernetes = settings.get("kubernetes") or {}
    taints = [
        _taint(f"{key}={value}" if not value.startswith(":") else f"{key}{value}")
        for key, values in (kubernetes.get("node-taints") or {}).items()
        for value in values
    ]
    return KubeletSetup(
        family="bottlerocket",
        labels=_texts(kubernetes.get("node-labels")),
        taints=tuple(taints),
        max_pods=kubernetes.get("max-pods"),
        kube_reserved=_texts(kubernetes.get("kube-reserved")),
        system_reserved=_texts(kubernetes.get("system-reserved")),
        eviction_hard=_texts(kubernetes.get("eviction-hard")),
        local_disks="000-mount-instance-storage" in text,
    )

"""User data of AL2 (a call of the bootstrap script) and AL2023 (a NodeConfig for nodeadm) (AWS-97, AWS-98)."""

from typing import Final

import yaml

from dovetail.adapters.aws.user_data.bootstrap import Bootstrap, kubelet_flags, without_carriage_returns
from dovetail.adapters.aws.user_data.mime import NODE_CONFIG, SHELL, Part, is_mime, read_parts, write_parts
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json

_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEEPEST: Final = 100  # collections in one another; a NodeConfig has about ten
_BASH = "#!/bin/bash -xe\nexec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n"


def al2(start: Bootstrap) -> str:
    """The class's part, then ours."""
    words = [f"/etc/eks/bootstrap.sh '{start.cluster}' --apiserver-endpoint '{start.endpoint}'"]
    if start.ca_bundle:
        words[0] += f" --b64-cluster-ca '{start.ca_bundle}'"
    if start.ipv6:
        words.append("--ip-family ipv6")
    if start.dns:
        words.append(f"--dns-cluster-ip '{start.dns[0]}'")
    words.append("--use-max-pods false")
    words.append(f"--kubelet-extra-args '{' '.join(kubelet_flags(start))}'")
    if start.raid0:
        words.append("--local-disks raid0")
    ours = Part(content_type=SHELL, body=_BASH + " \\\n".join(words))
    return write_parts([*_own_parts(start, configs=False), ours])


def al2023(start: Bootstrap) -> str:
    """The class's parts, then our NodeConfig."""
    text = "# By Dovetail, for this node's group of instance types\n" + yaml.safe_dump(
        node_config(start), sort_keys=True, default_flow_style=False, width=10_000
    )
    return write_parts([*_own_parts(start, configs=True), Part(content_type=NODE_CONFIG, body=text)])


def node_config(start: Bootstrap) -> Json:
    """node.eks.aws/v1alpha1 NodeConfig. It has only the reservations that the class itself states, never defaults."""
    config: Json = {
        **start.kubelet,
        **({"clusterDNS": list(start.dns)} if start.dns else {}),
        "maxPods": start.max_pods,
        "registerWithTaints": [_taint(taint) for taint in start.taints],
    }
    cluster = {
        "name": start.cluster,
        "apiServerEndpoint": start.endpoint,
        "certificateAuthority": start.ca_bundle,
        "cidr": start.service_cidr,
    }
    kubelet: Json = {"config": config}
    if start.labels:
        kubelet["flags"] = [f'--node-labels="{start.node_labels}"']
    return {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": cluster,
            "containerd": {},
            "instance": {"localStorage": {"strategy": "RAID0"} if start.raid0 else {}},
            "kubelet": kubelet,
        },
    }


def _taint(taint: Taint) -> Json:
    return {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}


def _own_parts(start: Bootstrap, *, configs: bool) -> list[Part]:
    own = without_carriage_returns(start.own)
    if not own.strip():
        return []
    if is_mime(own):
        return read_parts(own)
    if configs and _is_mapping(own):
        return [Part(content_type=NODE_CONFIG, body=own)]
    return [Part(content_type=SHELL, body=own)]


def _is_mapping(text: str) -> bool:
    """A YAML list, or a script that happens to be YAML, is no NodeConfig. No value is made: aliases cost what
    their characters cost. One of brackets would cost their square: its depth has an end."""
    roots, before, depth = list[yaml.Event](), None, 0
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            if isinstance(before, yaml.DocumentStartEvent):
                roots.append(event)
            before = event
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return False
    except (yaml.YAMLError, UnicodeError):
        return False
    return len(roots) == 1 and isinstance(roots[0], yaml.MappingStartEvent)

"""Karpenter's gauges of a cluster: nodes, pools, pods, how full it is (MET-1, MET-4).

Computed from one snapshot and never remembered, so the series of a deleted object disappear with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.lifecycle.pool_usage import pool_usage
from dovetail.model import names
from dovetail.model.nodes import Node
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_rules import is_daemon, is_terminal
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import CPU, Resources, total

_MOST: Final = 10**300
_MOST_RESOURCES: Final = 50  # that pods of one node ask for; beyond, only those that it has are shown

Labels = tuple[tuple[str, str], ...]

HELP: Final = {
    "nodes_allocatable": "What the pods of a node may request.",
    "nodes_total_pod_requests": "What the pods of a node request, those of DaemonSets left out.",
    "nodes_total_daemon_requests": "What the DaemonSet pods of a node request.",
    "nodes_system_overhead": "What a node keeps for itself: its capacity less what is allocatable.",
    "nodes_current_lifetime_seconds": "How long a node has existed.",
    "cluster_utilization_percent": "What all pods request, as a share of what all nodes offer.",
    "nodepools_limit": "The limits of a NodePool.",
    "nodepools_usage": "What the nodes of a NodePool use of its limits.",
    "pods_state": "One for each pod; its labels say how it stands.",
    "pods_unstarted_time_seconds": "How long a pod that was seen pending has existed and is not ready.",
    "pods_unbound_time_seconds": "How long a pod has existed and is bound to no node.",
    "pods_provisioning_unstarted_time_seconds": "How long ago room was found for a pod that is not ready.",
    "pods_provisioning_unbound_time_seconds": "How long ago room was found for a pod that is bound to no node.",
    "pods_provisioning_scheduling_undecided_time_seconds": "How long a pod has been pending without any decision.",
    "nodepools_cost_total": "Dollars an hour of a NodePool's NodeClaims.",
    "cluster_state_node_count": "Nodes in the cluster's state.",
    "cluster_state_synced": "1 while the view of the cluster can be used.",
    "cluster_state_unsynced_time_seconds": "For how long the view of the cluster could not be used; 0 while it can.",
    "scheduler_queue_depth": "Pods of the round of placing that is under way; 0 where none is.",
    "scheduler_unfinished_work_seconds": "For how long the round of placing that is under way has lasted.",
    "nodepools_allowed_disruptions": "How many nodes the budgets of a NodePool allow to be disrupted, by reason.",
    "nodepools_nodes_consuming_budgets": "How many nodes count against the budgets of a NodePool, by reason.",
    "build_info": "1; its labels name the version.",
}

# Label of the metric -> label of the node.
_PLACE: Final = {
    "nodepool": names.NODE_POOL,
    "zone": names.ZONE,
    "region": names.REGION,
    "instance_type": names.INSTANCE_TYPE,
    "arch": names.ARCH,
    "os": names.OS,
    "capacity_type": names.CAPACITY_TYPE,
    "windows_build": names.WINDOWS_BUILD,
}
_POD_PLACE: Final = ("nodepool", "zone", "arch", "capacity_type", "instance_type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One series of one gauge, without the prefix."""

    name: str
    labels: Labels = ()
    value: float


def cluster_and_pools(snapshot: Snapshot, judging: Judging, asked: Iterable[Resources]) -> Iterator[Sample]:
    """The gauges of the whole cluster, and of each NodePool. `asked`: what the pods of each node request."""
    yield from _sound(judging.judge(snapshot, "metrics", lambda: [*_of_cluster(snapshot, total([*asked]))]))
    yield from _sound(judging.judge(snapshot, "metrics", lambda: [*_of_pools(snapshot)]))


def _sound(found: list[Sample] | Unjudged) -> list[Sample]:
    return [] if isinstance(found, Unjudged) else found


def pods_by_node(snapshot: Snapshot) -> Mapping[str, list[Pod]]:
    """The pods that take room, by their node."""
    found: dict[str, list[Pod]] = {}
    for pod in snapshot.pods.values():
        if pod.node_name and not is_terminal(pod):
            found.setdefault(pod.node_name, []).append(pod)
    return found


def node_labels(node: Node, *, managed: bool) -> Labels:
    place = {label: node.labels.get(key, "") for label, key in _PLACE.items()}
    return tuple({"node_name": node.name, "phase": "", "managed": _word(managed), **place}.items())


def node_amounts(node: Node, pods: list[Pod]) -> dict[str, list[tuple[str, float]]]:
    """Gauge -> resource and amount, for one node."""
    overhead = {name: amount - node.allocatable.get(name, 0) for name, amount in node.capacity.items()}
    amounts = {
        "nodes_allocatable": node.allocatable,
        "nodes_total_pod_requests": _requested(node, [pod for pod in pods if not is_daemon(pod)]),
        "nodes_total_daemon_requests": _requested(node, [pod for pod in pods if is_daemon(pod)]),
        "nodes_system_overhead": overhead,
    }
    return {name: [*_by_resource(resources)] for name, resources in amounts.items()}


def _requested(node: Node, pods: list[Pod]) -> Resources:
    """Of very many resources only those that the node has: anybody's pod may ask for none of ten thousand others."""
    amounts = total([pod.requests for pod in pods])
    return {n: a for n, a in amounts.items() if n in node.capacity} if len(amounts) > _MOST_RESOURCES else amounts


def _of_cluster(snapshot: Snapshot, asked: Resources) -> Iterator[Sample]:
    offered = total([node.allocatable for node in snapshot.nodes.values()])
    for resource, amount in sorted(offered.items()):
        if amount:
            labels = (("resource_type", _snake(resource)),)
            share = 100.0 * _bounded(asked.get(resource, 0)) / _bounded(amount)
            yield Sample(name="cluster_utilization_percent", labels=labels, value=share)
    yield Sample(name="cluster_state_node_count", value=float(len(snapshot.nodes)))
    yield Sample(name="cluster_state_synced", value=1.0)


def _of_pools(snapshot: Snapshot) -> Iterator[Sample]:
    usage = pool_usage(snapshot)
    for name, pool in sorted(snapshot.pools.items()):
        if not snapshot.is_ours(pool.template.node_class):
            continue  # another provider's, which counts them itself (PLM-1)
        yield from _amounts("nodepools_limit", pool.limits or {}, {"nodepool": name})
        yield from _amounts("nodepools_usage", usage[name], {"nodepool": name})


def pod_labels(pod: Pod) -> Labels:
    owner = next(iter(pod.owners), None)
    return (
        ("name", pod.name),
        ("namespace", pod.namespace),
        ("owner", "" if owner is None else f"{owner.kind}/{owner.name}"),
        ("node", pod.node_name),
        ("scheduled", _word(bool(pod.node_name))),
        ("phase", pod.phase),
        ("ready", _word(pod.ready is True)),
    )


def pod_place(node: Node | None, *, managed: bool) -> Labels:
    """The labels from its node: the same for all pods of the node."""
    of_node = {} if node is None else node.labels
    return (*((label, of_node.get(_PLACE[label], "")) for label in _POD_PLACE), ("managed", _word(managed)))


def _amounts(name: str, resources: Resources, labels: Mapping[str, str]) -> Iterator[Sample]:
    for resource, value in _by_resource(resources):
        yield Sample(name=name, labels=(*labels.items(), ("resource_type", resource)), value=value)


def _by_resource(resources: Resources) -> Iterator[tuple[str, float]]:
    """Cpu in cores, the rest in its own unit (MET-3)."""
    for resource, amount in sorted(resources.items()):
        yield _snake(resource), _bounded(amount) / 10**9 if resource == CPU else float(_bounded(amount))


def _bounded(amount: int) -> int:
    """The amount, limited to what a float can show."""
    return max(-_MOST, min(_MOST, amount))


def _snake(resource: str) -> str:
    return resource.lower().replace("-", "_")


def _word(truth: bool) -> str:
    return "true" if truth else "false"

"""What a scrape costs at 5,000 nodes and 100,000 pods: CPU of the first, of one where nothing has changed, and of one
where a hundredth of all pods has.

`python -m acceptance.bench.worker.scrape [NODES PODS]`. Also where a tenth of the kubelets has reported, and, to
compare, every series written anew, as by a printer that keeps nothing.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.pods import Owner, Pod, PodShape
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.view import ConditionsListener, ObjectConditions
from dovetail.telemetry.metrics.karpenters.cluster_lines import ClusterLines
from dovetail.telemetry.metrics.karpenters.condition_metrics import ConditionMetrics
from dovetail.telemetry.metrics.scrape import gathered, install_meters
from worlds.fakes import a_scrape, on_duty

NOW = 1_800_000_000.0
AMOUNTS = {"cpu": 8 * 10**9, "memory": 32 * 2**30, "pods": 110, "ephemeral-storage": 100 * 2**30}
REQUESTS = {"cpu": 10**8, "memory": 2**28, "pods": 1}
CLAIM_CONDITIONS = (
    *("Launched", "Registered", "Initialized", "Ready", "Consolidatable"),
    *("ConsistentStateFound", "NodeClassReady"),
)
NODE_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def conditions(kinds: tuple[str, ...]) -> tuple[Condition, ...]:
    """All of them True since an hour."""
    return tuple(Condition(type=kind, status="True", reason=kind, changed=NOW - 3600) for kind in kinds)


def a_cluster(nodes: int, pods: int) -> Snapshot:
    """Nodes alike, each with its claim and its share of the pods."""
    reference = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
    pool = NodePool(name="a", uid="a", template=ClaimTemplate(node_class=reference, requirements=()))
    shape = PodShape(namespace="default", labels={"app": "web"})
    owner = (Owner(api_version="apps/v1", kind="ReplicaSet", name="web-1", uid="o"),)
    found_nodes, claims, found_pods = {}, {}, {}
    of_claim, of_node = conditions(CLAIM_CONDITIONS), conditions(NODE_CONDITIONS)
    for number in range(nodes):
        name, provider = f"ip-10-0-{number}.internal", f"aws:///us-west-2a/i-{number:017x}"
        labels = {
            names.NODE_POOL: "a",
            names.INSTANCE_TYPE: "m5.2xlarge",
            names.ZONE: "us-west-2a",
            names.CAPACITY_TYPE: "on-demand",
            names.HOSTNAME: name,
            names.ARCH: "amd64",
            names.OS: "linux",
        }
        common: dict[str, Any] = {"labels": labels, "provider_id": provider, "created": NOW - 7200}
        amounts: dict[str, Any] = {"capacity": AMOUNTS, "allocatable": AMOUNTS}
        found_nodes[name] = Node(name=name, uid=name, conditions=of_node, **common, **amounts)
        claims[f"a-{number}"] = NodeClaim(
            name=f"a-{number}",
            uid=f"a-{number}",
            node_name=name,
            node_class=reference,
            requests={},
            conditions=of_claim,
            **common,
            **amounts,
        )
    hosts = [*found_nodes]
    for number in range(pods):
        found_pods[f"p-{number}"] = Pod(
            name=f"web-1-{number:06}",
            uid=f"p-{number}",
            shape=shape,
            requests=REQUESTS,
            node_name=hosts[number % nodes],
            phase="Running",
            ready=True,
            created=NOW - 3600,
            owners=owner,
        )
    return Snapshot(now=NOW, nodes=found_nodes, claims=claims, pods=found_pods, pools={pool.name: pool})


class View:
    """A view that shows one snapshot after another, and their conditions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.shown = snapshot

    def stale(self) -> Mapping[str, str]:
        return {}

    def snapshot(self, reads: object = None) -> Snapshot:
        return self.shown

    def kinds(self) -> frozenset[str]:
        return frozenset({"Node", "NodeClaim", "NodePool"})

    def of_kind(self, kind: str) -> tuple[ObjectConditions, ...]:
        objects: Mapping[str, Any] = {"Node": self.shown.nodes, "NodeClaim": self.shown.claims}.get(kind, {})
        return tuple(
            ObjectConditions(name=each.name, labels=each.labels, conditions=each.conditions, deleting_since=None)
            for each in objects.values()
        )

    def listen(self, kind: str, listener: ConditionsListener) -> None:
        return None


async def main(nodes: int, pods: int) -> dict[str, float]:
    """CPU seconds by what was done."""
    view = View(a_cluster(nodes, pods))
    scrape = a_scrape(
        view=view,  # a scrape asks nothing else of it
        supported=lambda: frozenset({("karpenter.k8s.aws", "EC2NodeClass")}),
        settings=DisruptionSettings(),
        reader=install_meters(),
        conditions=ConditionMetrics(
            view, [("karpenter.k8s.aws", "EC2NodeClass")], lambda: view.shown.now, duties=on_duty()
        ),
    )
    found: dict[str, float] = {}

    async def timed(name: str) -> None:
        began = time.process_time()
        size = sum(map(len, gathered(await scrape.pieces())))  # as it is sent
        found[name] = round(time.process_time() - began, 3)
        found["megabytes"] = round(size / 2**20, 1)

    await timed("first")
    for attempt in range(3):
        view.shown = replace(view.shown, now=view.shown.now + 30, pods=dict(view.shown.pods))
        await timed(f"unchanged_{attempt + 1}")
    changed = dict(view.shown.pods)
    for uid in [*changed][::100]:
        changed[uid] = replace(changed[uid], ready=False)
    view.shown = replace(view.shown, pods=changed, now=view.shown.now + 30)
    await timed("one_pod_of_a_hundred_changed")
    nodes_now = dict(view.shown.nodes)
    for name in [*nodes_now][::10]:
        nodes_now[name] = replace(nodes_now[name], conditions=conditions(NODE_CONDITIONS))
    view.shown = replace(view.shown, nodes=nodes_now, now=view.shown.now + 30)
    await timed("one_kubelet_of_ten_reported")
    found["every_gauge_of_nodes_and_pods_anew"] = round(_cpu(lambda: [*ClusterLines().blocks(view.shown)]), 3)
    return found


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]] or [5_000, 100_000]
    print(json.dumps(asyncio.run(main(numbers[0], numbers[1])), indent=1))

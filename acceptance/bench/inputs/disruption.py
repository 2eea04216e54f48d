"""Measures how long a disruption decision takes, and how that grows with the cluster.

Each function builds a cluster of plain objects, times whole decisions over it and gives one row per size. Upstream's
figures were measured on the same kind of cluster (PLB-17): nodes of 8 cpu and 32 Gi, six small pods each, 60 types.
"""

import gc
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import median
from typing import Any

from acceptance.bench.inputs.plain_types import ZONES, plain_offering, plain_type
from acceptance.karpenter import KARPENTER
from dovetail.disruption.choose import choose
from dovetail.disruption.methods.multi_node import MULTI
from dovetail.disruption.methods.single_node import SINGLE
from dovetail.disruption.rounds import Method, Round, never, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim, NodeClassRef
from dovetail.model.own.openings import Dates, Window
from dovetail.model.own.policies import Policy
from dovetail.model.own.rates import Rate
from dovetail.model.pods import Expression, Owner, Pod, PodShape
from dovetail.model.pools import (
    Budget,
    Catalogue,
    ClaimTemplate,
    DisruptionPolicy,
    InstanceType,
    NodePool,
)
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from worlds.disruption import CLASS, NOW, condition
from worlds.time_rules import ZONES as ZONES_OF_PEOPLE
from worlds.time_rules import with_rules

Row = dict[str, Any]


def types(count: int = 60) -> tuple[InstanceType, ...]:
    """Types of 1 to `count` cpus at a linear price, spot at 0.4 of it."""
    return tuple(_type(f"t-{cpu}", cpu) for cpu in range(1, count + 1))


def _type(name: str, cpu: int) -> InstanceType:
    offerings = tuple(
        plain_offering(zone, kind, 0.05 * cpu * share)
        for zone in ZONES
        for kind, share in ((names.CAPACITY_ON_DEMAND, 1.0), (names.CAPACITY_SPOT, 0.4))
    )
    return plain_type(name, {"cpu": str(cpu), "memory": f"{4 * cpu}Gi"}, {"cpu": "100m"}, offerings)


def cluster(nodes: int, pods_per_node: int, cpu: str, pool: NodePool | None = None) -> Snapshot:
    """That many nodes of type t-8, each with that many pods of that size, spread over some workloads."""
    pool = pool or on_demand_pool()
    amounts = parse_resources({"cpu": "7900m", "memory": "32Gi", "pods": "110"})
    pairs = [_pair(number, pool.name, amounts) for number in range(nodes)]
    shapes = [PodShape(namespace="default", labels={"app": f"w{n}"}) for n in range(20)]
    requests = {**parse_resources({"cpu": cpu, "memory": "256Mi"}), "pods": 1}
    owner = (Owner(api_version="apps/v1", kind="ReplicaSet", name="o", uid="o", controller=True),)
    pods = (
        Pod(
            name=f"p-{number}-{index}",
            uid=f"u-{number}-{index}",
            shape=shapes[(number + index) % len(shapes)],
            requests=requests,
            created=NOW - 7200.0 + index,
            node_name=f"n-{number:05}",
            phase="Running",
            started=NOW - 7200.0,
            ready=True,
            owners=owner,
        )
        for number in range(nodes)
        for index in range(pods_per_node)
    )
    return Snapshot(
        now=NOW,
        nodes={node.name: node for node, _ in pairs},
        claims={claim.name: claim for _, claim in pairs},
        pods={pod.uid: pod for pod in pods},
        pools={pool.name: pool},
        catalogues={pool.name: Catalogue(types=types())},
    )


def on_demand_pool(**changes: Any) -> NodePool:
    """A pool whose budgets allow everything."""
    requirements = (Expression(key=names.CAPACITY_TYPE, operator="In", values=(names.CAPACITY_ON_DEMAND,)),)
    pool = NodePool(
        name="a",
        uid="a",
        template=ClaimTemplate(
            node_class=NodeClassRef(group="g", kind="K", name="c"), requirements=requirements, expire_after=None
        ),
        disruption=DisruptionPolicy(budgets=(Budget(nodes="100%"),)),
        conditions=(condition("Ready"),),
    )
    return replace(pool, **changes)


def _pair(number: int, pool: str, amounts: dict[str, int]) -> tuple[Node, NodeClaim]:
    name = f"n-{number:05}"
    labels = {
        names.NODE_POOL: pool,
        names.INSTANCE_TYPE: "t-8",
        names.ZONE: ZONES[number % 3],
        names.CAPACITY_TYPE: names.CAPACITY_ON_DEMAND,
        names.HOSTNAME: name,
        names.ARCH: "amd64",
        names.OS: "linux",
    }
    conditions = tuple(
        condition(kind)
        for kind in (
            names.LAUNCHED,
            names.REGISTERED_CONDITION,
            names.INITIALIZED_CONDITION,
            names.CONSOLIDATABLE,
        )
    )
    node = Node(
        name=name,
        uid=name,
        provider_id=f"p://{name}",
        labels={**labels, names.REGISTERED: "true", names.INITIALIZED: "true"},
        capacity=amounts,
        allocatable=amounts,
        conditions=(condition("Ready"),),
    )
    claim = NodeClaim(
        name=f"c-{name}",
        uid=f"c-{name}",
        created=NOW - 7200.0,
        labels=labels,
        node_class=CLASS,
        requests={},
        node_name=name,
        provider_id=f"p://{name}",
        capacity=amounts,
        allocatable=amounts,
        conditions=conditions,
    )
    return node, claim


def timed(work: Callable[[], object], times: int = 3) -> float:
    """The median of a few runs, in milliseconds of this process, with the collector off as in the planner."""
    gc.collect()
    gc.disable()
    try:
        spans = []
        for _ in range(times):
            start = time.process_time()
            work()
            spans.append((time.process_time() - start) * 1000)
        return median(spans)
    finally:
        gc.enable()


def _method(method: Method, world: Snapshot, settings: DisruptionSettings) -> Callable[[], object]:
    return lambda: run(method, Round(world, settings))


def _round(world: Snapshot, kinds: list[str]) -> Callable[[], object]:
    return lambda: kinds.append(choose(world, DisruptionSettings(), never).kind)


def multi_node(sizes: Iterable[int] = (50, 100, 200, 400)) -> list[Row]:
    """One multi-node decision, six small pods on each node; upstream's search and ours."""
    upstreams = {50: 274, 100: 375, 200: 598}
    rows = []
    for size in sizes:
        world = cluster(size, 6, "300m")
        rows.append(
            {
                "work": f"multi-node decision, {size} nodes x 6 pods, 60 types",
                "ms": round(timed(_method(MULTI, world, DisruptionSettings())), 1),
                "ms_faithful": round(timed(_method(MULTI, world, DisruptionSettings(profile=KARPENTER))), 1),
                "upstream_ms": upstreams.get(size),
            }
        )
    return rows


def single_node(sizes: Iterable[int] = (50, 100, 200, 400)) -> list[Row]:
    """A single-node pass in which no node can go: full nodes, nothing cheaper."""
    rows = []
    for size in sizes:
        world = cluster(size, 6, "1200m")
        ms = timed(_method(SINGLE, world, DisruptionSettings()))
        row = {"work": f"single-node pass over {size} candidates, none possible", "ms": round(ms, 1)}
        rows.append(row | {"upstream_ms": 10000 if size == 200 else None})
    return rows


def whole_round(sizes: Iterable[tuple[int, int]] = ((250, 10), (500, 10), (1000, 10), (5000, 20))) -> list[Row]:
    """A whole decision in which nothing can be done, so that every method is tried."""
    rows = []
    for size, pods in sizes:
        world = cluster(size, pods, "790m" if pods == 10 else "395m")
        kinds: list[str] = []
        ms = timed(_round(world, kinds), 1)
        rows.append(
            {
                "work": f"whole decision round, {size} nodes / {size * pods} pods",
                "ms": round(ms, 1),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "outcome": kinds[0],
            }
        )
    return rows


def round_with_policies(sizes: Iterable[tuple[int, int]] = ((500, 10), (5000, 20)), turns: int = 5) -> list[Row]:
    """The same decision under twenty DisruptionPolicies and under none, by turns: what the policies cost. All of them
    speak of the pool, are open now and leave enough of their rates, so that both decide alike."""
    rows = []
    for size, pods in sizes:
        without = cluster(size, pods, "790m" if pods == 10 else "395m")
        under = with_rules(without, *[_open_policy(number) for number in range(20)])
        kinds: list[str] = []
        alike = choose(without, DisruptionSettings(), never) == choose(under, DisruptionSettings(), never)
        assert alike, "under policies that are open the same is decided"
        spans = [(timed(_round(without, kinds), 1), timed(_round(under, kinds), 1)) for _ in range(turns)]
        plain, ruled = (min(side) for side in zip(*spans, strict=True))  # what others on the machine take is not its
        rows.append(
            {
                "work": f"whole decision round under 20 policies, {size} nodes / {size * pods} pods",
                "ms": round(ruled, 1),
                "ms_without": round(plain, 1),
                "ratio": round(ruled / plain, 3),
                "outcome": "/".join(sorted(set(kinds))),
            }
        )
    return rows


def _open_policy(number: int) -> Policy:
    """Two windows, a closed day and two rates, in one of twenty zones."""
    half = 12 * 3600
    return Policy(
        name=f"policy-{number:02}",
        zone=ZONES_OF_PEOPLE[number],
        allow=(Window(end=half), Window(start=half)),
        deny=(Window(dates=(Dates((12, 24), (1, 2)),)),),
        rates=(Rate(nodes="5000", per=3600.0), Rate(nodes="9000", per=86_400.0)),
    )


def drift_wave(sizes: Iterable[int] = (20, 200, 1000)) -> list[Row]:
    """A plan for drifted nodes, six pods each that fit on no other node; a plan ends at 100 commands."""
    rows = []
    for size in sizes:
        world = cluster(size, 6, "1200m", on_demand_pool())
        drifted = {n: replace(c, conditions=(*c.conditions, condition(names.DRIFTED))) for n, c in world.claims.items()}
        ms = timed(_round(replace(world, claims=drifted), []), 1)
        rows.append({"work": f"drift plan, {size} drifted nodes / {6 * size} pods", "ms": round(ms, 1)})
    return rows


# What `make bench` runs, each in a process of its own; the sizes of one input are its growth with nodes.
INPUTS: dict[str, Callable[[], list[Row]]] = {
    "disruption_multi_node": multi_node,
    "disruption_single_node": single_node,
    "disruption_drift": drift_wave,
    "disruption_round": whole_round,
    "disruption_policies": round_with_policies,
}


def line_of(name: str) -> Row:
    """One input's line: the largest size in its columns, all sizes beside it."""
    rows = INPUTS[name]()
    last = rows[-1]
    growth = {row["work"]: row["ms"] for row in rows}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"input": name, "cpu": last["ms"] / 1000, "milliseconds": growth, "rows": rows, "MB": peak}


def measure() -> list[Row]:
    """All rows."""
    return [row for work in INPUTS.values() for row in work()]


if __name__ == "__main__":
    for row in measure():
        print(row)

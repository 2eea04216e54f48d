"""Pods of different sizes for NodePools under the policy cost, and the result: where they run, and at what price."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.guards import PLACES, GuardedRight, why_unproven
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.up import WORKER_USER, give_rights
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground

CATEGORY = "karpenter.k8s.aws/instance-category"
CPUS = "karpenter.k8s.aws/instance-cpu"
PATIENT = "dovetail-test-patient"
PLACES_FILE = Path(__file__).parents[2] / "deploy" / "kubernetes" / "places.yaml"
Sizes = dict[str, tuple[str, str]]  # of a workload's pods: cpu and memory


# Dollars an hour of a type with two cpus, by family; a type twice as large costs twice as much.
PER_LARGE = {
    "c5": 0.085,
    "m5": 0.096,
    "r5": 0.126,
    "c6i": 0.085,
    "m6i": 0.096,
    "r6i": 0.126,
    "c5a": 0.077,
    "m5a": 0.086,
    "r5a": 0.113,
}
LARGES = {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The state once every pod runs. `dollars` an hour, by the instances that the cloud has launched."""

    dollars: float
    nodes: int
    pods: int
    where_planned: int  # pods on the node of a claim that names them
    second_round: int  # pods for which two claims were made

    def line(self, name: str) -> str:
        return (
            f"{name}: ${self.dollars:.4f} an hour, {self.nodes} nodes, {self.pods} pods, "
            f"{self.where_planned} where planned, {self.second_round} in a second round"
        )


def many_types(ground: Ground) -> Json:
    """The cloud offers as many types as the policy needs. Returns what it offered before."""
    known = ground.cloud.control("GET", "world")
    prices = {f"{name}.{size}": price * large for name, price in PER_LARGE.items() for size, large in LARGES.items()}
    ground.world({"types": sorted(prices), "prices": prices})
    return {"types": known["types"]}


async def may_nominate(ground: Ground, user: str = WORKER_USER) -> None:
    """The right that the policy cost needs, and the admission policy that keeps the worker to it."""
    await give_rights(ground.api, user, list(yaml.safe_load_all(PLACES_FILE.read_text())))
    await in_force(ground, PLACES)


async def in_force(ground: Ground, right: GuardedRight) -> None:
    """Until the API server refuses the worker what the admission policy must refuse, tried on a pod of its own."""
    path = "/api/v1/namespaces/default/pods"
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "web:1"}]}
    made = await ground.api.post(path, {"metadata": {"name": "tried"}, "spec": spec})
    assert made.status == 201, made.text
    client = Client(ClusterAddress(kubeconfig=Path(ground.everything.environment["KUBECONFIG"])))
    await client.open()

    async def refused() -> bool:
        return await why_unproven(client, right, "default", "tried") == ""

    try:
        await ground.until(refused, 60, f"the admission policy {right.policy} is in force")
    finally:
        await client.close()
        await ground.api.delete(f"{path}/tried", {"gracePeriodSeconds": 0})


def start_worker(ground: Ground, **settings: str) -> None:
    """Replace the running workers by one with these settings."""
    ground.kill_workers()
    environment = {**ground.everything.environment, **settings}
    ground.workers.append(replace(ground.everything, environment=environment).start_worker())


def cost_pool(name: str, placement: str, most_cpus: int = 0) -> Json:
    """A pool of on-demand nodes of every general type, or of those with at most so many cpus."""
    pool = fleet_pool(name, annotations={names.PLACEMENT: placement})
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements[1:] = [{"key": CATEGORY, "operator": "In", "values": ["c", "m", "r"]}]
    if most_cpus:
        requirements.append({"key": CPUS, "operator": "Lt", "values": [str(most_cpus + 1)]})
    return pool


async def patient_pods(ground: Ground) -> None:
    """A class of pods that preempt nobody, so that a failed attempt leaves them their nomination."""
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PATIENT},
        "value": 0,
        "preemptionPolicy": "Never",
    }
    answer = await ground.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    assert answer.status in {201, 409}, answer.text


def unlike(pool: str, pods: int, sizes: Sizes, priority_class: str = "") -> list[Json]:
    """Workloads of these sizes with as many pods together. Those called apart share no node with one another."""
    found = []
    for number, (name, (cpu, memory)) in enumerate(sizes.items()):
        count = pods // len(sizes) + (number < pods % len(sizes))
        body: Any = workload(f"{pool}-{name}", pool, count, cpu)
        spec = body["spec"]["template"]["spec"]
        spec["containers"][0]["resources"]["requests"]["memory"] = memory
        if priority_class:
            spec["priorityClassName"] = priority_class
        if name.startswith("apart"):
            labels = body["spec"]["selector"]["matchLabels"]
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        found.append(body)
    return found


async def pending(ground: Ground, pods: int) -> bool:
    """All exist and the kube-scheduler has given up on each of them."""
    found = await ground.objects("Pod")
    given_up = [
        p for p in found if any(c.get("reason") == "Unschedulable" for c in p["status"].get("conditions") or ())
    ]
    return len(given_up) == pods == len(found)


async def outcome(ground: Ground) -> Outcome:
    """Of all existing pods and nodes."""
    claims, pods = await ground.claims(), await ground.objects("Pod")
    prices, instances = await asyncio.gather(
        asyncio.to_thread(ground.cloud.control, "GET", "prices"), ground.instances()
    )
    live = [each for each in instances if each["state"] not in {"terminated", "shutting-down"}]
    planned = {c["metadata"]["name"]: set(_planned(c)) for c in claims}
    times = Counter(uid for uids in planned.values() for uid in uids)
    node_of = {c["metadata"]["name"]: c["status"].get("nodeName") for c in claims}
    there = {(pod["metadata"]["uid"], pod["spec"].get("nodeName")) for pod in pods}
    return Outcome(
        dollars=sum(prices[each["type"]]["on-demand"][each["zone"]] for each in live),
        nodes=len(live),
        pods=len(pods),
        where_planned=sum((uid, node_of[name]) in there for name, uids in planned.items() for uid in uids),
        second_round=sum(count > 1 for count in times.values()),
    )


def _planned(claim: Json) -> Iterable[str]:
    return filter(None, (claim["metadata"].get("annotations") or {}).get(names.PLANNED_PODS, "").split(","))

"""The web page as `dovetail top --web` serves it, over documents that a test has made."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dovetail.answers.change.forecast import ComingAnswer, ForecastAnswer, StayingAnswer
from dovetail.answers.explain.explain_node import BudgetAnswer, Check, HeldPod, Move, NodeAnswer, PodThere
from dovetail.answers.explain.explain_pod import PodAnswer
from dovetail.answers.explain.what_if import Help
from dovetail.answers.plan import plan
from dovetail.answers.plan.left import LeftAnswer
from dovetail.answers.record.trend import STEP_SECONDS, TrendAnswer, TrendPoint
from dovetail.answers.serving.page_files import file_of_page
from dovetail.answers.shown.documents import Document, document
from dovetail.answers.status.nodes import PodRow, PodsAnswer
from dovetail.messages.plans import Refusal
from dovetail.model.places.placements import PoolRefusal
from dovetail.model.values.time import format_time
from tests.cli.fleet import NOTHING, Reply, documents, serving_by
from tests.cli.test_status_text import NOW

VIEWS: Final = ("status", "nodes", "pods", "plan", "savings", "back")
ROLES: Final = frozenset({"button", "link", "textbox", "searchbox", "combobox", "table", "image", "graphics-document"})
CLUSTER: Final = "prod-eu1"
UI: Final = "https://temporal.example/namespaces/dovetail/workflows/"

POOL = {"moves": 12, "undone": 1, "back": 2, "predicted": 0.4, "saved": 31.5, "pods": 40, "bill": 210.0}
SAVINGS: Any = {"kind": "Savings", "pools": [{"pool": "default", **POOL}], "total": {"pool": "", **POOL}, "notes": []}
SAVINGS["namespaces"] = [
    {"whose": "namespace", "namespace": "checkout", "predicted": 0.21, "saved": 17.25},
    {"whose": "namespace", "namespace": "search-and-recommendation", "predicted": 0.15, "saved": 12.5},
    {"whose": "namespace", "namespace": "batch", "predicted": 0.0, "saved": -0.75},
    {"whose": "others", "namespace": "", "predicted": 0.03, "saved": 2.0},
    {"whose": "nobody", "namespace": "", "predicted": 0.01, "saved": 0.5},
]
SAVINGS["until"] = format_time(NOW + 3600)
FLIGHT = {
    "id": "2026-05-28T17-26-40.000Z_disruption",
    "at": "2026-05-28T17:26:40Z",
    "kind": "disruption",
    "size": 48213,
}
FLIGHTS: Any = {"kind": "FlightList", "flights": [FLIGHT]}
REPLAY: Any = {
    **FLIGHT,
    "kind": "Replay",
    "decision": "disruption",
    "version": "0.2.0",
    "by": "dovetail-1",
    "same": True,
}
REPLAY |= {"decided": ["Empty: default-00001"], "differences": []}
SHADOW_TOTALS = dict.fromkeys(("launchesAlike", "launchesUnlike", "departuresAlike", "departuresUnlike"), 3)
SHADOW: Any = {"kind": "ShadowReport", "since": "2026-05-28T17:26:40Z", "looks": 12, "launches": [], "departures": []}
SHADOW |= {"totals": {**SHADOW_TOTALS, "saved": 2.5, "savingNow": 0.25}, "notes": ["both decide alike"]}
ENTRY = {
    "kind": "disruption",
    "outcome": "done",
    "reason": "Drifted",
    "pool": "default",
    "nodes": ["n"],
    "by": "",
    "instanceType": "",
    "pods": 4,
    "priceAfter": 0.1,
    "message": "",
}
LOG = {
    "entries": [
        {**ENTRY, "claims": [], "saved": 0.1 * i, "began": format_time(NOW - i), "ended": format_time(NOW + i)}
        for i in (1, 2, 3)
    ]
}
PODS = PodsAnswer(
    source="prod-eu1",
    now=NOW,
    pods=(
        PodRow(
            name="shop/cart-7f9c4d-x2x9z",
            since=NOW - 340,
            state="refused",
            says="it finds no node: 2 NodePools asked, none can make one; none of 143 nodes takes it",
        ),
        PodRow(
            name="ml/train-0",
            since=NOW - 41,
            state="new_node",
            says="a new node of NodePool gpu will be made for it in the next round",
            pool="gpu",
        ),
        PodRow(
            name="web/api-5",
            since=NOW - 12,
            state="spoken_for",
            says="a node for it is on its way: NodeClaim default-00001 is not launched yet",
            claim="default-00001",
        ),
    ),
)
NODE = NodeAnswer(
    node="ip-10-0-0-2.eu-west-1.compute.internal",
    source=CLUSTER,
    says="it stays: pod web/api-0 must not be disrupted",
    now=NOW,
    claim="batch-00002",
    pool="batch",
    instance="r7g.4xlarge, eu-west-1c, on-demand",
    state="ready",
    workflow="prod-eu1/claim/batch-00002",
    pods=2,
    movable_pods=1,
    pods_there=(
        PodThere(pod="web/api-0", since=NOW - 86000, cpu=1.5, memory=2.0**31, moves=True),
        PodThere(pod="kube-system/node-agent-x", since=NOW - 90000, cpu=0.1, memory=2.0**27, moves=False),
    ),
    expires_at=NOW + 500_000,
    checks=(Check(asked="", why="PodDoNotDisrupt", message='pod web/api-0 has "karpenter.sh/do-not-disrupt"'),),
    methods=(Check(asked="drift", why="NotDrifted", message="it is as its pool wants it"), Check(asked="emptiness")),
    held=(HeldPod(pod="web/api-0", by="its annotation", detail="remove karpenter.sh/do-not-disrupt"),),
    budgets=(BudgetAnswer(reason="Empty", left=0, allowed=1, nodes=10, consuming=1, binding="10%", until=NOW + 600),),
    move=Move(
        says="its pods fit on two other nodes", moved=(("ip-10-0-0-3", 2),), price_now=0.8568, price_then=0.0, scores=()
    ),
)
POD = PodAnswer(
    pod="shop/cart-7f9c4d-x2x9z",
    source=CLUSTER,
    state="refused",
    says=PODS.pods[0].says,
    asks_for=("cpu 2, memory 4Gi", "node selector topology.kubernetes.io/zone=mars-1a"),
    pools=(PoolRefusal(pool="default", reason="requirements", conflict="zone In [mars-1a] and zone In [eu-west-1a]"),),
    existing={"requirements": 143},
    helps=(Help(change="without the node selector", then="node ip-10-0-0-3"),),
)
PLAN = plan.PlanAnswer(
    source=CLUSTER,
    now=NOW,
    new_nodes=(
        plan.NewNodeAnswer(
            pool="gpu",
            types=4,
            cheapest="g6.xlarge",
            price=0.8048,
            capacity_types=("on-demand", "spot"),
            zones=("eu-west-1a", "eu-west-1b"),
            requests=(("cpu", 3_500_000_000), ("memory", 2**33), ("pods", 1)),
            pods=("ml/train-0",),
        ),
    ),
    refused_pods=(Refusal(reason="requirements", count=1, examples=("shop/cart-7f9c4d-x2x9z",)),),
    disruptions=(
        plan.CommandAnswer(
            reason="Underutilized",
            method="multi",
            nodes=("ip-10-0-0-4", "ip-10-0-0-7"),
            replacements=1,
            summary="2 nodes become one m7i.xlarge",
            savings=0.2104,
            look_again_after=15.0,
            becomes=("m7i.xlarge of default",),
            pods=9,
            price=0.4032,
        ),
    ),
    refused_nodes=(Refusal(reason="PodDoNotDisrupt", count=20, examples=("ip-10-0-0-6: pod web/api-0",)),),
    second_looks=(plan.SecondLookAnswer(due=NOW + 8, reason="Empty", nodes=("ip-10-0-0-9",)),),
    budgets=(
        plan.BudgetAnswer(pool="default", reason="Empty", allowed=2147483647, in_use=0, left=2147483647),
        plan.BudgetAnswer(pool="default", reason="Drifted", allowed=2, in_use=1, left=1),
    ),
    left=LeftAnswer(
        month=412.0,
        nodes=6,
        pods=31,
        held=120.0,
        held_pods=12,
        held_by=("budgets", "windows"),
        says="Consolidation: $412 a month left; 31 pods would move; of it $120 held by budgets and windows",
    ),
)
FORECAST = ForecastAnswer(
    cluster=CLUSTER,
    source=CLUSTER,
    at=format_time(NOW),
    until=format_time(NOW + 600_000),
    coming=(
        ComingAnswer(
            at=format_time(NOW + 9000),
            what="a window opens",
            pool="default",
            text="Drifted: 2 nodes",
            nodes=("n-1", "n-2"),
        ),
    ),
    staying=(StayingAnswer(node="n-3", pool="gpu", reason="Drifted", message="a pod must not be disrupted"),),
)


def a_trend() -> TrendAnswer:
    """A working day: cheap at night, dear at noon."""
    points = tuple(
        TrendPoint(
            at=NOW - STEP_SECONDS * i,
            price=48.0 + 14.0 * abs(144 - i) / 144 + i % 7 * 0.3,
            nodes=110 + abs(144 - i) // 4,
        )
        for i in range(287, 0, -1)
    )
    return TrendAnswer(points=points, seen_since=NOW - 7200, partial=False)


def an_answer(kind: str, answer: object) -> Document:
    return document(kind, CLUSTER, answer)


def a_stream(**changed: Any) -> str:
    """The status twice, the second cheaper."""
    found = {**documents(1)["status"], "workflows": UI, **changed}
    later = {
        **found,
        "now": format_time(NOW + 5),
        "totals": {**found["totals"], "price": min(59.0, found["totals"]["price"])},
    }
    return "".join(f"event: status\ndata: {json.dumps(each)}\n\n" for each in (found, later))


def the_page(count: int) -> dict[str, Any]:
    """The files of the page and all that it asks, by path, of a cluster with so many nodes."""
    answers = {
        **documents(count),
        "stream": a_stream(),
        "pods": an_answer("PendingPodList", PODS),
        "trend": an_answer("Trend", a_trend()),
        "plan": an_answer("Plan", PLAN),
        "forecast": an_answer("Forecast", FORECAST),
        "explain/node": an_answer("NodeExplanation", NODE),
        "explain/pod": an_answer("PodExplanation", POD),
        "savings": SAVINGS,
        "log": LOG,
        "replay": FLIGHTS,
        f"replay/{FLIGHT['id']}": REPLAY,
        "shadow": SHADOW,
    }
    return {path: found for path, found in answers.items() if not path.endswith(" document")}


def an_empty_page() -> dict[str, Any]:
    """Of a cluster without nodes, whose pools may make some."""
    status = documents(1)["status"]
    none = {"used": 0.0, "room": 0.0}
    figures = {
        "nodes": 0,
        "claims": 0,
        "pods": 0,
        "pendingPods": 0,
        "price": 0.0,
        "spot": 0.0,
        "unpriced": 0,
        "notOurs": 0,
    }
    totals = {**status["totals"], **figures, "cpu": none, "memory": none}
    pools = [{**each, "nodes": 0, "price": 0.0, "cpu": none, "memory": none} for each in status["pools"]]
    quiet = {"totals": totals, "pools": pools, "underWay": [], "needsPerson": [], "recent": [], "pauses": []}
    pods = an_answer("PendingPodList", replace(PODS, pods=()))
    trend = an_answer("Trend", TrendAnswer())
    nodes = {**documents(0)["nodes"]}
    found = {**the_page(0), "nodes": nodes, "pods": pods, "trend": trend, "status": {**status, **quiet}}
    return {**found, "stream": a_stream(**quiet), "plan": an_answer("Plan", plan.PlanAnswer(source=CLUSTER, now=NOW))}


def replying(answers: Mapping[str, Any]) -> Callable[[str], Reply]:
    """The files of the page as a worker serves them; below each path of these answers whatever follows it is the
    same."""

    def answer(target: str) -> Reply:
        path = target.partition("?")[0]
        file = file_of_page(path)
        if file is not None:
            return file[0], file[1], str(file[2])
        while path and path not in answers:
            path = path.rpartition("/")[0]
        found = answers.get(path)
        if isinstance(found, str):
            return 200, "text/event-stream", found
        return (200, "application/json", json.dumps(found)) if found is not None else NOTHING

    return answer


@contextmanager
def page_of(folder: Path, answers: Mapping[str, Any]) -> Iterator[str]:
    """The address of the page over these answers."""
    with serving_by(folder, replying(answers)) as served, forwarded(served.environment) as address:
        yield address


@contextmanager
def forwarded(person: Mapping[str, str]) -> Iterator[str]:
    """The address of the page, as the command prints it to a person with this environment."""
    command = [sys.executable, "-u", "-m", "dovetail.cli.main", "top", "--web"]
    environment = {**os.environ, **person}
    environment.pop("TEMPORAL_ADDRESS", None)  # else there is a view more
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[0]
    finally:
        process.kill()
        process.wait()

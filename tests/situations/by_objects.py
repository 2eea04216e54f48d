"""Situations on real servers that come about by an object alone: they are played one after another on one worker,
beside one Deployment whose node has drifted, and whose NodePool's budget lets it not go."""

from copy import deepcopy
from typing import Any, Final

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.up import NODE_CLASS
from tests.situations.happenings import beside, paused
from tests.situations.on_servers import WELL, OnServers
from tests.situations.scene import JUST_NOW, Asks
from tests.situations.table import CHECK, MOVES, NEEDS, NO_REASON, NOTHING, ON_ITS_WAY
from worlds.cluster.objects import BUDGETS, no_eviction, node_pool

POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
PODS: Final = "/api/v1/namespaces/default/pods"
RULES: Final = "/apis/dovetail.sh/v1alpha1"
POOL: Final = f"{POOLS}/web"
POD: Final = f"{PODS}/{{pod}}"
NODE: Final = "explain node {node}"
UNBOUNDED: Final = "2147483647"
NONE: Final = [{"nodes": "0"}]


def budgets(*found: Json) -> Json:
    return {"spec": {"disruption": {"budgets": list(found)}}}


def annotated(key: str, value: str | None) -> Json:
    return {"metadata": {"annotations": {key: value}}}


def noted(path: str, key: str, value: str) -> tuple[str, Json, Json]:
    """An annotation of what is there, and without it."""
    return path, annotated(key, value), annotated(key, None)


def limited(*found: Json) -> tuple[str, Json, Json]:
    return POOL, budgets(*found), budgets(*NONE)


def an_applied_pod(name: str, cpu: str = "1", **spec: Any) -> tuple[str, Json]:
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}
    return PODS, body


def an_applied_pool(name: str, types: str = "m5.xlarge", node_class: str = "default", **spec: Any) -> tuple[str, Json]:
    body = node_pool(instance_type=types)
    body["metadata"]["name"] = name
    body["spec"]["template"]["spec"]["nodeClassRef"]["name"] = node_class
    body["spec"].update(spec)
    return POOLS, body


def of_pool(name: str) -> Json:
    return {"nodeSelector": {names.NODE_POOL: name}}


def a_rule(kind: str, plural: str, **spec: Any) -> tuple[str, Json]:
    body = {"apiVersion": "dovetail.sh/v1alpha1", "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}
    return f"{RULES}/{plural}", body


def a_lost_class() -> tuple[str, Json]:
    body = deepcopy(NODE_CLASS)
    body["metadata"]["name"] = "lost"
    body["spec"]["subnetSelectorTerms"] = [{"tags": {"karpenter.sh/discovery": "nowhere"}}]
    return "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", body


OLD_NODE: Final = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old"}}

SITUATIONS: Final = (
    OnServers(
        name="all is well",
        happens=beside(),
        asks=(
            WELL,
            Asks("explain pod default/{pod}", ("it is bound to {node}",), (ON_ITS_WAY,)),
            Asks("history {node}", ("ends: initialised",), ("terminate", "no workflow has worked on")),
            Asks("log --since 1h --kind launch", ("{claim}", "initialised"), ("Traceback",)),
            Asks("savings --since 1h", ("0.00",), ("at least",)),
        ),
    ),
    OnServers(
        name="a budget of no nodes",
        happens=beside(),
        asks=(
            Asks(
                NODE,
                ("it stays: it would go for Drifted, but the budget of NodePool web (nodes: 0) lets no node go",),
                (NO_REASON, UNBOUNDED),
            ),
            Asks("plan", ("no node would go", "NodePool web has no allowance left for Drifted"), ("used up",)),
        ),
    ),
    OnServers(
        name="a closed window",
        happens=beside(changed=[limited({"nodes": "0", "schedule": "@daily", "duration": "24h"})]),
        asks=(Asks(NODE, ("lets no node go for Drifted until 20", "when its window closes"), (NO_REASON,)),),
    ),
    OnServers(
        name="a budget for one reason leaves the others without a limit",
        happens=beside(changed=[limited({"nodes": "0", "reasons": ["Drifted"]})]),
        asks=(Asks(NODE, ("it stays: it would go for Drifted", "no limit"), (NO_REASON, UNBOUNDED)),),
    ),
    OnServers(
        name="a pause, by its author's own command",
        happens=paused,
        asks=(
            Asks("status", ("PAUSED", "an incident")),
            Asks(NODE, ("it stays: disruption paused for NodePool web",), (NO_REASON,)),
        ),
        after=(Asks("status", (NOTHING,), ("PAUSED",)),),
    ),
    OnServers(
        name="a pause whose word nobody knows",
        happens=beside(changed=[noted(POOL, names.PAUSED, "everythng")]),
        asks=(Asks("status", ("'everythng' is none of", "everything voluntary is paused")),),
    ),
    OnServers(
        name="a pod that must not be disrupted",
        happens=beside(changed=[noted(POD, names.DO_NOT_DISRUPT, "true")]),
        asks=(Asks(NODE, ('it stays: Pod has "karpenter.sh/do-not-disrupt"',), ("it would go now",)),),
    ),
    OnServers(
        name="a node that must not be disrupted",
        happens=beside(changed=[noted("/api/v1/nodes/{node}", names.DO_NOT_DISRUPT, "true")]),
        asks=(Asks(NODE, ("it stays: Disruption is blocked through the", names.DO_NOT_DISRUPT), (NO_REASON,)),),
    ),
    OnServers(
        name="a PodDisruptionBudget that allows nothing",
        happens=beside((BUDGETS, no_eviction())),
        asks=(Asks(NODE, ("it stays: Pdb prevents pod evictions", "default/web"), (NO_REASON,)),),
    ),
    OnServers(
        name="a Freeze",
        happens=beside(a_rule("Freeze", "freezes", until="9999-01-01T00:00:00Z", reason="a sale")),
        asks=(Asks("status", ("Freeze freeze", "a sale")), Asks(NODE, ("it stays:",), (NO_REASON,))),
    ),
    OnServers(
        name="a window of a DisruptionPolicy that is closed",
        happens=beside(a_rule("DisruptionPolicy", "disruptionpolicies", deny=[{"from": "00:00", "to": "00:00"}])),
        asks=(Asks(NODE, ("it stays:", "DisruptionPolicy disruptionpolicy"), (NO_REASON,)),),
    ),
    OnServers(
        name="a pod that no type can hold",
        happens=beside(an_applied_pod("big", cpu="9000")),
        asks=(Asks("explain pod default/big", ("large enough", "with smaller requests"), (ON_ITS_WAY,)),),
    ),
    OnServers(
        name="a pod that asks for a zone that is nowhere",
        happens=beside(an_applied_pod("mars", nodeSelector={names.ZONE: "mars-1a"})),
        asks=(Asks("explain pod default/mars", ("mars-1a", "without"), (ON_ITS_WAY,)),),
    ),
    OnServers(
        name="a pod behind a scheduling gate",
        happens=beside(an_applied_pod("gated", schedulingGates=[{"name": "quota"}])),
        asks=(Asks("explain pod default/gated", ("a scheduling gate holds it",), (ON_ITS_WAY, "in the next round")),),
    ),
    OnServers(
        name="a pod that asks for a NodePool that nobody has",
        happens=beside(an_applied_pod("astray", **of_pool("nowhere"))),
        asks=(Asks("explain pod default/astray", ("nowhere",), (ON_ITS_WAY,)),),
    ),
    OnServers(
        name="a NodePool whose requirements let no type through",
        happens=beside(an_applied_pool("none", types="of-no-cloud"), an_applied_pod("lone", **of_pool("none"))),
        asks=(
            Asks(
                "explain pod default/lone", ("none: its own requirements let no instance type through",), ("run out",)
            ),
        ),
    ),
    OnServers(
        name="the limits of a NodePool are reached",
        happens=beside(an_applied_pool("small", limits={"cpu": "1"}), an_applied_pod("lone", **of_pool("small"))),
        asks=(Asks("explain pod default/lone", ("small", "limits"), (ON_ITS_WAY, "run out")),),
    ),
    OnServers(
        name="a NodePool whose class does not exist",
        happens=beside(an_applied_pool("lame", node_class="nowhere")),
        asks=(Asks(CHECK, ("NodePool lame", "not ready"), (f" {NOTHING}",), NEEDS),),
    ),
    OnServers(
        name="a NodePool whose class finds no subnets",
        happens=beside(
            a_lost_class(), an_applied_pool("lost", node_class="lost"), an_applied_pod("lone", **of_pool("lost"))
        ),
        asks=(
            Asks(CHECK, ("NodePool lost", "SubnetsReady", "kubectl describe"), (f" {NOTHING}", "no prices"), NEEDS),
            Asks("explain pod default/lone", ("lost: it is not ready", "kubectl describe"), (ON_ITS_WAY,)),
        ),
    ),
    OnServers(
        name="the brake has stopped launches",
        happens=beside(changed=[noted(POOL, names.LAUNCHES_STOPPED, f"{JUST_NOW} ten nodes came and none was used")]),
        asks=(Asks(CHECK, ("launches are stopped since", "dovetail resume --pool web"), (f" {NOTHING}",), NEEDS),),
    ),
    OnServers(
        name="consolidation rests where what it took was launched again",
        happens=beside(changed=[noted(POOL, names.BREAKER, MOVES)]),
        asks=(Asks("status", ("of 4 nodes that consolidation took within a day 3 were launched again",)),),
    ),
    OnServers(
        name="a node that is not ours",
        happens=beside(("/api/v1/nodes", OLD_NODE)),
        asks=(
            Asks("explain node old", ("it stays: node isn't managed by karpenter", "it is left alone")),
            Asks("nodes", ("1 of them not ours",)),
        ),
    ),
    OnServers(
        name="an annotation that has meant nothing since v1",
        happens=beside(changed=[noted(POD, "karpenter.sh/do-not-evict", "true")]),
        asks=(Asks("doctor", ("WARN before v1: do-not-evict", "1 object with karpenter.sh/do-not-evict"), ("FAIL",)),),
    ),
    OnServers(
        name="names that nothing has",
        happens=beside(),
        asks=(
            Asks("explain node nowhere", ("nowhere: there is no such Node or NodeClaim",), ("Traceback",), 1),
            Asks("explain pod default/nobody", ("default/nobody: there is no such pod",), ("Traceback",), 1),
            Asks("status --pool nowhere", ("there is no such NodePool of ours; there is web",), ("Traceback",), 1),
        ),
    ),
)

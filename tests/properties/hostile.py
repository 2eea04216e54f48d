"""Objects as anybody may write them: JSON that the API server admits and nobody expects, and a small sound cluster.

The cluster has a pool, a pending pod and an empty node. What stands beside them is drawn: pods pending, bound and
ended, nodes, claims, pools, budgets, DaemonSets and volume claims with numbers of thousands of digits, values that are
not what they should be, and hundreds of terms.
"""

from typing import Any, Final

from hypothesis import strategies as st

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.disruption import EC2_CLASS
from worlds.manifests import claim_manifest, node_manifest, pod_manifest, pool_manifest

CREATED: Final = "2023-11-14T20:00:00Z"
NOW: Final = 1_700_000_000.0
GROUP: Final = "karpenter.k8s.aws"
CLASS: Final = {"group": GROUP, "kind": "EC2NodeClass", "name": "default"}

DIGITS: Final = "9" * 5000
QUANTITIES: Final = st.sampled_from(
    [DIGITS, "1e99999", "1e400", "1e-99999", "-1", "0." + "0" * 5000 + "1", "1E400", "9223372036854775808", "1e19", ""]
)
TEXTS: Final = st.sampled_from(["", DIGITS, DIGITS + "h", "-" + DIGITS + "h", "1e400", "²", "٣", "true", "\x00", "inf"])
OPERATORS: Final = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "Like", ""])
VALUES: Final = st.lists(st.sampled_from([DIGITS, "5", "-5", "٣", "", "x" * 70, "1e9"]), max_size=3)
KEYS: Final = st.sampled_from(
    [names.ZONE, names.CAPACITY_TYPE, names.HOSTNAME, names.NODE_POOL, "hostile", "a/b/c", ""]
)
MANY: Final = st.sampled_from([0, 1, 2, 300])


def meta(name: str, **fields: Any) -> Json:
    """metadata of an object."""
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": CREATED, **fields}


def conditions(*types: str) -> list[Json]:
    """Conditions that hold."""
    return [{"type": kind, "status": "True", "reason": kind, "lastTransitionTime": CREATED} for kind in types]


def a_sound_pod(name: str, **spec: Any) -> Json:
    """A pod that the scheduler has given up."""
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        **pod_manifest(cpu="1", memory="1Gi", **spec),
        "metadata": meta(name, namespace="default"),
        "status": {"phase": "Pending", "conditions": [unschedulable]},
    }


def a_sound_pool(name: str, **disruption: Any) -> Json:
    """A ready pool that gives empty nodes back at once."""
    quick = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **disruption}
    return {
        **pool_manifest(of=EC2_CLASS, template={"expireAfter": "Never"}, disruption=quick),
        "metadata": meta(name, generation=1),
        "status": {"conditions": conditions("Ready", "ValidationSucceeded", "NodeClassReady")},
    }


def a_sound_node(name: str, pool: str, pods: str = "110") -> tuple[Json, Json]:
    """A node and its claim, initialised."""
    labels = {
        names.NODE_POOL: pool,
        names.ZONE: "z1",
        names.CAPACITY_TYPE: "on-demand",
        names.INSTANCE_TYPE: "medium",
        names.HOSTNAME: name,
        names.REGISTERED: "true",
        names.INITIALIZED: "true",
    }
    room = {"cpu": "4", "memory": "16Gi", "pods": pods}
    node = {
        **node_manifest(name),
        "metadata": meta(name, labels=labels),
        "spec": {"providerID": f"p://{name}"},
        "status": {"capacity": room, "allocatable": room, "conditions": conditions("Ready")},
    }
    claim = {
        **claim_manifest(of=EC2_CLASS, resources={"requests": {}}),
        "metadata": meta(f"claim-{name}", labels=labels),
        "status": {
            "providerID": f"p://{name}",
            "nodeName": name,
            "capacity": room,
            "allocatable": room,
            "conditions": conditions("Launched", "Registered", "Initialized", "Consolidatable"),
        },
    }
    return node, claim


def expressions() -> st.SearchStrategy[list[Json]]:
    """Terms of a selector."""
    one = st.fixed_dictionaries({"key": KEYS, "operator": OPERATORS, "values": VALUES})
    return st.lists(one, max_size=3)


@st.composite
def affinities(draw: st.DrawFn) -> Json:
    """Required and preferred terms, perhaps hundreds of them."""
    term = {"matchExpressions": draw(expressions())}
    weight = draw(st.sampled_from([1, 100, -1, 2**63, 0]))
    nobody = {"labelSelector": {"matchLabels": {"nobody": "at-all"}}, "topologyKey": draw(KEYS)}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term] * draw(MANY)},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": term}] * draw(MANY),
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": nobody}]
            * draw(MANY)
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [nobody] * draw(st.sampled_from([0, 2]))},
    }


@st.composite
def annotations(draw: st.DrawFn) -> Json:
    """Annotations that rules read."""
    keys = [names.DO_NOT_DISRUPT, names.POD_DELETION_COST, names.FAKE_POD, names.BUFFER_NAME]
    return {key: draw(TEXTS) for key in draw(st.lists(st.sampled_from(keys), unique=True))}


@st.composite
def pods(draw: st.DrawFn, number: int) -> Json:
    """A pod that waits, runs on the busy node, or has ended there."""
    pod = a_sound_pod(f"hostile-{number}")
    pod["metadata"]["annotations"] = draw(annotations())
    spec, status = pod["spec"], pod["status"]
    if draw(st.booleans()):
        spec["containers"][0]["resources"] = {
            "requests": {draw(st.sampled_from(["cpu", "memory", "x"])): draw(QUANTITIES)}
        }
    if draw(st.booleans()):
        spec["affinity"] = draw(affinities())
    if draw(st.booleans()):
        spec["tolerations"] = [{"operator": draw(TEXTS), "key": draw(TEXTS), "tolerationSeconds": 2**63}]
    if draw(st.booleans()):
        skew = draw(st.sampled_from([1, 0, -1, 2**63]))
        spread = {"maxSkew": skew, "topologyKey": draw(KEYS), "whenUnsatisfiable": "ScheduleAnyway"}
        spec["topologySpreadConstraints"] = [spread] * draw(MANY)
    if draw(st.booleans()):
        spec["volumes"] = [
            {"name": "v", "persistentVolumeClaim": {"claimName": draw(st.sampled_from(["pvc", "none"]))}}
        ]
    spec["priority"] = draw(st.sampled_from([None, 2**31 - 1, -(2**31)]))
    where = draw(st.sampled_from(["", "busy", "busy", "nowhere"]))
    if where:
        spec["nodeName"] = where
        status.update(phase=draw(st.sampled_from(["Running", "Failed", "Strange"])), startTime=CREATED, conditions=[])
    return pod


@st.composite
def others(draw: st.DrawFn) -> dict[str, list[Json]]:
    """Objects of other kinds, each perhaps strange in one respect."""
    node, claim = a_sound_node("strange", "strange")
    node["metadata"]["labels"]["hostile"] = draw(TEXTS)
    node["metadata"]["annotations"] = {names.DO_NOT_DISRUPT: draw(TEXTS)}
    node["status"]["allocatable"] = {"cpu": draw(QUANTITIES), "memory": draw(QUANTITIES)}
    claim["metadata"]["annotations"] = {names.PLANNED_PODS: draw(TEXTS), names.PLANNED_BUFFERS: f"a={draw(TEXTS)}"}
    claim["spec"]["terminationGracePeriod"] = draw(st.sampled_from([None, DIGITS + "h", "1s"]))
    schedule = draw(st.sampled_from([None, "@daily", DIGITS, "* * * * *", f"{DIGITS} * * * *", "*/0 * * * *"]))
    budget = {"nodes": draw(st.sampled_from([DIGITS, DIGITS + "%", "-1", "1e400", ""])), "schedule": schedule}
    budget |= {} if schedule is None else {"duration": draw(st.sampled_from(["1h", DIGITS + "h"]))}
    pool = a_sound_pool("strange", budgets=[budget])
    pool["spec"]["limits"] = {"cpu": draw(QUANTITIES)}
    pool["spec"]["weight"] = draw(st.sampled_from([None, 0, 2**70]))
    pool["spec"]["template"]["spec"]["requirements"] = draw(expressions())
    selector = {"matchExpressions": draw(expressions())}
    pdb = {
        "metadata": meta("pdb", namespace="default"),
        "spec": {"selector": selector, "maxUnavailable": draw(TEXTS)},
        "status": {"disruptionsAllowed": draw(st.sampled_from([0, 1, 2**70]))},
    }
    daemon = {
        "metadata": meta("daemon", namespace="default"),
        "spec": {
            "template": {
                "metadata": {},
                "spec": {
                    "containers": [{"name": "c"}],
                    "affinity": draw(affinities()),
                    "nodeSelector": {"no": "where"},
                },
            }
        },
    }
    volume_claim = {
        "metadata": meta("pvc", namespace="default", annotations={"volume.kubernetes.io/selected-node": draw(TEXTS)}),
        "spec": {"storageClassName": draw(TEXTS), "volumeName": draw(st.sampled_from([None, "", DIGITS]))},
        "status": {"phase": draw(TEXTS)},
    }
    return {
        "Node": [node],
        "NodeClaim": [claim],
        "NodePool": [pool],
        "PodDisruptionBudget": [pdb],
        "DaemonSet": [daemon],
        "PersistentVolumeClaim": [volume_claim],
    }


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, list[Json]]:
    """The sound cluster, with anything beside it."""
    empty, busy = a_sound_node("empty", "default", pods="0"), a_sound_node("busy", "default", pods="0")
    strange = draw(others()) if draw(st.booleans()) else {}
    found: dict[str, list[Json]] = {
        "NodePool": [a_sound_pool("default")],
        "Node": [empty[0], busy[0]],
        "NodeClaim": [empty[1], busy[1]],
        "Pod": [a_sound_pod("good"), *[draw(pods(number)) for number in range(draw(st.integers(1, 4)))]],
    }
    for kind, objects in strange.items():
        found[kind] = [*found.get(kind, []), *objects]
    return found


def cached(objects: dict[str, list[Json]]) -> Cache:
    """A cache that was fed with these objects, as a watch would."""
    cache = Cache(CLUSTER_KINDS, report=lambda _unreadable: None)
    for kind, raws in objects.items():
        cache.replace(kind, raws, 1)
    return cache

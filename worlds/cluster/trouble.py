"""Objects that people write and that do harm, on purpose or not: pods that nobody can judge, a policy against
claims."""

from typing import Any, Final, NamedTuple

from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground
from worlds.manifests import pod_manifest

PODS: Final = "/api/v1/namespaces/default/pods"
DIGITS: Final = "9" * 5000
ONCE: Final = "once"
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
POLICY: Final = "no-claims-of-refused"


def unplaceable(name: str, request: str = "1Mi", annotations: Json | None = None, **spec: Any) -> Json:
    """A pod that no node of the pool suits, unless its spec says otherwise."""
    container = {"name": "c", "image": "c:1", "resources": {"requests": {"memory": request}}}
    body = pod_manifest(name, **{"containers": [container], "nodeSelector": {"no": "such-node"}, **spec})
    body["metadata"]["annotations"] = annotations or {}
    return body


def preferring(terms: int, value: str) -> Json:
    """Preferences that no node meets; the API server does not look at their values."""
    expression = {"key": "size", "operator": "Gt", "values": [value]}
    term = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term] * terms}}


def planned_beside(name: str, expressions: list[Json], preferred: bool = False) -> Json:
    """A pod that any pool suits, as large as the good ones: it is planned together with them."""
    term: Json = {"matchExpressions": expressions}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    wished = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    container = {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": "3"}}}
    affinity = {"nodeAffinity": wished if preferred else required}
    return unplaceable(name, nodeSelector={}, containers=[container], affinity=affinity)


def refused_by_the_definition() -> tuple[dict[str, Json], dict[str, Json]]:
    """Pods by name that ask for what no NodeClaim can express: a mistaken label, too many labels, too many bytes; and
    one that only prefers it."""
    colour: Json = {"key": "karpenter.k8s.aws/instance-colour", "operator": "NotIn", "values": ["red"]}
    many: list[Json] = [{"key": f"k{n}", "operator": "NotIn", "values": ["v"]} for n in range(150)]
    large: list[Json] = [{"key": "k", "operator": "NotIn", "values": [f"{n}" + "v" * 50]} for n in range(3000)]
    asking = {"one-label": [colour], "many-labels": many, "many-bytes": large}
    wishing = {"one-preference": planned_beside("one-preference", [colour], preferred=True)}
    return {name: planned_beside(name, expressions) for name, expressions in asking.items()}, wishing


def hostile_pods(node: str) -> dict[str, Json]:
    """Pods by name. Those that are bound are on that node."""
    protected = {names.DO_NOT_DISRUPT: f"{DIGITS}h"}
    fake = {names.FAKE_POD: "true"}
    here: Json = {"nodeName": node, "nodeSelector": {}}
    found = (
        unplaceable("endless-protection", annotations=protected, **here),
        unplaceable("endless-preference", affinity=preferring(1, DIGITS)),
        unplaceable("many-preferences", affinity=preferring(5000, "5")),
        unplaceable("large", request="1e99999"),
        unplaceable("larger", request="1e3000000"),
        unplaceable("large-and-bound", request="1e400", **here),
        unplaceable("digits-and-bound", request=DIGITS, **here),
        unplaceable("not-a-buffer", annotations=fake),
    )
    return {pod["metadata"]["name"]: pod for pod in found}


class Sharing(NamedTuple):
    """Pods by name, good and hostile, with the claims for volumes of each."""

    pods: dict[str, Json]
    volumes: dict[str, list[str]]


async def owner_of_all(ground: Ground) -> Json:
    """A controller of pods that creates and deletes none."""
    uid = (await ground.api.get("/api/v1/namespaces/default")).body["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": uid, "controller": True}


def sharing_pods(owner: Json, good: dict[str, list[str]], of_class: str) -> Sharing:
    """The good ones, and hostile ones of the same owner and size, which any node suits, with volumes of the same class:
    one with twenty, twelve that want the one volume that only one may have and each a node of its own, one with a
    hundred terms against pods of their own, and those whose values nobody can read."""
    apart = {"labelSelector": {"matchLabels": {"wants": ONCE}}, "topologyKey": names.HOSTNAME}
    against = [{**apart, "labelSelector": {"matchLabels": {f"n{n}": "v"}}} for n in range(100)]
    volumes = {
        **good,
        "twenty-volumes": [f"{of_class}-{number}" for number in range(20)],
        **{f"once-{number}": [ONCE] for number in range(12)},
        "endless-preference": [],
        "many-terms": [],
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinities: dict[str, Json] = {
        **{f"once-{number}": {"podAntiAffinity": {required: [apart]}} for number in range(12)},
        "endless-preference": preferring(100, DIGITS),
        "many-terms": {"podAntiAffinity": {required: against}},
    }
    pods = {}
    for name, claims in volumes.items():
        mounted = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
        container = {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": "400m"}}}
        pods[name] = unplaceable(
            name, nodeSelector={}, containers=[container], volumes=mounted, affinity=affinities.get(name, {})
        )
        labels = {"wants": ONCE} if claims == [ONCE] else {}
        pods[name]["metadata"].update(ownerReferences=[owner], labels=labels)
    return Sharing(pods, volumes)


async def create_pods(ground: Ground, pods: dict[str, Json]) -> set[str]:
    """Those that the API server admits."""
    admitted = set()
    for name, pod in pods.items():
        answer = await ground.api.post(PODS, pod)
        assert answer.status in {201, 400, 422}, f"{name}: {answer.status} {answer.text[:300]}"
        if answer.status == 201:
            admitted.add(name)
    return admitted


async def refuse_claims_of(ground: Ground, name: str) -> None:
    """An admission policy that answers 403 to every claim of that pool; returns once it is in force."""
    await refuse_claims(ground, f"object.metadata.labels['karpenter.sh/nodepool'] != '{name}'", name)


async def refuse_claims_for_only(ground: Ground, zone: str) -> None:
    """A policy that does so only to claims for that zone."""
    one = "r.key == 'topology.kubernetes.io/zone' && r.values.size() == 1"
    await refuse_claims(ground, f"!object.spec.requirements.exists(r, {one} && r.values[0] == '{zone}')", "tried", zone)


async def refuse_claims(ground: Ground, expression: str, pool: str, zone: str = "") -> None:
    """A policy that demands this of every claim, and does so of one of that pool or for that zone."""
    message = f"no machines for {zone or pool}"
    rule = {"apiGroups": ["karpenter.sh"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["nodeclaims"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "reason": "Forbidden", "message": message}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    }
    for path, body in ((POLICIES, policy), (BINDINGS, binding)):
        answer = await ground.api.post(path, body)
        assert answer.status == 201, answer.text

    async def refuses() -> bool:
        """The API server takes a moment to follow its own policies."""
        zones: list[Json] = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]
        body = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "tried", "labels": {"karpenter.sh/nodepool": pool}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": zones if zone else [],
            },
        }
        return (await ground.api.post("/apis/karpenter.sh/v1/nodeclaims?dryRun=All", body)).status == 403

    await ground.until(refuses, 60, "the policy is in force")


async def allow_again(ground: Ground) -> None:
    """Remove the policy."""
    await ground.api.delete(f"{BINDINGS}/{POLICY}")
    await ground.api.delete(f"{POLICIES}/{POLICY}")

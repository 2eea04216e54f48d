"""Small random clusters, as raw JSON, for the properties of placement.

Few values per field, so that rules meet: two zones, three labels, a handful of sizes.
"""

from hypothesis import strategies as st

from dovetail.model.values.json import Json

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("z1", "z2", "z3")
APPS = ("x", "y", "z")


def _type(name: str, cpu: int, zones: tuple[str, ...], price: float) -> Json:
    return {
        "name": name,
        "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64" if name == "arm" else "amd64"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": ZONE, "operator": "In", "values": list(zones)},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand", "spot"]},
        ],
        "capacity": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "8"},
        "kubeReserved": {"cpu": "100m"},
        "offerings": [
            {
                "requirements": {ZONE: zone, "karpenter.sh/capacity-type": kind},
                "price": price * factor,
                "available": not (zone == "z3" and kind == "spot"),
            }
            for zone in zones
            for kind, factor in (("on-demand", 1.0), ("spot", 0.4))
        ],
    }


TYPES = [
    _type("small", 2, ZONES, 0.1),
    _type("medium", 4, ZONES, 0.21),
    _type("large", 16, ("z1", "z2"), 0.9),
    _type("arm", 8, ("z2", "z3"), 0.3),
]

_taints = st.sampled_from(([], [{"key": "k", "effect": "NoSchedule"}], [{"key": "k", "effect": "PreferNoSchedule"}]))


@st.composite
def pools(draw: st.DrawFn) -> list[Json]:
    """One to three pools."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        requirements = draw(
            st.sampled_from(
                (
                    [],
                    [{"key": ZONE, "operator": "In", "values": ["z1", "z2"]}],
                    [{"key": ZONE, "operator": "NotIn", "values": ["z1"]}],
                    [{"key": "team", "operator": "In", "values": ["a", "b"]}],
                    [{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}],
                )
            )
        )
        spec: Json = {
            "template": {
                "metadata": {"labels": draw(st.sampled_from(({}, {"tier": "t"})))},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"},
                    "requirements": requirements,
                    "taints": draw(_taints),
                },
            },
            "weight": draw(st.integers(0, 2)),
        }
        if draw(st.booleans()):
            spec["limits"] = {"cpu": str(draw(st.sampled_from((8, 20, 64))))}
        found.append(
            {
                "metadata": {"name": f"pool-{number}", "uid": f"pool-{number}"},
                "spec": spec,
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
        )
    return found


def _term(app: str, key: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _merged(left: Json, right: Json) -> Json:
    """Both: what is a list grows, what is a mapping is merged, what is neither is the right one's."""
    result = dict(left)
    for field, value in right.items():
        present = result.get(field)
        if isinstance(value, dict) and isinstance(present, dict):
            result[field] = _merged(present, value)
        elif isinstance(value, list) and isinstance(present, list):
            result[field] = [*present, *value]
        else:
            result[field] = value
    return result


@st.composite
def _rules(draw: st.DrawFn, app: str) -> Json:
    """One rule or two at once: what each of them remembers must not be taken for the other's."""
    spec: Json = draw(_rule(app))
    return _merged(spec, draw(_rule(app))) if draw(st.integers(0, 2)) == 0 else spec


@st.composite
def _rule(draw: st.DrawFn, app: str) -> Json:
    spec: Json = {}
    key, other = draw(st.sampled_from((ZONE, HOSTNAME))), draw(st.sampled_from(APPS))
    match draw(st.integers(0, 8)):
        case 0:
            spec["nodeSelector"] = {ZONE: draw(st.sampled_from(ZONES))}
        case 1:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": draw(st.integers(1, 2)),
                    "topologyKey": key,
                    "whenUnsatisfiable": draw(st.sampled_from(("DoNotSchedule", "ScheduleAnyway"))),
                    "labelSelector": {"matchLabels": {"app": app}},
                }
            ]
        case 2:
            spec["affinity"] = {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(other, key)]}
            }
        case 3:
            spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, key)]}}
        case 4:
            preferred = [{"weight": 5, "podAffinityTerm": _term(other, key)}]
            spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        case 5:
            expressions: list[Json] = [{"key": "team", "operator": draw(st.sampled_from(("Exists", "DoesNotExist")))}]
            terms: list[Json] = [{"matchExpressions": expressions}]
            if draw(st.booleans()):
                terms.append(
                    {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}
                )
            spec["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            }
    if draw(st.integers(0, 3)) == 0:
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    return spec


@st.composite
def pods(draw: st.DrawFn, nodes: int) -> list[Json]:
    """Up to twelve pods, some bound to one of the nodes."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        app = draw(st.sampled_from(APPS))
        container: Json = {
            "name": "c",
            "image": "x",
            "resources": {"requests": {"cpu": draw(st.sampled_from(("100m", "1", "1500m", "3"))), "memory": "512Mi"}},
        }
        if draw(st.integers(0, 7)) == 0:
            container["ports"] = [{"containerPort": 80, "hostPort": 80}]
        bound = nodes and draw(st.integers(0, 3)) == 0
        spec = {"containers": [container], **({} if bound else draw(_rules(app)))}
        status: Json = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]}
        if bound:
            container["resources"]["requests"]["cpu"] = "100m"
            spec["nodeName"] = f"n{draw(st.integers(0, nodes - 1))}"
            status = {"phase": "Running"}
        found.append(
            {
                "metadata": {
                    "name": f"p{number:02d}",
                    "uid": f"u{draw(st.integers(0, 999))}-{number}",
                    "labels": {"app": app},
                },
                "spec": spec,
                "status": status,
            }
        )
    return found


@st.composite
def clusters(draw: st.DrawFn) -> Json:
    """A whole input."""
    count = draw(st.integers(0, 3))
    nodes, claims = [], []
    for number in range(count):
        labels = {
            "karpenter.sh/nodepool": "pool-0",
            ZONE: draw(st.sampled_from(ZONES)),
            "node.kubernetes.io/instance-type": "medium",
            "kubernetes.io/arch": "amd64",
            "karpenter.sh/registered": "true",
            HOSTNAME: f"n{number}",
        }
        if draw(st.booleans()):
            labels["karpenter.sh/initialized"] = "true"
        room = {"cpu": "3900m", "memory": "16Gi", "pods": "8"}
        nodes.append(
            {
                "metadata": {"name": f"n{number}", "labels": labels},
                "spec": {"providerID": f"p://{number}", "taints": draw(_taints)},
                "status": {"capacity": room, "allocatable": room},
            }
        )
        claims.append(
            {
                "metadata": {"name": f"nc-{number}", "uid": f"nc-{number}", "labels": labels},
                "spec": {"nodeClassRef": {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"}},
                "status": {"providerID": f"p://{number}", "capacity": room, "allocatable": room},
            }
        )
    return {
        "nodePools": draw(pools()),
        "instanceTypes": {"*": TYPES},
        "pods": draw(pods(count)),
        "nodes": nodes,
        "nodeClaims": claims,
        "preferencePolicy": draw(st.sampled_from(("Respect", "Ignore"))),
    }

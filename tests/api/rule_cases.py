"""What Karpenter's API accepts and what it refuses, one place of a valid manifest changed at a time.

NodePool, NodeClaim and NodeOverlay; case.py says how the table is read.
"""

from collections.abc import Callable
from typing import Any

from tests.api import manifests
from tests.api.case import MATCH, REQUIRED, Case, one, vary
from tests.api.manifests import REMOVED, Manifest, changed

POOL_REQUIREMENTS = "spec.template.spec.requirements"
LABELS = "spec.template.metadata.labels"
BUDGETS = "spec.disruption.budgets"

IN_NEEDS_VALUE = "requirements with operator 'In' must have a value defined"
NOT_IN_NEEDS_VALUE = "requirements with operator 'NotIn' must have a value defined"
COMPARISON = "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value"
MIN_VALUES = "requirements with 'minValues' must have at least that many values specified in the 'values' field"
KARPENTER_DOMAIN = 'label domain "karpenter.sh" is restricted'
AWS_DOMAIN = 'label domain "karpenter.k8s.aws" is restricted'
HOSTNAME = 'label "kubernetes.io/hostname" is restricted'
NODE_POOL_KEY = 'label "karpenter.sh/nodepool" is restricted'


pool, claim, overlay = manifests.a_pool, manifests.a_claim, manifests.an_overlay

PLAIN = [
    Case(cites="A-13", what="with nothing but what is required", manifest=pool()),
    Case(cites="A-15", what="with nothing but what is required", manifest=claim()),
    Case(cites="A-17", what="with nothing but what is required", manifest=overlay()),
]


def _requirement_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
    accepted = {
        "In with values": one(key="a.example/b", operator="In", values=["1"]),
        "NotIn with values": one(key="a.example/b", operator="NotIn", values=["1"]),
        "Exists": one(key="a.example/b", operator="Exists"),
        "DoesNotExist": one(key="a.example/b", operator="DoesNotExist"),
        "Gt 0": one(key="a.example/b", operator="Gt", values=["0"]),
        "Gte and Lte": [
            {"key": "a.example/b", "operator": "Gte", "values": ["4"]},
            {"key": "a.example/b", "operator": "Lte", "values": ["9"]},
        ],
        "capacity type": one(key="karpenter.sh/capacity-type", operator="In", values=["spot"]),
        "instance category": one(key="karpenter.k8s.aws/instance-category", operator="In", values=["m"]),
        "zone id": one(key="topology.k8s.aws/zone-id", operator="In", values=["use1-az1"]),
        "kops label": one(key="kops.k8s.io/gpu", operator="In", values=["1"]),
        "any other kubernetes.io label": one(key="foo.kubernetes.io/bar", operator="Exists"),
        "100 of them": [{"key": f"a.example/k{index}", "operator": "Exists"} for index in range(100)],
    }
    return [
        *vary("A-9", make, path, "", accepted),
        *vary(
            "A-9",
            make,
            path,
            IN_NEEDS_VALUE,
            {
                "In with no values": one(key="a", operator="In", values=[]),
                "In without values": one(key="a", operator="In"),
            },
        ),
        *vary(
            "A-9",
            make,
            path,
            COMPARISON,
            {
                "Gt without values": one(key="a", operator="Gt"),
                "Gt -1": one(key="a", operator="Gt", values=["-1"]),
                "Lt with two values": one(key="a", operator="Lt", values=["1", "2"]),
                "Gte with a word": one(key="a", operator="Gte", values=["many"]),
                "Lte with a fraction": one(key="a", operator="Lte", values=["1.5"]),
            },
        ),
        *vary("A-9", make, path, "at most 100 items", {"101 of them": [{"key": "a", "operator": "Exists"}] * 101}),
        *vary("A-9", make, path, "Lte", {"unknown operator": one(key="a", operator="Near")}, f"{path}[0].operator"),
        *vary("A-9", make, path, REQUIRED, {"no key": one(operator="Exists")}, f"{path}[0].key"),
        *vary("A-9", make, path, REQUIRED, {"no operator": one(key="a")}, f"{path}[0].operator"),
        *vary("A-9", make, path, REQUIRED, {"no list": REMOVED}),
        *vary(
            "A-4",
            make,
            path,
            MATCH,
            {"a key with spaces": one(key="a b", operator="Exists")},
            f"{path}[0].key",
        ),
        *vary(
            "A-10",
            make,
            path,
            KARPENTER_DOMAIN,
            {
                key: one(key=key, operator="Exists")
                for key in ("karpenter.sh/other", "foo-karpenter.sh/x", "x.karpenter.sh/y", "karpenter.sh")
            },
            f"{path}[0].key",
        ),
        *vary(
            "A-10",
            make,
            path,
            AWS_DOMAIN,
            {"an unknown AWS label": one(key="karpenter.k8s.aws/other", operator="Exists")},
            f"{path}[0].key",
        ),
        *vary(
            "A-10",
            make,
            path,
            HOSTNAME,
            {"the hostname": one(key="kubernetes.io/hostname", operator="Exists")},
            f"{path}[0].key",
        ),
    ]


def _min_values_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
    fifty = [f"v{index}" for index in range(50)]
    return [
        *vary(
            "A-9",
            make,
            path,
            "",
            {
                "minValues of Exists": one(key="a", operator="Exists", minValues=3),
                "minValues 1 of 1": one(key="a", operator="In", values=["1"], minValues=1),
                "minValues 50 of 50": one(key="a", operator="In", values=fifty, minValues=50),
                "minValues 2 of two equal": one(key="a", operator="In", values=["1", "1"], minValues=2),
            },
        ),
        *vary(
            "A-9", make, path, MIN_VALUES, {"minValues 2 of 1": one(key="a", operator="In", values=["1"], minValues=2)}
        ),
        *vary(
            "A-9",
            make,
            path,
            "greater than or equal to 1",
            {
                "minValues 0": one(key="a", operator="In", values=["1"], minValues=0),
                "minValues -1": one(key="a", operator="In", values=["1"], minValues=-1),
            },
            f"{path}[0].minValues",
        ),
        *vary(
            "A-9",
            make,
            path,
            "less than or equal to 50",
            {"minValues 51": one(key="a", operator="In", values=[*fifty, "v50"], minValues=51)},
            f"{path}[0].minValues",
        ),
    ]


TAINTS = ("spec.template.spec.taints", "spec.template.spec.startupTaints")


def _taint_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
    return [
        *vary(
            "A-11",
            make,
            path,
            "",
            {
                "a taint without value": one(key="a.example/b", effect="NoSchedule"),
                "a taint with value": one(key="a", value="b", effect="NoExecute", timeAdded="2026-01-01T00:00:00Z"),
                "a soft taint": one(key="a", value="b", effect="PreferNoSchedule"),
            },
        ),
        *vary("A-11", make, path, REQUIRED, {"a taint without key": one(effect="NoSchedule")}, f"{path}[0].key"),
        *vary("A-11", make, path, REQUIRED, {"a taint without effect": one(key="a")}, f"{path}[0].effect"),
        *vary("A-11", make, path, "NoExecute", {"effect Never": one(key="a", effect="Never")}, f"{path}[0].effect"),
        *vary("A-11", make, path, MATCH, {"key a b": one(key="a b", effect="NoSchedule")}, f"{path}[0].key"),
        *vary(
            "A-11",
            make,
            path,
            MATCH,
            {"value a b": one(key="a", value="a b", effect="NoSchedule")},
            f"{path}[0].value",
        ),
    ]


def _template_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
    """What a NodePool's template and a NodeClaim's spec have in common."""
    cases = _taint_cases(make, f"{path}.taints") + _taint_cases(make, f"{path}.startupTaints")
    reference = f"{path}.nodeClassRef"
    for name in ("group", "kind", "name"):
        field = f"{reference}.{name}"
        cases += vary("A-12", make, field, f"{name} may not be empty", {f"an empty class {name}": ""})
        cases += vary("A-12", make, field, REQUIRED, {f"no class {name}": REMOVED})
    cases += vary("A-12", make, f"{reference}.group", MATCH, {"a class group with a version": "a.example/v1"})
    cases += vary("A-12", make, reference, REQUIRED, {"no class": REMOVED})
    grace, age = f"{path}.terminationGracePeriod", f"{path}.expireAfter"
    cases += vary("A-6", make, grace, "", {f"grace period {value}": value for value in ("30s", "1h30m", "0s")})
    cases += vary("A-6", make, grace, MATCH, {f"grace period {value}": value for value in ("Never", "-5m", "1d", "30")})
    cases += vary("A-6", make, age, "", {f"expiry {value}": value for value in ("Never", "720h", "1h2m3s")})
    cases += vary("A-6", make, age, MATCH, {f"expiry {value}": value for value in ("never", "1.5h", "30d", "-1s", "")})
    return cases


POOL = [
    *_requirement_cases(pool, POOL_REQUIREMENTS),
    *_min_values_cases(pool, POOL_REQUIREMENTS),
    *_template_cases(pool, "spec.template.spec"),
    *vary(
        "A-10",
        pool,
        POOL_REQUIREMENTS,
        NODE_POOL_KEY,
        {"a requirement on the pool": one(key="karpenter.sh/nodepool", operator="In", values=["a"])},
        f"{POOL_REQUIREMENTS}[0].key",
    ),
    *vary(
        "A-13",
        pool,
        LABELS,
        "",
        {
            "no labels": {},
            "labels": {"a.example/b": "c", "d": ""},
            "a capacity type label": {"karpenter.sh/capacity-type": "spot"},
            "a kops label": {"kops.k8s.io/gpu": "1"},
            "an architecture label": {"kubernetes.io/arch": "arm64"},
            "100 labels": {f"k{index}": "v" for index in range(100)},
        },
    ),
    *vary("A-13", pool, LABELS, "at most 100", {"101 labels": {f"k{index}": "v" for index in range(101)}}),
    *vary("A-5", pool, LABELS, MATCH, {"a label value with a space": {"a": "b c"}}),
    *vary("A-5", pool, LABELS, "63", {"a label value of 64 characters": {"a": "b" * 64}}),
    *vary("A-10", pool, LABELS, KARPENTER_DOMAIN, {"label x.karpenter.sh/y": {"x.karpenter.sh/y": "z"}}),
    *vary("A-10", pool, LABELS, AWS_DOMAIN, {"label karpenter.k8s.aws/x": {"karpenter.k8s.aws/x": "z"}}),
    *vary("A-10", pool, LABELS, HOSTNAME, {"label kubernetes.io/hostname": {"kubernetes.io/hostname": "z"}}),
    *vary("A-10", pool, LABELS, NODE_POOL_KEY, {"label karpenter.sh/nodepool": {"karpenter.sh/nodepool": "z"}}),
    *vary("A-13", pool, "spec.template", REQUIRED, {"no template": REMOVED}),
    *vary("A-13", pool, "spec.disruption.consolidateAfter", "", {f"after {x}": x for x in ("0s", "5m", "Never")}),
    *vary("A-13", pool, "spec.disruption.consolidateAfter", MATCH, {f"after {x}": x for x in ("-1s", "1d", "soon")}),
    *vary(
        "A-13",
        pool,
        "spec.disruption.consolidationPolicy",
        "",
        {f"policy {policy}": policy for policy in ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")},
    ),
    *vary(
        "A-13",
        pool,
        "spec.disruption.consolidationPolicy",
        "WhenEmptyOrUnderutilized",
        {"policy Sometimes": "Sometimes"},
    ),
    *vary(
        "A-13",
        pool,
        BUDGETS,
        "",
        {
            "no budget at all": [],
            **{f"budget {nodes}": one(nodes=nodes) for nodes in ("0", "5", "1000", "0%", "10%", "99%", "100%")},
            "a budget with reasons": one(nodes="1", reasons=["Empty", "Drifted", "Underutilized"]),
            "a budget by the week": one(nodes="1", schedule="@weekly", duration="1h"),
            "a budget by cron": one(nodes="1", schedule="0 9 * * 1-5", duration="8h30m"),
            "a duration in Go's notation": one(nodes="1", schedule="@daily", duration="10m0s"),
            "50 budgets": [{"nodes": "1"}] * 50,
        },
    ),
    *vary(
        "A-13",
        pool,
        BUDGETS,
        MATCH,
        {f"budget {nodes}": one(nodes=nodes) for nodes in ("-1", "101%", "1000%", "-10%", "5.5", "many", "")},
        f"{BUDGETS}[0].nodes",
    ),
    *vary(
        "A-13",
        pool,
        BUDGETS,
        MATCH,
        {
            f"schedule {schedule}": one(nodes="1", schedule=schedule, duration="1h")
            for schedule in ("@every-now-and-then", "* * * *", "bad")
        },
        f"{BUDGETS}[0].schedule",
    ),
    *vary(
        "A-13",
        pool,
        BUDGETS,
        MATCH,
        {
            f"budget duration {duration}": one(nodes="1", schedule="@daily", duration=duration)
            for duration in ("30s", "1d", "-1h", "1h30s", "Never")
        },
        f"{BUDGETS}[0].duration",
    ),
    *vary(
        "A-13",
        pool,
        BUDGETS,
        "'schedule' must be set with 'duration'",
        {
            "a schedule without duration": one(nodes="1", schedule="@daily"),
            "a duration without schedule": one(nodes="1", duration="1h"),
            "a good budget and one without duration": [{"nodes": "1"}, {"nodes": "1", "schedule": "@daily"}],
        },
    ),
    *vary("A-13", pool, BUDGETS, "Drifted", {"reason Bored": one(reasons=["Bored"])}, f"{BUDGETS}[0].reasons[0]"),
    *vary(
        "A-13",
        pool,
        BUDGETS,
        "Duplicate value",
        {"a reason twice": one(reasons=["Empty"] * 2)},
        f"{BUDGETS}[0].reasons",
    ),
    *vary("A-13", pool, BUDGETS, "at most 50 items", {"51 budgets": [{"nodes": "1"}] * 51}),
    *vary("A-7", pool, "spec.limits", "", {"limits": {"cpu": 1000, "memory": "1000Gi", "nodes": "10", "a.b/c": "1e3"}}),
    *vary("A-7", pool, "spec.limits", "", {"a limit": {"cpu": "0.5"}, "another": {"cpu": ".5k"}}),
    *vary("A-7", pool, "spec.limits", MATCH, {"a limit in words": {"cpu": "much"}}),
    *vary("A-13", pool, "spec.weight", "", {"weight 1": 1, "weight 100": 100}),
    *vary("A-13", pool, "spec.weight", "greater than or equal to 1", {"weight 0": 0}),
    *vary("A-13", pool, "spec.weight", "less than or equal to 100", {"weight 101": 101}),
    *vary("A-13", pool, "spec.weight", "integer", {"weight as text": "10"}),
    *vary("A-13", pool, "spec.replicas", "", {"no replicas": 0, "3 replicas": 3}),
    *vary("A-13", pool, "spec.replicas", "greater than or equal to 0", {"-1 replicas": -1}),
]


def _static(path: str, value: Any) -> Callable[[], Manifest]:
    return lambda: changed(changed(pool(), "spec.replicas", 3), path, value)


STATIC_LIMITS = "only 'limits.nodes' is supported on static NodePools"
STATIC_WEIGHT = "'weight' is not supported on static NodePools"
STATIC = [
    *vary("A-14", _static("spec.replicas", 3), "spec.limits", "", {"static, no limits": {}, "static": {"nodes": "5"}}),
    *vary(
        "A-14",
        _static("spec.replicas", 3),
        "spec.limits",
        STATIC_LIMITS,
        {"static, cpu limited": {"cpu": "5"}, "static, nodes and cpu limited": {"nodes": "5", "cpu": "5"}},
        "spec",
    ),
    *vary("A-14", _static("spec.replicas", 3), "spec.weight", STATIC_WEIGHT, {"static with weight": 5}, "spec"),
    *vary(
        "A-13",
        _static("spec.replicas", 3),
        "spec.disruption",
        "",
        {"static with a policy": {"consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty"}},
    ),
]

CLAIM = [
    *_requirement_cases(claim, "spec.requirements"),
    *_min_values_cases(claim, "spec.requirements"),
    *_template_cases(claim, "spec"),
    *vary(
        "A-10",
        claim,
        "spec.requirements",
        "",
        {"a requirement on the pool": one(key="karpenter.sh/nodepool", operator="In", values=["a"])},
    ),
    *vary("A-15", claim, "spec.resources", "", {"requests": {"requests": {"cpu": "1500m", "pods": 3}}}),
    *vary("A-7", claim, "spec.resources", MATCH, {"a request in words": {"requests": {"cpu": "much"}}}),
]

OVERLAY = [
    *_requirement_cases(overlay, "spec.requirements"),
    *vary(
        "A-17",
        overlay,
        "spec.requirements",
        NOT_IN_NEEDS_VALUE,
        {"NotIn with no values": one(key="a", operator="NotIn", values=[])},
    ),
    *vary(
        "A-10",
        overlay,
        "spec.requirements",
        "",
        {"a requirement on the pool": one(key="karpenter.sh/nodepool", operator="In", values=["a"])},
    ),
    *vary(
        "W-3",
        overlay,
        "spec.requirements",
        AWS_DOMAIN,
        {"a requirement on the tenancy": one(key="karpenter.k8s.aws/instance-tenancy", operator="Exists")},
        "spec.requirements[0].key",
    ),
    *vary("A-17", overlay, "spec.price", "", {f"price {price}": price for price in ("0", "1", "0.01")}),
    *vary("A-17", overlay, "spec.price", MATCH, {f"price {price}": price for price in ("-1", "+1", "1%", ".5", "a")}),
    *vary(
        "A-17",
        overlay,
        "spec.priceAdjustment",
        "",
        {f"adjustment {value}": value for value in ("+1", "-1", "+.5", "-0.5", "+10%", "+150%", "-99.9%", "-100%")},
    ),
    *vary(
        "A-17",
        overlay,
        "spec.priceAdjustment",
        MATCH,
        {f"adjustment {value}": value for value in ("1", "10%", "-101%", "-100.5%", "++1", "a")},
    ),
    *vary(
        "A-17",
        lambda: changed(overlay(), "spec.price", "1"),
        "spec.priceAdjustment",
        "cannot set both 'price' and 'priceAdjustment'",
        {"price and adjustment": "+1"},
        "spec",
    ),
    *vary("A-17", overlay, "spec.capacity", "", {"capacity": {"example.com/gpu": 1, "hugepages-2Mi": "4Mi"}}),
    *vary(
        "A-17",
        overlay,
        "spec.capacity",
        "invalid resource restricted",
        {f"capacity of {name}": {name: "1"} for name in ("cpu", "memory", "ephemeral-storage", "pods")},
    ),
    *vary("A-17", overlay, "spec.weight", "", {"weight 10000": 10000}),
    *vary("A-17", overlay, "spec.weight", "greater than or equal to 1", {"weight 0": 0}),
    *vary("A-17", overlay, "spec.weight", "less than or equal to 10000", {"weight 10001": 10001}),
]

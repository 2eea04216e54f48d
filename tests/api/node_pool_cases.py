"""What Karpenter's API accepts and refuses of a NodePool (API-10, API-13, API-14); case.py says how the table is
read."""

from collections.abc import Callable
from typing import Any

from tests.api.case import MATCH, REQUIRED, At, Case, one, vary
from tests.api.manifests import REMOVED, Manifest, a_written_pool, changed
from tests.api.template_cases import (
    AWS_DOMAIN,
    HOSTNAME,
    KARPENTER_DOMAIN,
    min_values_cases,
    requirement_cases,
    template_cases,
)

POOL_REQUIREMENTS = "spec.template.spec.requirements"
LABELS = "spec.template.metadata.labels"
BUDGETS = "spec.disruption.budgets"
NODE_POOL_KEY = 'label "karpenter.sh/nodepool" is restricted'

PLAIN = [Case(cites="API-13", what="with nothing but what is required", manifest=a_written_pool())]
POOL = [
    *requirement_cases(a_written_pool, POOL_REQUIREMENTS),
    *min_values_cases(a_written_pool, POOL_REQUIREMENTS),
    *template_cases(a_written_pool, "spec.template.spec"),
    *vary(
        "API-10",
        a_written_pool,
        POOL_REQUIREMENTS,
        At(f"{POOL_REQUIREMENTS}[0].key", NODE_POOL_KEY),
        {"a requirement on the pool": one(key="karpenter.sh/nodepool", operator="In", values=["a"])},
    ),
    *vary(
        "API-13",
        a_written_pool,
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
    *vary("API-13", a_written_pool, LABELS, "at most 100", {"101 labels": {f"k{index}": "v" for index in range(101)}}),
    *vary("API-5", a_written_pool, LABELS, MATCH, {"a label value with a space": {"a": "b c"}}),
    *vary("API-5", a_written_pool, LABELS, "63", {"a label value of 64 characters": {"a": "b" * 64}}),
    *vary("API-10", a_written_pool, LABELS, KARPENTER_DOMAIN, {"label x.karpenter.sh/y": {"x.karpenter.sh/y": "z"}}),
    *vary("API-10", a_written_pool, LABELS, AWS_DOMAIN, {"label karpenter.k8s.aws/x": {"karpenter.k8s.aws/x": "z"}}),
    *vary(
        "API-10", a_written_pool, LABELS, HOSTNAME, {"label kubernetes.io/hostname": {"kubernetes.io/hostname": "z"}}
    ),
    *vary(
        "API-10", a_written_pool, LABELS, NODE_POOL_KEY, {"label karpenter.sh/nodepool": {"karpenter.sh/nodepool": "z"}}
    ),
    *vary("API-13", a_written_pool, "spec.template", REQUIRED, {"no template": REMOVED}),
    *vary(
        "API-13",
        a_written_pool,
        "spec.disruption.consolidateAfter",
        "",
        {f"after {x}": x for x in ("0s", "5m", "Never")},
    ),
    *vary(
        "API-13",
        a_written_pool,
        "spec.disruption.consolidateAfter",
        MATCH,
        {f"after {x}": x for x in ("-1s", "1d", "soon")},
    ),
    *vary(
        "API-13",
        a_written_pool,
        "spec.disruption.consolidationPolicy",
        "",
        {f"policy {policy}": policy for policy in ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")},
    ),
    *vary(
        "API-13",
        a_written_pool,
        "spec.disruption.consolidationPolicy",
        "WhenEmptyOrUnderutilized",
        {"policy Sometimes": "Sometimes"},
    ),
    *vary(
        "API-13",
        a_written_pool,
        BUDGETS,
        "",
        {
            "no budget at all": [],
            **{f"budget {nodes}": one(nodes=nodes) for nodes in ("0", "5", "1000", "0%", "10%", "99%", "100%")},
            "a budget with reasons": one(nodes="1", reasons=["Empty", "Drifted", "Underutilized"]),
            "a budget for repair": one(nodes="1", reasons=["Unhealthy"]),
            "a budget by the week": one(nodes="1", schedule="@weekly", duration="1h"),
            "a budget by cron": one(nodes="1", schedule="0 9 * * 1-5", duration="8h30m"),
            "a duration in Go's notation": one(nodes="1", schedule="@daily", duration="10m0s"),
            "50 budgets": [{"nodes": "1"}] * 50,
        },
    ),
    *vary(
        "API-13",
        a_written_pool,
        BUDGETS,
        At(f"{BUDGETS}[0].nodes", MATCH),
        {f"budget {nodes}": one(nodes=nodes) for nodes in ("-1", "101%", "1000%", "-10%", "5.5", "many", "")},
    ),
    *vary(
        "API-13",
        a_written_pool,
        BUDGETS,
        At(f"{BUDGETS}[0].schedule", MATCH),
        {
            f"schedule {schedule}": one(nodes="1", schedule=schedule, duration="1h")
            for schedule in ("@every-now-and-then", "* * * *", "bad")
        },
    ),
    *vary(
        "API-13",
        a_written_pool,
        BUDGETS,
        At(f"{BUDGETS}[0].duration", MATCH),
        {
            f"budget duration {duration}": one(nodes="1", schedule="@daily", duration=duration)
            for duration in ("30s", "1d", "-1h", "1h30s", "Never")
        },
    ),
    *vary(
        "API-13",
        a_written_pool,
        BUDGETS,
        "'schedule' must be set with 'duration'",
        {
            "a schedule without duration": one(nodes="1", schedule="@daily"),
            "a duration without schedule": one(nodes="1", duration="1h"),
            "a good budget and one without duration": [{"nodes": "1"}, {"nodes": "1", "schedule": "@daily"}],
        },
    ),
    *vary(
        "API-13",
        a_written_pool,
        BUDGETS,
        At(f"{BUDGETS}[0].reasons[0]", "Drifted"),
        {"reason Bored": one(reasons=["Bored"])},
    ),
    *vary(
        "API-13",
        a_written_pool,
        BUDGETS,
        At(f"{BUDGETS}[0].reasons", "Duplicate value"),
        {"a reason twice": one(reasons=["Empty"] * 2)},
    ),
    *vary("API-13", a_written_pool, BUDGETS, "at most 50 items", {"51 budgets": [{"nodes": "1"}] * 51}),
    *vary(
        "API-7",
        a_written_pool,
        "spec.limits",
        "",
        {"limits": {"cpu": 1000, "memory": "1000Gi", "nodes": "10", "a.b/c": "1e3"}},
    ),
    *vary("API-7", a_written_pool, "spec.limits", "", {"a limit": {"cpu": "0.5"}, "another": {"cpu": ".5k"}}),
    *vary(
        "API-7",
        a_written_pool,
        "spec.limits",
        MATCH,
        {"a limit in words": {"cpu": "much"}, "an unknown unit": {"cpu": "1Zi"}},
    ),
    *vary("API-13", a_written_pool, "spec.weight", "", {"weight 1": 1, "weight 100": 100}),
    *vary("API-13", a_written_pool, "spec.weight", "greater than or equal to 1", {"weight 0": 0}),
    *vary("API-13", a_written_pool, "spec.weight", "less than or equal to 100", {"weight 101": 101}),
    *vary("API-13", a_written_pool, "spec.weight", "integer", {"weight as text": "10"}),
    *vary("API-13", a_written_pool, "spec.replicas", "", {"no replicas": 0, "3 replicas": 3}),
    *vary("API-13", a_written_pool, "spec.replicas", "greater than or equal to 0", {"-1 replicas": -1}),
]


def _static(path: str, value: Any) -> Callable[[], Manifest]:
    return lambda: changed(changed(a_written_pool(), "spec.replicas", 3), path, value)


STATIC_LIMITS = "only 'limits.nodes' is supported on static NodePools"
STATIC_WEIGHT = "'weight' is not supported on static NodePools"
STATIC = [
    *vary(
        "API-14", _static("spec.replicas", 3), "spec.limits", "", {"static, no limits": {}, "static": {"nodes": "5"}}
    ),
    *vary(
        "API-14",
        _static("spec.replicas", 3),
        "spec.limits",
        At("spec", STATIC_LIMITS),
        {"static, cpu limited": {"cpu": "5"}, "static, nodes and cpu limited": {"nodes": "5", "cpu": "5"}},
    ),
    *vary("API-14", _static("spec.replicas", 3), "spec.weight", At("spec", STATIC_WEIGHT), {"static with weight": 5}),
    *vary(
        "API-13",
        _static("spec.replicas", 3),
        "spec.disruption",
        "",
        {"static with a policy": {"consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty"}},
    ),
]

NODE_POOL = [*PLAIN, *POOL, *STATIC]

"""What Karpenter's API accepts and refuses of NodeClaims and NodeOverlays (API-15, API-17); case.py says how it is
read."""

from tests.api.case import MATCH, At, Case, one, vary
from tests.api.manifests import a_written_claim, an_overlay, changed
from tests.api.template_cases import AWS_DOMAIN, min_values_cases, requirement_cases, template_cases

NOT_IN_NEEDS_VALUE = "requirements with operator 'NotIn' must have a value defined"

CLAIM = [
    Case(cites="API-15", what="with nothing but what is required", manifest=a_written_claim()),
    *requirement_cases(a_written_claim, "spec.requirements"),
    *min_values_cases(a_written_claim, "spec.requirements"),
    *template_cases(a_written_claim, "spec"),
    *vary(
        "API-10",
        a_written_claim,
        "spec.requirements",
        "",
        {"a requirement on the pool": one(key="karpenter.sh/nodepool", operator="In", values=["a"])},
    ),
    *vary("API-15", a_written_claim, "spec.resources", "", {"requests": {"requests": {"cpu": "1500m", "pods": 3}}}),
    *vary("API-7", a_written_claim, "spec.resources", MATCH, {"a request in words": {"requests": {"cpu": "much"}}}),
]

OVERLAY = [
    Case(cites="API-17", what="with nothing but what is required", manifest=an_overlay()),
    *requirement_cases(an_overlay, "spec.requirements"),
    *vary(
        "API-17",
        an_overlay,
        "spec.requirements",
        NOT_IN_NEEDS_VALUE,
        {"NotIn with no values": one(key="a", operator="NotIn", values=[])},
    ),
    *vary(
        "API-10",
        an_overlay,
        "spec.requirements",
        "",
        {"a requirement on the pool": one(key="karpenter.sh/nodepool", operator="In", values=["a"])},
    ),
    *vary(
        "AWS-3",
        an_overlay,
        "spec.requirements",
        At("spec.requirements[0].key", AWS_DOMAIN),
        {"a requirement on the tenancy": one(key="karpenter.k8s.aws/instance-tenancy", operator="Exists")},
    ),
    *vary("API-17", an_overlay, "spec.price", "", {f"price {price}": price for price in ("0", "1", "0.01")}),
    *vary(
        "API-17", an_overlay, "spec.price", MATCH, {f"price {price}": price for price in ("-1", "+1", "1%", ".5", "a")}
    ),
    *vary(
        "API-17",
        an_overlay,
        "spec.priceAdjustment",
        "",
        {f"adjustment {value}": value for value in ("+1", "-1", "+.5", "-0.5", "+10%", "+150%", "-99.9%", "-100%")},
    ),
    *vary(
        "API-17",
        an_overlay,
        "spec.priceAdjustment",
        MATCH,
        {f"adjustment {value}": value for value in ("1", "10%", "-101%", "-100.5%", "++1", "a")},
    ),
    *vary(
        "API-17",
        lambda: changed(an_overlay(), "spec.price", "1"),
        "spec.priceAdjustment",
        At("spec", "cannot set both 'price' and 'priceAdjustment'"),
        {"price and adjustment": "+1"},
    ),
    *vary("API-17", an_overlay, "spec.capacity", "", {"capacity": {"example.com/gpu": 1, "hugepages-2Mi": "4Mi"}}),
    *vary(
        "API-17",
        an_overlay,
        "spec.capacity",
        "invalid resource restricted",
        {f"capacity of {name}": {name: "1"} for name in ("cpu", "memory", "ephemeral-storage", "pods")},
    ),
    *vary("API-17", an_overlay, "spec.weight", "", {"weight 10000": 10000}),
    *vary("API-17", an_overlay, "spec.weight", "greater than or equal to 1", {"weight 0": 0}),
    *vary("API-17", an_overlay, "spec.weight", "less than or equal to 10000", {"weight 10001": 10001}),
]

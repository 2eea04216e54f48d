"""What is accepted and refused alike in a NodePool's template, a NodeClaim and a NodeOverlay (API-4 to API-12).

Requirements, taints, the reference to a NodeClass, the two durations; case.py says how the table is read.
"""

from collections.abc import Callable

from tests.api.case import MATCH, REQUIRED, At, Case, one, vary
from tests.api.manifests import REMOVED, Manifest

IN_NEEDS_VALUE = "requirements with operator 'In' must have a value defined"
COMPARISON = "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value"
MIN_VALUES = "requirements with 'minValues' must have at least that many values specified in the 'values' field"
KARPENTER_DOMAIN = 'label domain "karpenter.sh" is restricted'
AWS_DOMAIN = 'label domain "karpenter.k8s.aws" is restricted'
HOSTNAME = 'label "kubernetes.io/hostname" is restricted'


def requirement_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
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
    unchecked = {
        "a value of 64 characters": one(key="a", operator="In", values=["b" * 64]),
        "a value with a space": one(key="a", operator="In", values=["b c"]),
    }
    return [
        *vary("API-9", make, path, "", accepted),
        *vary("API-5", make, path, "", unchecked),
        *vary("API-4", make, path, "", {"a key of 316 characters": one(key="a" * 316, operator="Exists")}),
        *vary(
            "API-4",
            make,
            path,
            At(f"{path}[0].key", "316"),
            {"a key of 317 characters": one(key="a" * 317, operator="Exists")},
        ),
        *vary(
            "API-9",
            make,
            path,
            IN_NEEDS_VALUE,
            {
                "In with no values": one(key="a", operator="In", values=[]),
                "In without values": one(key="a", operator="In"),
            },
        ),
        *vary(
            "API-9",
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
        *vary("API-9", make, path, "at most 100 items", {"101 of them": [{"key": "a", "operator": "Exists"}] * 101}),
        *vary(
            "API-9", make, path, At(f"{path}[0].operator", "Lte"), {"unknown operator": one(key="a", operator="Near")}
        ),
        *vary("API-9", make, path, At(f"{path}[0].key", REQUIRED), {"no key": one(operator="Exists")}),
        *vary("API-9", make, path, At(f"{path}[0].operator", REQUIRED), {"no operator": one(key="a")}),
        *vary("API-9", make, path, REQUIRED, {"no list": REMOVED}),
        *vary(
            "API-4",
            make,
            path,
            At(f"{path}[0].key", MATCH),
            {"a key with spaces": one(key="a b", operator="Exists")},
        ),
        *vary(
            "API-10",
            make,
            path,
            At(f"{path}[0].key", KARPENTER_DOMAIN),
            {
                key: one(key=key, operator="Exists")
                for key in ("karpenter.sh/other", "foo-karpenter.sh/x", "x.karpenter.sh/y", "karpenter.sh")
            },
        ),
        *vary(
            "API-10",
            make,
            path,
            At(f"{path}[0].key", AWS_DOMAIN),
            {"an unknown AWS label": one(key="karpenter.k8s.aws/other", operator="Exists")},
        ),
        *vary(
            "API-10",
            make,
            path,
            At(f"{path}[0].key", HOSTNAME),
            {"the hostname": one(key="kubernetes.io/hostname", operator="Exists")},
        ),
    ]


def min_values_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
    fifty = [f"v{index}" for index in range(50)]
    return [
        *vary(
            "API-9",
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
            "API-9",
            make,
            path,
            MIN_VALUES,
            {"minValues 2 of 1": one(key="a", operator="In", values=["1"], minValues=2)},
        ),
        *vary(
            "API-9",
            make,
            path,
            At(f"{path}[0].minValues", "greater than or equal to 1"),
            {
                "minValues 0": one(key="a", operator="In", values=["1"], minValues=0),
                "minValues -1": one(key="a", operator="In", values=["1"], minValues=-1),
            },
        ),
        *vary(
            "API-9",
            make,
            path,
            At(f"{path}[0].minValues", "less than or equal to 50"),
            {"minValues 51": one(key="a", operator="In", values=[*fifty, "v50"], minValues=51)},
        ),
    ]


def _taint_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
    return [
        *vary(
            "API-11",
            make,
            path,
            "",
            {
                "a taint without value": one(key="a.example/b", effect="NoSchedule"),
                "a taint with value": one(key="a", value="b", effect="NoExecute", timeAdded="2026-01-01T00:00:00Z"),
                "a soft taint": one(key="a", value="b", effect="PreferNoSchedule"),
            },
        ),
        *vary("API-11", make, path, At(f"{path}[0].key", REQUIRED), {"a taint without key": one(effect="NoSchedule")}),
        *vary("API-11", make, path, At(f"{path}[0].effect", REQUIRED), {"a taint without effect": one(key="a")}),
        *vary(
            "API-11", make, path, At(f"{path}[0].effect", "NoExecute"), {"effect Never": one(key="a", effect="Never")}
        ),
        *vary("API-11", make, path, At(f"{path}[0].key", MATCH), {"key a b": one(key="a b", effect="NoSchedule")}),
        *vary(
            "API-11",
            make,
            path,
            At(f"{path}[0].value", MATCH),
            {"value a b": one(key="a", value="a b", effect="NoSchedule")},
        ),
    ]


def template_cases(make: Callable[[], Manifest], path: str) -> list[Case]:
    """What a NodePool's template and a NodeClaim's spec have in common."""
    cases = _taint_cases(make, f"{path}.taints") + _taint_cases(make, f"{path}.startupTaints")
    reference = f"{path}.nodeClassRef"
    for name in ("group", "kind", "name"):
        field = f"{reference}.{name}"
        cases += vary("API-12", make, field, f"{name} may not be empty", {f"an empty class {name}": ""})
        cases += vary("API-12", make, field, REQUIRED, {f"no class {name}": REMOVED})
    cases += vary("API-12", make, f"{reference}.group", MATCH, {"a class group with a version": "a.example/v1"})
    cases += vary("API-12", make, reference, REQUIRED, {"no class": REMOVED})
    grace, age = f"{path}.terminationGracePeriod", f"{path}.expireAfter"
    cases += vary("API-6", make, grace, "", {f"grace period {value}": value for value in ("30s", "1h30m", "0s")})
    cases += vary(
        "API-6", make, grace, MATCH, {f"grace period {value}": value for value in ("Never", "-5m", "1d", "1.5h", "30")}
    )
    cases += vary("API-6", make, age, "", {f"expiry {value}": value for value in ("Never", "720h", "1h2m3s")})
    cases += vary(
        "API-6", make, age, MATCH, {f"expiry {value}": value for value in ("never", "1.5h", "30d", "-1s", "")}
    )
    return cases

"""Says a recorded input in other words that mean the same to Kubernetes.

Each rewording changes a case's `input` in place. What was recorded then still is the right answer, so inputs are tried
that nobody recorded: other spellings of quantities, empty fields, labels and tolerations that concern nobody.
"""

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

Reworded = Callable[[Random, dict[str, Any]], None]

_AMOUNTS: Final = frozenset({"requests", "limits", "capacity", "allocatable", "kubeReserved"})
_OLD_NAMES: Final = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "node.kubernetes.io/instance-type": "beta.kubernetes.io/instance-type",
}
_EMPTY_AFFINITIES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"nodeAffinity": {}},
    {"podAffinity": {}},
    {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
    {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
)


def pod_specs(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of pods and of DaemonSets."""
    yield from (pod["spec"] for pod in given.get("pods") or [])
    yield from (each["spec"]["template"]["spec"] for each in given.get("daemonSets") or [])


def required_terms(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Of the required node affinity."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return list(required.get("nodeSelectorTerms") or [])


def other_quantities(random: Random, given: dict[str, Any]) -> None:
    """`1` as `1000m`, `1Gi` as `1024Mi`."""
    kinds = [kind for kind in given if kind != "csiNodes"]  # there, amounts are counts and no quantities
    for kind in kinds:
        _respell(random, given[kind], is_amount=False)


def _respell(random: Random, found: Any, *, is_amount: bool) -> None:
    entries = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in list(entries):
        if is_amount and isinstance(value, str | int):
            found[key] = _spelling(random, str(value))
        else:
            _respell(random, value, is_amount=key in _AMOUNTS)


def _spelling(random: Random, text: str) -> str:
    parts = re.fullmatch(r"(\d+)(m|Mi|Gi|)", text)
    if parts is None:
        return text
    number, suffix = int(parts[1]), parts[2]
    spellings = {
        "": (f"{number * 1000}m", f"{number}.0", f"+{number}", f"{number}e0", f"0{number}"),
        "m": (f"{number * 1000}u", f"{number}e-3"),
        "Mi": (f"{number * 1024}Ki", f"{number * 2**20}"),
        "Gi": (f"{number * 1024}Mi", f"{number * 2**20}Ki"),
    }
    return random.choice((text, *spellings[suffix]))


def empty_fields(random: Random, given: dict[str, Any]) -> None:
    """Null, an empty list, or an affinity that asks for nothing, where there was no field."""
    for spec in pod_specs(given):
        for field in ("tolerations", "topologySpreadConstraints", "initContainers", "volumes"):
            if field not in spec and random.random() < 0.4:
                spec[field] = random.choice((None, []))
        if "nodeSelector" not in spec and random.random() < 0.4:
            spec["nodeSelector"] = random.choice((None, {}))
        if "affinity" not in spec and random.random() < 0.4:
            spec["affinity"] = random.choice((None, *_EMPTY_AFFINITIES))


def selectors_by_expressions(random: Random, given: dict[str, Any]) -> None:
    """matchLabels as matchExpressions."""
    del random
    for kind in ("pods", "pdbs"):
        _by_expressions(given.get(kind))


def _by_expressions(found: Any) -> None:
    entries = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in list(entries):
        _by_expressions(value)
        if key in ("labelSelector", "namespaceSelector", "selector") and isinstance(value, dict):
            labels = value.pop("matchLabels", None) or {}
            added = [{"key": label, "operator": "In", "values": [wanted]} for label, wanted in labels.items()]
            if added:
                value["matchExpressions"] = [*(value.get("matchExpressions") or []), *added]


def other_order(random: Random, given: dict[str, Any]) -> None:
    """Objects, tolerations and the expressions of a term come in no order."""
    for kind in ("pods", "nodes", "nodeClaims", "pvcs", "pvs", "namespaces", "pdbs", "csiNodes", "storageClasses"):
        random.shuffle(given.get(kind) or [])
    for spec in pod_specs(given):
        random.shuffle(spec.get("tolerations") or [])
        for term in required_terms(spec):
            random.shuffle(term.get("matchExpressions") or [])


def labels_that_nobody_selects(random: Random, given: dict[str, Any]) -> None:
    """Pods that were alike are so no longer."""
    for pod in given.get("pods") or []:
        metadata = pod["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), "nobody.example.com/asks": str(random.randint(0, 3))}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), "nobody.example.com/reads": "x"}


def tolerations_of_nothing(random: Random, given: dict[str, Any]) -> None:
    """Of a taint that no node has, and each twice."""
    for spec in pod_specs(given):
        if random.random() < 0.6:
            more = {"key": f"nobody.example.com/{random.randint(0, 2)}", "operator": "Exists"}
            spec["tolerations"] = [*(spec.get("tolerations") or []), more]
        if random.random() < 0.4:
            spec["tolerations"] = 2 * (spec.get("tolerations") or [])


def expressions_said_twice(random: Random, given: dict[str, Any]) -> None:
    """An expression again, a value again, and Exists beside In."""
    for spec in pod_specs(given):
        for term in required_terms(spec):
            expressions = term.get("matchExpressions") or []
            for each in list(expressions):
                if each["operator"] == "In" and each.get("values"):
                    expressions.append({"key": each["key"], "operator": "Exists"})
                    each["values"] = [*each["values"], each["values"][0]]
                if random.random() < 0.5:
                    expressions.append(dict(each))


def old_names_of_labels(random: Random, given: dict[str, Any]) -> None:
    """Those that were renamed long ago."""
    for spec in pod_specs(given):
        selector = spec.get("nodeSelector") or {}
        for name in [name for name in selector if name in _OLD_NAMES and random.random() < 0.7]:
            selector[_OLD_NAMES[name]] = selector.pop(name)
        for term in required_terms(spec):
            for each in term.get("matchExpressions") or []:
                if random.random() < 0.7:
                    each["key"] = _OLD_NAMES.get(each["key"], each["key"])


def objects_of_other_namespaces(random: Random, given: dict[str, Any]) -> None:
    """A namespace without pods, with a PodDisruptionBudget that would forbid everything."""
    del random
    given["namespaces"] = [*(given.get("namespaces") or []), {"metadata": {"name": "empty", "labels": {"a": "b"}}}]
    budget = {
        "metadata": {"name": "all", "namespace": "empty"},
        "spec": {"selector": {}, "maxUnavailable": 0},
        "status": {"disruptionsAllowed": 0},
    }
    given["pdbs"] = [*(given.get("pdbs") or []), budget]


_SPREAD_DEFAULTS: Final = {"minDomains": 1, "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}


def defaults_said(random: Random, given: dict[str, Any]) -> None:
    """What a missing field means is written."""
    for spec in pod_specs(given):
        for each in spec.get("topologySpreadConstraints") or []:
            if random.random() < 0.7 and each.get("whenUnsatisfiable") == "DoNotSchedule":
                each.update({**_SPREAD_DEFAULTS, **each})
        for each in spec.get("tolerations") or []:
            each.setdefault("operator", "Equal")
        for container in spec.get("containers") or []:
            container["ports"] = container.get("ports") or [{"containerPort": 8080}]
    for pod in given.get("pods") or []:
        for term in pod_terms(pod["spec"]):
            if not term.get("namespaces") and "namespaceSelector" not in term:
                term["namespaces"] = [pod["metadata"].get("namespace") or "default"]


def pod_terms(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every term of affinity and anti-affinity between pods."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(kind) or {}
        yield from found.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        preferred = found.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        yield from (each["podAffinityTerm"] for each in preferred)


def pools_that_say_it_twice(random: Random, given: dict[str, Any]) -> None:
    """A requirement of a NodePool again, and Exists beside In."""
    pools = given.get("nodePools") or []
    for pool in pools:
        requirements = pool["spec"]["template"]["spec"].get("requirements") or []
        for each in list(requirements):
            if random.random() < 0.5:
                requirements.append({key: value for key, value in each.items() if key != "minValues"})
            if each["operator"] == "In":
                requirements.append({"key": each["key"], "operator": "Exists"})


REWORDINGS: Final[tuple[Reworded, ...]] = (
    other_quantities,
    empty_fields,
    selectors_by_expressions,
    other_order,
    labels_that_nobody_selects,
    tolerations_of_nothing,
    expressions_said_twice,
    old_names_of_labels,
    objects_of_other_namespaces,
    defaults_said,
    pools_that_say_it_twice,
)

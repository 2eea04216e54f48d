"""Deployments, and the admission policy without which none of them is changed.

Of a Deployment only what a move needs is kept, a tenth of a pod's size, and its template only if buffers refer to it.
An annotation of ours in an unknown form is ignored: a person, or another version, has written it.
"""

import math
import re
from typing import Final

from dovetail.adapters.kubernetes_json.parsing.buffers import pods_of_workload
from dovetail.adapters.kubernetes_json.parsing.reading import name_of, number_of, optional_number, reading, text_of
from dovetail.model import names
from dovetail.model.objects.workloads import AdmissionGuard, Deployment, RollOut
from dovetail.model.places.move_changes import GUARD, read_move
from dovetail.model.values.json import ReadOnlyJson

FOR_EVER: Final = 2**31 - 1  # progressDeadlineSeconds: the controller then never says that it has passed
DEFAULT_SHARE: Final = "25%"
_IDENTITY: Final = re.compile(r"""request\.userInfo\.username\s*==\s*(["'])[^"'\\]+\1""").fullmatch


def parse_deployment(raw: ReadOnlyJson, *, moves: bool, followed: bool) -> Deployment:
    """A Deployment. `moves`: with its roll-out; `followed`: with what its pods are like."""
    with reading("Deployment", raw) as place:
        meta = raw["metadata"]
        place.field = "spec"
        return Deployment(
            name=name_of(meta),
            namespace=meta.get("namespace") or "default",
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
            roll_out=_roll_out(raw) if moves else None,
            pods=pods_of_workload(raw) if followed else None,
        )


def _roll_out(raw: ReadOnlyJson) -> RollOut:
    meta, spec, template = raw["metadata"], raw.get("spec") or {}, (raw.get("spec") or {}).get("template") or {}
    annotations = meta.get("annotations") or {}
    wanted, wish = spec.get("replicas"), annotations.get(names.MOVE)
    replicas, generation = 1 if wanted is None else number_of(wanted), meta.get("generation") or 0
    deadline = optional_number(spec.get("progressDeadlineSeconds"))
    status, move = raw.get("status") or {}, read_move(annotations.get(names.MOVES) or "")
    return RollOut(
        generation=generation,
        replicas=replicas,
        surges=_surges(spec.get("strategy") or {}, replicas),
        paused=bool(spec.get("paused")),
        settled=_settled(status, generation, replicas),
        timed_out=(status.get("observedGeneration") or 0) >= generation and _has_timed_out(status),
        progress_seconds=None if deadline == FOR_EVER else deadline,
        names_node=bool((template.get("spec") or {}).get("nodeName")),
        wish=None if wish is None else text_of(wish),
        moved=((template.get("metadata") or {}).get("annotations") or {}).get(names.MOVED) or "",
        begun=move.begun,
        failed=move.failed,
    )


def _settled(status: ReadOnlyJson, generation: int, replicas: int) -> bool:
    counts = {status.get(field) or 0 for field in ("replicas", "updatedReplicas", "availableReplicas")}
    return (status.get("observedGeneration") or 0) >= generation and counts == {replicas}


def _has_timed_out(status: ReadOnlyJson) -> bool:
    conditions = status.get("conditions") or ()
    return any(c.get("type") == "Progressing" and c.get("reason") == "ProgressDeadlineExceeded" for c in conditions)


def _surges(strategy: ReadOnlyJson, replicas: int) -> bool:
    """As the controller computes it: a surge is rounded up, the unavailable number down."""
    if (strategy.get("type") or "RollingUpdate") != "RollingUpdate":
        return False
    update = strategy.get("rollingUpdate") or {}
    surge, unavailable = (_share(update.get(field), replicas) for field in ("maxSurge", "maxUnavailable"))
    return math.ceil(surge) >= 1 and math.floor(unavailable) == 0


def _share(value: object, replicas: int) -> float:
    given = DEFAULT_SHARE if value is None else value
    return float(given.removesuffix("%")) * replicas / 100 if isinstance(given, str) else number_of(given)


def parse_guard(kind: str, raw: ReadOnlyJson) -> AdmissionGuard:
    """A ValidatingAdmissionPolicy or its binding: whether it is ours and refuses everywhere."""
    with reading(kind, raw):
        name = name_of(raw["metadata"])
        return AdmissionGuard(name=name, refuses=name == GUARD and _refuses(raw.get("spec") or {}))


def _refuses(spec: ReadOnlyJson) -> bool:
    if "policyName" in spec:
        everywhere = not spec.get("matchResources")
        return spec["policyName"] == GUARD and "Deny" in (spec.get("validationActions") or ()) and everywhere
    fails = (spec.get("failurePolicy") or "Fail") == "Fail" and bool(spec.get("validations"))
    return fails and _means_all_deployments(spec.get("matchConstraints") or {}) and _means_one(spec)


def _means_one(spec: ReadOnlyJson) -> bool:
    """Everybody, or one identity by its name alone; whether it is ours is tried."""
    conditions = [str(each.get("expression")) for each in spec.get("matchConditions") or ()]
    return not conditions or (len(conditions) == 1 and bool(_IDENTITY(conditions[0].strip())))


def _means_all_deployments(constraints: ReadOnlyJson) -> bool:
    if any(constraints.get(field) for field in ("excludeResourceRules", "namespaceSelector", "objectSelector")):
        return False
    wanted = (("apiGroups", "apps"), ("operations", "UPDATE"), ("resources", "deployments"))
    return any(
        not rule.get("resourceNames") and all({value, "*"} & set(rule.get(field) or ()) for field, value in wanted)
        for rule in constraints.get("resourceRules") or ()
    )

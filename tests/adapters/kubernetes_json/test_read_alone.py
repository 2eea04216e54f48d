"""A pod is read as if it were the only one there is: what is shared among pods that are alike changes nothing.

Parts of specs are known by their text. A text that leaves out where something stands gives one pod what another one
asks for, whichever came first, for as long as either lives.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dovetail.adapters.kubernetes_json.parsing import pods as parsing
from dovetail.adapters.kubernetes_json.parsing import shapes
from dovetail.adapters.kubernetes_json.parsing.pods import UnreadableObject, parse_pod
from dovetail.model.pods import Pod
from dovetail.model.values.json import Json
from dovetail.model.values.remembering import MEGABYTE, Recent, Shared

PORTS: list[Json] = [
    {"containerPort": 80},
    {"containerPort": 80, "hostPort": 80},
    {"containerPort": 80, "hostPort": 80, "protocol": "UDP"},
    {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"},
]
ONE_CPU: Json = {"cpu": "1"}
SELECTORS: list[Any] = [
    None,
    {},
    {"matchLabels": {"app": "x"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]},
]
LABELS: list[Any] = [None, {}, {"a": "x"}, {"a": "x", "b": "y"}, {"a": "y", "b": "x"}]
EXPRESSION: Json = {"key": "a", "operator": "In", "values": ["x", "y"]}
NODE_TERMS: list[Json] = [
    {},
    {"matchExpressions": [EXPRESSION]},
    {"matchFields": [EXPRESSION]},
    {"matchExpressions": [{**EXPRESSION, "operator": "NotIn"}]},
    {"matchExpressions": [EXPRESSION, {"key": "b", "operator": "Exists"}]},
]

few = st.integers(0, 2)
label = st.sampled_from(("a", "b"))
amounts = st.sampled_from((None, {}, ONE_CPU, {"memory": "1Gi"}))


def absent_or(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A field that may be missing (`_given` leaves out what is None)."""
    return st.none() | value


def _given(**fields: Any) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """An object with some of these fields."""
    return st.fixed_dictionaries(fields).map(lambda found: _given(**found))


pod_term = objects(
    topologyKey=label,
    labelSelector=st.sampled_from(SELECTORS),
    namespaceSelector=st.sampled_from(SELECTORS),
    namespaces=absent_or(st.lists(label, max_size=2)),
)
pod_terms = objects(
    requiredDuringSchedulingIgnoredDuringExecution=absent_or(st.lists(pod_term, max_size=2)),
    preferredDuringSchedulingIgnoredDuringExecution=absent_or(
        st.lists(st.fixed_dictionaries({"weight": few, "podAffinityTerm": pod_term}), max_size=2)
    ),
)
node_terms = st.lists(st.sampled_from(NODE_TERMS), min_size=1, max_size=2)
node_affinity = objects(
    requiredDuringSchedulingIgnoredDuringExecution=absent_or(st.fixed_dictionaries({"nodeSelectorTerms": node_terms})),
    preferredDuringSchedulingIgnoredDuringExecution=absent_or(
        st.lists(st.fixed_dictionaries({"weight": few, "preference": st.sampled_from(NODE_TERMS)}), max_size=2)
    ),
)
spread = objects(
    topologyKey=label,
    maxSkew=few,
    whenUnsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    labelSelector=st.sampled_from(SELECTORS),
    minDomains=absent_or(few),
    nodeAffinityPolicy=st.sampled_from((None, "Honor", "Ignore")),
    nodeTaintsPolicy=st.sampled_from((None, "Honor", "Ignore")),
    matchLabelKeys=absent_or(st.lists(label, max_size=2)),
)
toleration = objects(
    key=absent_or(label),
    operator=st.sampled_from((None, "Equal", "Exists")),
    value=absent_or(label),
    effect=st.sampled_from((None, "NoSchedule", "NoExecute")),
    tolerationSeconds=absent_or(few),
)
volume = st.builds(
    lambda name, source: {"name": name, **source},
    label,
    st.sampled_from(({"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "a"}}, {"ephemeral": None}))
    | absent_or(label).map(
        lambda kind: {"ephemeral": {"volumeClaimTemplate": {"spec": _given(storageClassName=kind)}}}
    ),
)
resources = absent_or(
    objects(requests=amounts, limits=amounts, claims=st.sampled_from((None, [], [{"name": "a"}], [{"name": "b"}])))
)
parts = st.fixed_dictionaries(
    {"ports": absent_or(st.lists(st.sampled_from(PORTS), max_size=2)), "resources": resources}
)


def containers(*names: str) -> st.SearchStrategy[list[Json]]:
    """Some of these containers, all of which the three lists of a pod share the names of."""
    started_with = st.sampled_from((None, "Always"))
    each = st.tuples(st.sampled_from(names), parts, started_with)
    return st.lists(each, max_size=2, unique_by=lambda found: found[0]).map(
        lambda found: [_given(name=name, restartPolicy=policy, **part) for name, part, policy in found]
    )


statuses = absent_or(
    st.lists(
        st.builds(
            lambda name, actual, allocated: _given(name=name, resources=actual, allocatedResources=allocated),
            label,
            absent_or(objects(requests=amounts)),
            amounts,
        ),
        max_size=2,
    )
)
conditions = st.sampled_from(
    ([], [{"type": "PodResizePending", "reason": "Infeasible"}], [{"type": "PodScheduled", "reason": "Unschedulable"}])
)
owner = objects(
    apiVersion=st.sampled_from(("apps/v1", "batch/v1")),
    kind=st.sampled_from(("DaemonSet", "ReplicaSet")),
    name=label,
    uid=label,
    controller=st.sampled_from((None, True, False)),
)
metadata_fields = {
    "namespace": st.sampled_from((None, "default", "other")),
    "labels": st.sampled_from(LABELS),
    "annotations": st.sampled_from(LABELS),
    "ownerReferences": absent_or(st.lists(owner, max_size=2)),
}
spec_fields = {
    "containers": containers("a", "b"),
    "initContainers": absent_or(containers("a", "b")),
    "ephemeralContainers": absent_or(containers("a", "b")),
    "affinity": absent_or(
        objects(
            nodeAffinity=absent_or(node_affinity),
            podAffinity=absent_or(pod_terms),
            podAntiAffinity=absent_or(pod_terms),
        )
    ),
    "topologySpreadConstraints": absent_or(st.lists(spread, max_size=2)),
    "nodeSelector": st.sampled_from(LABELS),
    "tolerations": absent_or(st.lists(toleration, max_size=2)),
    "volumes": absent_or(st.lists(volume, max_size=2)),
    "resourceClaims": st.sampled_from((None, [], [{"name": "a"}])),
    "overhead": amounts,
    "resources": absent_or(objects(requests=amounts, limits=amounts)),
    "priority": absent_or(few),
}
status_fields = {"containerStatuses": statuses, "initContainerStatuses": statuses, "conditions": conditions}
FIELDS = {
    **{("metadata", name): value for name, value in metadata_fields.items()},
    **{("spec", name): value for name, value in spec_fields.items()},
    **{("status", name): value for name, value in status_fields.items()},
}
SWAPPED = (
    ("spec", "containers", "initContainers"),
    ("spec", "initContainers", "ephemeralContainers"),
    ("status", "containerStatuses", "initContainerStatuses"),
    ("metadata", "labels", "annotations"),
)


@st.composite
def first_pod(draw: st.DrawFn) -> Json:
    """A pod with any fields."""
    pod: Json = {"metadata": {"name": "p"}, "spec": {"containers": []}, "status": {}}
    for (part, field), strategy in FIELDS.items():
        _put(pod[part], field, draw(strategy))
    return pod


def _put(part: Json, field: str, value: Any) -> None:
    if value is not None:
        part[field] = value
    elif field != "containers":
        part.pop(field, None)


def _redraw(draw: st.DrawFn, pod: Json) -> None:
    part, field = draw(st.sampled_from(sorted(FIELDS)))
    _put(pod[part], field, draw(FIELDS[part, field]))


def _swap(draw: st.DrawFn, pod: Json) -> None:
    """What stands in one field stands in another of its kind: which is what a text that says too little overlooks."""
    part, one, other = draw(st.sampled_from(SWAPPED))
    first, second = pod[part].get(one), pod[part].get(other)
    _put(pod[part], one, second or [])
    _put(pod[part], other, first)


def _lessen(draw: st.DrawFn, pod: Json) -> None:
    """Something anywhere in it is missing or empty; it may not be readable any more."""
    owner, key = draw(st.sampled_from([place for part in pod.values() for place in _within(part)]))
    if isinstance(owner[key], list | dict) and draw(st.booleans()):
        owner[key] = type(owner[key])()
    else:
        del owner[key]


def _within(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every object or list in it, with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _within(value[key])


@st.composite
def alike(draw: st.DrawFn) -> list[Json]:
    """Pods of which each differs little from another one, in any order."""
    found = [draw(first_pod())]
    for _ in range(draw(st.integers(1, 4))):
        pod = deepcopy(draw(st.sampled_from(found)))
        draw(st.sampled_from((_redraw, _swap, _lessen)))(draw, pod)
        found.append(pod)
    return draw(st.permutations(found))


@contextmanager
def nothing_known() -> Iterator[None]:
    """As in a worker that has just started."""
    with (
        patch.object(shapes, "_SHAPES", Shared()),
        patch.object(parsing, "_COMMON", Recent(MEGABYTE)),
        patch.object(parsing, "_REQUESTS", Shared()),
    ):
        yield


def _with_port(field: str) -> Json:
    pod: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "b"}]}}
    pod["spec"][field][0]["ports"] = [PORTS[1]]
    return pod


def _read(raw: Json) -> Pod | str:
    try:
        return parse_pod(raw)
    except UnreadableObject as error:
        return str(error)


def _said(found: Pod | str) -> object:
    return found if isinstance(found, str) else asdict(found)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(alike())
@example([_with_port("containers"), _with_port("initContainers")])
@example([_with_port("initContainers"), _with_port("containers")])
def test_a_pod_is_read_as_if_it_were_the_only_one(raws: list[Json]) -> None:
    """PLC-72, PLC-82: one pod's host ports and requests are not another's."""
    with nothing_known():
        together = [_read(raw) for raw in raws]  # held all the time: what nobody holds is not shared
    for raw, found in zip(raws, together, strict=True):
        with nothing_known():
            assert _said(found) == _said(_read(raw))

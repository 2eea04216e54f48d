"""Whatever pods were read before: what is read of a pod is what would be read of it alone.

Pods that are alike share what decides where they may go, and are known by the parts of their specs. A part that is read
and is not among those would give a pod another one's, in an order that nobody chose: so each cluster here is of pods
that differ from one another in one or two places, and values move from one place to a like one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.adapters.kubernetes_json.parsing import pods, shapes
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.model.values.json import Json
from dovetail.model.values.remembering import Recent, Shared

QUIET = settings(max_examples=200, deadline=None)

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
NODE_TERM = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
CONTAINER = {"name": "c"}
PORT = {"ports": [{"containerPort": 80, "hostPort": 80}]}
CPU = {"resources": {"requests": {"cpu": "1"}}}
CLAIM = {"resources": {"claims": [{"name": "gpu"}]}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}

# Each sets one place of a pod; several set the same value in places that are read alike.
CHANGES: tuple[tuple[tuple[str, ...], Any], ...] = (
    *((("spec", "containers"), [{**CONTAINER, **part}]) for part in (PORT, CPU, CLAIM)),
    *((("spec", "initContainers"), [{**CONTAINER, **part}]) for part in (PORT, CPU, CLAIM)),
    (("spec", "initContainers"), [{**CONTAINER, **CPU, "restartPolicy": "Always"}]),
    (("spec", "initContainers"), [{**CONTAINER, **PORT, "restartPolicy": "Always"}]),
    (("spec", "affinity"), {"podAffinity": {REQUIRED: [TERM]}}),
    (("spec", "affinity"), {"podAntiAffinity": {REQUIRED: [TERM]}}),
    (("spec", "affinity"), {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}),
    (("spec", "affinity"), {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}),
    (("spec", "affinity"), {"podAffinity": {REQUIRED: [{**TERM, "namespaces": ["x"]}]}}),
    (("spec", "affinity"), {"podAffinity": {REQUIRED: [{**TERM, "namespaceSelector": {}}]}}),
    (("spec", "affinity"), {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [NODE_TERM]}}}),
    (("spec", "affinity"), {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": NODE_TERM}]}}),
    (("spec", "nodeSelector"), {"k": "v"}),
    (("spec", "tolerations"), [{"key": "k", "operator": "Exists"}]),
    (("spec", "tolerations"), [{"key": "k", "value": "v"}]),
    (("spec", "topologySpreadConstraints"), [SPREAD]),
    (("spec", "topologySpreadConstraints"), [{**SPREAD, "minDomains": 2}]),
    (("spec", "topologySpreadConstraints"), [{**SPREAD, "nodeTaintsPolicy": "Honor"}]),
    (("spec", "topologySpreadConstraints"), [{**SPREAD, "matchLabelKeys": ["app"]}]),
    (("spec", "volumes"), [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]),
    (("spec", "volumes"), [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]),
    (("spec", "volumes"), [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}}]),
    (("spec", "overhead"), {"cpu": "1"}),
    (("spec", "resources"), {"requests": {"cpu": "2"}}),
    (("spec", "resourceClaims"), [{"name": "gpu"}]),
    (("metadata", "labels"), {"app": "a"}),
    (("metadata", "labels"), {"k": "v"}),
    (("metadata", "namespace"), "other"),
    (("metadata", "ownerReferences"), [{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]),
    (("status", "containerStatuses"), [{**CONTAINER, "resources": {"requests": {"cpu": "3"}}}]),
    (("status", "containerStatuses"), [{**CONTAINER, "allocatedResources": {"cpu": "3"}}]),
    (("status", "initContainerStatuses"), [{**CONTAINER, "resources": {"requests": {"cpu": "3"}}}]),
    (("status", "conditions"), [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]),
)  # fmt: skip


def a_changed_pod(number: int, changes: list[tuple[tuple[str, ...], Any]]) -> Json:
    """A pod with these places set; a later change of a place counts."""
    found: Json = {
        "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"u{number}", "resourceVersion": "1"},
        "spec": {"containers": [CONTAINER]},
        "status": {"phase": "Pending"},
    }
    for (part, field), value in changes:
        found[part][field] = value
    return found


@contextmanager
def nothing_remembered() -> Iterator[None]:
    """Within the block, as a process that has just begun."""
    with (
        patch.object(pods, "_COMMON", Recent(2**20)),
        patch.object(pods, "_REQUESTS", Shared()),
        patch.object(shapes, "_SHAPES", Shared()),
    ):
        yield


def read(raw: Json) -> str:
    """All that is read of it, in words: what pods share is compared by its identity elsewhere."""
    return repr(parse_pod(raw))


def alone(raw: Json) -> str:
    with nothing_remembered():
        return read(raw)


def judge(changes: list[list[tuple[tuple[str, ...], Any]]]) -> None:
    raws = [a_changed_pod(number, each) for number, each in enumerate(changes)]
    with nothing_remembered():
        beside = [read(raw) for raw in raws]

    assert beside == [alone(raw) for raw in raws]


PODS = st.lists(st.lists(st.sampled_from(CHANGES), max_size=3), min_size=2, max_size=12)


@QUIET
@given(PODS)
def test_what_is_read_of_a_pod_hangs_on_no_other(changes: list[list[tuple[tuple[str, ...], Any]]]) -> None:
    judge(changes)


@pytest.mark.soak
@settings(QUIET, max_examples=10_000)
@given(PODS)
def test_the_same_holds_for_ten_thousand_clusters(changes: list[list[tuple[tuple[str, ...], Any]]]) -> None:
    judge(changes)


def test_every_place_that_is_set_is_read_alone_or_beside_another() -> None:
    """Or a change would show nothing. That a resize is not possible shows beside two others alone."""

    def is_read(place: tuple[str, ...], value: Any) -> bool:
        beside = [[], *([other] for other in CHANGES if other[0] != place)]
        return any(alone(a_changed_pod(0, [*some, (place, value)])) != alone(a_changed_pod(0, some)) for some in beside)

    read_places = {place for place, value in CHANGES if is_read(place, value)}

    assert {place for place, _ in CHANGES} - read_places == {("status", "conditions")}

"""The real API server under our CRDs: it takes, fills in and refuses what the models take, fill in and refuse.

Rules API-1 to API-17 and AWS-1, AWS-8 to AWS-23. The tables of tests/api and the recorded objects are put before it as
dry runs; only what must exist to be changed is really created.
"""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dovetail.answers.look.readiness import where_to_mend
from dovetail.api.kinds import KINDS, ResourceKind
from dovetail.api.validation import InvalidObject, parse
from dovetail.lifecycle.pool_readiness import CLASS_NOT_FOUND
from dovetail.model.names import CLASS_READY
from dovetail.model.nodes import Condition, NodeClassRef
from dovetail.model.pools import NodePool
from testbed.plane import ApiClient, ApiResponse, PlaneState
from tests.api import test_recorded_objects as recorded
from tests.api.all_cases import CASES
from tests.api.case import Case
from tests.api.manifests import Manifest, a_node_class, a_written_claim, a_written_pool, an_overlay, changed
from tests.cluster.serving_kinds import BY_KIND, DEFINITIONS, DRY_RUN, create, created, dry_run, path_of, server
from tests.docs.promised import PAGES, manifests
from tests.printed_commands import ANY, printed
from worlds import disruption

__all__ = ["created", "server"]
pytestmark = pytest.mark.cluster
ALL_KINDS = [pytest.param(kind, id=kind.kind) for kind in KINDS]


@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_the_definition_is_established_and_structural(server: ApiClient, kind: ResourceKind) -> None:
    def settled(answer: ApiResponse) -> bool:
        return _conditions(answer).get("Established") == "True"

    answer = await server.wait_for(f"{DEFINITIONS}/{kind.crd_name}", settled)

    assert _conditions(answer) == {"NamesAccepted": "True", "Established": "True"}


def _conditions(answer: ApiResponse) -> dict[str, str]:
    given = answer.body.get("status", {}).get("conditions", [])
    return {condition["type"]: condition["status"] for condition in given}


async def test_kubectl_knows_every_resource_that_a_printed_command_names(server: ApiClient, plane: PlaneState) -> None:
    """The command of a pool whose NodeClass is at fault too, which names the class's kind."""
    classes = [kind for kind in KINDS if kind.kind.endswith("NodeClass")]
    typed = {command for _, command in printed() if command.startswith(("kubectl get ", "kubectl describe "))}
    typed = {command for command in typed if ANY not in command.split()[2]}
    typed |= {where_to_mend(_with_class_at_fault(kind, reason)) for kind in classes for reason in ("", CLASS_NOT_FOUND)}

    assert len(typed) >= 2 * len(classes) + 3
    for command in sorted(typed):
        words = [str(plane.kubectl), *command.split()[1:]]
        done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 or "(NotFound)" in done.stderr, (command, done.stderr)


def _with_class_at_fault(kind: ResourceKind, reason: str) -> NodePool:
    fault = Condition(type=CLASS_READY, status="False", reason=reason)
    pool = disruption.a_pool()
    reference = NodeClassRef(group=kind.group, kind=kind.kind, name="default")
    return replace(pool, conditions=(fault,), template=replace(pool.template, node_class=reference))


@pytest.mark.parametrize("case", [case for case in CASES if not case.refusal], ids=str)
async def test_what_the_models_take_the_api_server_takes_with_the_same_defaults(server: ApiClient, case: Case) -> None:
    expected = parse(BY_KIND[case.manifest["kind"]].model, case.manifest).as_object()["spec"]

    answer = await dry_run(server, case.manifest)

    assert (answer.status, answer.body.get("spec", answer.text)) == (201, expected)


@pytest.mark.parametrize("case", [case for case in CASES if case.refusal], ids=str)
async def test_what_the_models_refuse_the_api_server_refuses_by_the_same_rule(server: ApiClient, case: Case) -> None:
    answer = await dry_run(server, case.manifest)

    assert answer.status == 422, answer.text
    assert [cause["message"] for cause in _causes(answer, case.field) if case.refusal in cause["message"]], answer.text


@pytest.mark.parametrize("page", PAGES)
async def test_what_a_guide_shows_is_taken_with_every_field(server: ApiClient, page: str) -> None:
    found = list(manifests(page))

    assert found
    for manifest in found:
        answer = await server.post(f"{path_of(BY_KIND[manifest['kind']])}{DRY_RUN}&fieldValidation=Strict", manifest)
        assert answer.status == 201, answer.text


def _causes(answer: ApiResponse, field: str) -> Iterator[dict[str, Any]]:
    for cause in answer.body["details"]["causes"]:
        # The server names an entry of a map as if it were a field: spec.limits.cpu.
        if cause["field"].startswith(field):
            yield cause


UNKNOWN = {"colour": "red", "deep": {"er": 1}}


@pytest.mark.parametrize("make", [a_written_pool, a_written_claim, an_overlay, a_node_class])
async def test_unknown_fields_are_pruned_by_both(server: ApiClient, make: Any) -> None:
    manifest = changed(make(), "spec.unknown", UNKNOWN)

    answer = await dry_run(server, manifest)

    assert answer.body["spec"] == parse(BY_KIND[manifest["kind"]].model, manifest).as_object()["spec"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.disruption", None),
        ("spec.disruption", {"consolidateAfter": None, "budgets": None}),
        ("spec.limits", {"cpu": "1", "memory": None}),
        ("spec.weight", None),
        ("spec.template.spec.expireAfter", None),
    ],
)
async def test_nulls_are_absent_fields_to_both(server: ApiClient, path: str, value: Any) -> None:
    manifest = changed(a_written_pool(), path, value)

    answer = await dry_run(server, manifest)

    assert answer.body.get("spec", answer.text) == parse(BY_KIND["NodePool"].model, manifest).as_object()["spec"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.expireAfter", "1h"),
        ("spec.nodeClassRef", {"name": "other"}),
        ("spec.resources", {"requests": {"memory": "50k"}}),
        ("spec.requirements", [{"key": "a", "operator": "Exists"}]),
    ],
)
async def test_nothing_in_a_claims_spec_changes(server: ApiClient, created: list[str], path: str, value: Any) -> None:
    """API-15, PLM-8: 50k for 50000 is a change too."""
    claim = changed(a_written_claim(), "spec.resources", {"requests": {"memory": "50000"}})
    where = await create(server, created, changed(claim, "metadata.name", "immutable"))

    answer = await server.patch(where, changed({}, path, value))

    assert answer.status == 422
    assert [cause["message"] for cause in _causes(answer, "spec")] == ["Invalid value: spec is immutable"]


async def test_labels_and_annotations_of_a_claim_change(server: ApiClient, created: list[str]) -> None:
    where = await create(server, created, changed(a_written_claim(), "metadata.name", "mutable"))

    answer = await server.patch(where, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})

    assert answer.status == 200, answer.text


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one field, and a piece of the refusal."""

    path: str
    old: Any
    new: Any
    refusal: str


@pytest.mark.parametrize(
    "change",
    [
        Change("spec.replicas", None, 3, "Cannot transition NodePool between static (replicas set) and dynamic"),
        Change("spec.replicas", 3, None, "Cannot transition NodePool between static (replicas set) and dynamic"),
        Change("spec.template.spec.nodeClassRef.group", "a.example", "b.example", "nodeClassRef.group is immutable"),
        Change("spec.template.spec.nodeClassRef.kind", "A", "B", "nodeClassRef.kind is immutable"),
    ],
    ids=lambda change: f"{change.path}-{change.old}-{change.new}",
)
async def test_a_pool_does_not_change_its_nature(server: ApiClient, created: list[str], change: Change) -> None:
    """A pool stays static or dynamic, and keeps the kind of its NodeClass (API-13, API-14)."""
    where = await create(
        server, created, changed(changed(a_written_pool(), change.path, change.old), "metadata.name", "natured")
    )

    answer = await server.patch(where, changed({}, change.path, change.new))

    assert answer.status == 422
    assert change.refusal in answer.text


async def test_a_pool_may_name_another_class_of_the_same_kind(server: ApiClient, created: list[str]) -> None:
    where = await create(server, created, changed(a_written_pool(), "metadata.name", "renaming"))

    answer = await server.patch(where, changed({}, "spec.template.spec.nodeClassRef.name", "other"))

    assert answer.status == 200, answer.text


async def test_replicas_of_a_pool_are_scaled_through_the_scale_subresource(
    server: ApiClient, created: list[str]
) -> None:
    pool = changed(changed(a_written_pool(), "spec.replicas", 2), "metadata.name", "scaled")
    where = await create(server, created, pool)

    scaled = await server.patch(f"{where}/scale", {"spec": {"replicas": 5}})

    assert scaled.status == 200, scaled.text
    assert (await server.get(where)).body["spec"]["replicas"] == 5


async def test_every_recorded_object_that_was_applied_is_taken_and_comes_out_as_the_models_say(
    server: ApiClient,
) -> None:
    failures: list[str] = []
    manifests = list(_distinct_recorded())

    async def check(manifest: Manifest) -> None:
        kind = BY_KIND[manifest["kind"]]
        try:
            expected = parse(kind.model, manifest).as_object()["spec"]
        except InvalidObject as error:
            answer = await dry_run(server, manifest)
            if answer.status != 422:
                failures.append(f"taken although: {error}")
            return
        answer = await dry_run(server, manifest)
        if (answer.status, answer.body.get("spec")) != (201, expected):
            failures.append(answer.text)

    for start in range(0, len(manifests), 50):
        await asyncio.gather(*(check(manifest) for manifest in manifests[start : start + 50]))

    assert failures == []
    assert len(manifests) > 200


def _distinct_recorded() -> Iterator[Manifest]:
    """Each recorded spec once, under a name of our own."""
    seen = set()
    for _, found in recorded.recorded_objects():
        identity = json.dumps([found["kind"], found["spec"]], sort_keys=True)
        if identity not in seen:
            seen.add(identity)
            yield {
                "apiVersion": found["apiVersion"],
                "kind": found["kind"],
                "metadata": {"name": "recorded"},
                "spec": found["spec"],
            }


async def test_every_recorded_status_can_be_written(server: ApiClient, created: list[str]) -> None:
    places = {
        manifest["kind"]: await create(server, created, changed(manifest, "metadata.name", "with-status"))
        for manifest in (a_written_pool(), a_written_claim(), a_node_class())
    }
    statuses = {
        json.dumps([found["kind"], found["status"]], sort_keys=True): (found["kind"], found["status"])
        for _, found in recorded.recorded_objects()
        if found.get("status")
    }

    async def write(kind: str, status: dict[str, Any]) -> str:
        answer = await server.patch(f"{places[kind]}/status{DRY_RUN}", {"status": status})
        if answer.status != 200:
            return answer.text
        return "" if status.items() <= answer.body["status"].items() else f"pruned: {status} → {answer.body['status']}"

    pairs = list(statuses.values())
    answers: list[str] = []
    for start in range(0, len(pairs), 50):
        answers += await asyncio.gather(*(write(kind, status) for kind, status in pairs[start : start + 50]))

    assert [answer for answer in answers if answer] == []
    assert len(pairs) > 200

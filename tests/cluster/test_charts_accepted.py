"""An API server accepts all that the charts render, field by field, and an installation says what a person must know.

Kinds of others (the Prometheus operator's, temporal-worker-controller's) are defined here as far as the chart writes
them: an unknown field of theirs is refused too.
"""

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.plane import ApiClient, PlaneState, TestbedUnavailable
from testbed.plane.helm import find_helm
from tests.packaging.charts import DEFINITIONS, KARPENTERS, KARPENTERS_DEFAULTS, VARIANTS, Helm, named
from tests.unavailable import no_control_plane

pytestmark = pytest.mark.cluster

DEFINED = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT: dict[str, Any] = {"type": "string"}
FREE: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def record(*needed: str, **fields: Any) -> dict[str, Any]:
    """An object of these fields and no other."""
    return {"type": "object", "properties": fields, **({"required": list(needed)} if needed else {})}


def items(each: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": each}


REFERENCE = record("name", name=TEXT)
CONNECTION = record(
    "hostPort", hostPort=TEXT, mutualTLSSecretRef=REFERENCE, apiKeySecretRef=record(name=TEXT, key=TEXT)
)
STEP = record("rampPercentage", "pauseDuration", rampPercentage={"type": "integer", "maximum": 99}, pauseDuration=TEXT)
WORKERS = record(
    *("template", "rollout", "sunset", "workerOptions"),
    replicas={"type": "integer"},
    template=FREE,
    rollout=record("strategy", strategy=TEXT, steps=items(STEP), gate=FREE),
    sunset=record(scaledownDelay=TEXT, deleteDelay=TEXT),
    workerOptions=record("connectionRef", "temporalNamespace", connectionRef=REFERENCE, temporalNamespace=TEXT),
)
ENDPOINT = record(port=TEXT, path=TEXT, interval=TEXT, metricRelabelings=items(FREE), relabelings=items(FREE))
MONITOR = record(
    namespaceSelector=record(matchNames=items(TEXT)),
    selector=FREE,
    endpoints=items(ENDPOINT),
    sampleLimit={"type": "integer"},
)
ALERT = record("alert", "expr", alert=TEXT, expr=TEXT, labels=FREE, annotations=FREE, **{"for": TEXT})
KINDS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("monitoring.coreos.com", "v1", "ServiceMonitor", MONITOR),
    ("monitoring.coreos.com", "v1", "PrometheusRule", record(groups=items(record(name=TEXT, rules=items(ALERT))))),
    ("temporal.io", "v1alpha1", "Connection", CONNECTION),
    ("temporal.io", "v1alpha1", "TemporalConnection", CONNECTION),
    ("temporal.io", "v1alpha1", "WorkerDeployment", WORKERS),
    ("temporal.io", "v1alpha1", "TemporalWorkerDeployment", WORKERS),
)


def definition(group: str, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    served = {"name": version, "served": True, "storage": True}
    schema = {"openAPIV3Schema": record("spec", spec=spec)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [{**served, "schema": schema}],
        },
    }


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    try:
        return Helm(program=find_helm(lambda _line: None), folder=tmp_path)
    except TestbedUnavailable as reason:
        no_control_plane(reason)


@pytest.fixture
async def others(api: ApiClient) -> AsyncIterator[None]:
    """The kinds that are not ours."""
    made = [definition(*kind) for kind in KINDS]
    for body in made:
        assert (await api.post(DEFINED, body)).status == 201
    for body in made:
        path = f"{DEFINED}/{body['metadata']['name']}"
        await api.wait_for(path, lambda answer: "Established" in json.dumps(answer.body.get("status", {})))
    yield
    for body in made:
        await api.delete(f"{DEFINED}/{body['metadata']['name']}")


def tried(plane: PlaneState, objects: list[dict[str, Any]]) -> "subprocess.CompletedProcess[str]":
    """`kubectl apply --dry-run=server` of these; a field that no schema knows is an error."""
    return subprocess.run(
        [str(plane.kubectl), "apply", "--dry-run=server", "--validate=strict", "--filename", "-"],
        input=yaml.safe_dump_all(objects),
        capture_output=True,
        text=True,
        check=False,
    )


async def test_the_api_server_accepts_every_object(plane: PlaneState, helm: Helm, others: None) -> None:
    blue = {"settings": {"clusterName": "blue"}}
    rendered = {name: helm.rendered({**blue, **values}) for name, values in VARIANTS.items()}
    rendered["defaults"] = helm.rendered({})
    rendered["Karpenter's values"] = helm.rendered({}, "--values", str(KARPENTERS))
    rendered["definitions"] = helm.rendered({}, chart=DEFINITIONS)

    # At once: each kubectl reads every schema of the server, and a dry run keeps nothing. What fails is asked alone.
    together = tried(plane, [each for objects in rendered.values() for each in objects])
    said = {"all": together} if _accepts(together) else {name: tried(plane, each) for name, each in rendered.items()}
    assert {name: done.stderr for name, done in said.items() if not _accepts(done)} == {}
    assert len(together.stdout.splitlines()) == sum(map(len, rendered.values()))


def _accepts(done: "subprocess.CompletedProcess[str]") -> bool:
    return done.returncode == 0 and "Warning" not in done.stderr


async def test_a_field_that_nobody_knows_would_be_refused(plane: PlaneState, helm: Helm) -> None:
    """The test above would notice."""
    [workers] = [one for one in helm.rendered({}) if one["kind"] == "Deployment"]
    workers["spec"]["template"]["spec"]["gracePeriod"] = 3

    assert "gracePeriod" in tried(plane, [workers]).stderr


def ignored(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The values that an installation says have no effect."""
    assert done.returncode == 0, done.stderr
    lines = done.stdout.partition("These values have no effect:")[2].partition("\n\n")[0].splitlines()
    return [line.split(":")[0].strip() for line in lines if line]


async def test_an_installation_names_what_has_no_effect(plane: PlaneState, helm: Helm, others: None) -> None:
    given = helm.accepted(plane.kubeconfig, {}, "--values", str(KARPENTERS))
    defaults = helm.accepted(
        plane.kubeconfig, {"settings": {"clusterName": "blue"}}, "--values", str(KARPENTERS_DEFAULTS)
    )

    of_the_program_itself = ["controller.image", "logOutputPaths", "logErrorOutputPaths", "podDisruptionBudget.name"]
    assert ignored(given) == [*of_the_program_itself, "settings.featureGates.somethingNewer"]
    assert ignored(defaults) == of_the_program_itself


async def test_a_trial_is_called_one(plane: PlaneState, helm: Helm) -> None:
    done = helm.accepted(plane.kubeconfig, {"settings": {"clusterName": "blue"}, **VARIANTS["a trial"]})

    assert "WARNING: temporal.mode=dev" in done.stdout, done.stderr


async def test_an_installation_without_the_clusters_name_is_refused(plane: PlaneState, helm: Helm) -> None:
    done = helm.accepted(plane.kubeconfig, {})

    assert done.returncode != 0
    assert "settings.clusterName: not set" in done.stderr


async def test_an_upgrade_replaces_the_temporal_of_a_trial_that_does_not_get_ready(api: ApiClient, helm: Helm) -> None:
    """Nobody gives its pod a volume here, so it waits for ever; a StatefulSet that keeps to an order would wait with
    it."""
    objects = helm.rendered({"settings": {"clusterName": "blue"}, **VARIANTS["a trial"]})
    body = named(objects, "StatefulSet", "dovetail-temporal")
    body["metadata"]["namespace"] = "default"
    sets, pod = "/apis/apps/v1/namespaces/default/statefulsets", "/api/v1/namespaces/default/pods/dovetail-temporal-0"
    assert (await api.post(sets, body)).status == 201
    try:
        first = (await api.wait_for(pod, lambda found: found.status == 200)).body["metadata"]["uid"]
        mended = {"spec": {"template": {"metadata": {"annotations": {"image": "mended"}}}}}
        assert (await api.patch(f"{sets}/dovetail-temporal", mended)).status == 200

        second = await api.wait_for(pod, lambda found: found.body.get("metadata", {}).get("uid", first) != first)
        assert second.body["metadata"]["annotations"]["image"] == "mended"
    finally:
        await api.delete(f"{sets}/dovetail-temporal", {"propagationPolicy": "Foreground"})
        await api.wait_for(pod, lambda found: found.status == 404)
        await api.delete("/api/v1/namespaces/default/persistentvolumeclaims")

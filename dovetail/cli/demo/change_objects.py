"""The objects of the story of a change."""

from typing import Final

from dovetail.model import names
from dovetail.model.places.move_changes import GUARD, GUARD_KINDS
from dovetail.model.places.moves import RESTART
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

NODES: Final = 4
BROKEN, GOOD = "image-2", "image-3"
POOL: Final = "demo"
ONE: Final = "ledger"  # the service of one replica


def policy() -> Json:
    """Rolls out each change in steps."""
    steps = [
        {"name": "canary", "to": "1", "soak": "5s", "approve": {"expiresAfter": "24h"}},
        {"name": "rest", "to": "100%"},
    ]
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "by-steps"},
        "spec": {"rollout": {"steps": steps, "newLaunches": "Stable"}},
    }


def budget() -> Json:
    """At least three of the service's pods."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"minAvailable": NODES - 1, "selector": {"matchLabels": {"app": "shop"}}},
    }


def service(replicas: int) -> Json:
    """Each pod has a node of its own, and crashes on the broken image."""
    labels = {"app": "shop"}
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": names.HOSTNAME}
    container = {"name": "shop", "image": "shop:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"embedded.dovetail.sh/crashes-on": BROKEN}},
                "spec": {
                    "containers": [container],
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
                },
            },
        },
    }


def one_replica() -> list[Json]:
    """A service of one pod that must not be evicted, and is moved by a roll-out of its Deployment instead."""
    labels = {"app": ONE}
    container = {"name": ONE, "image": "ledger:1", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    metadata = {"name": ONE, "namespace": "default"}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels}},
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**metadata, "annotations": {names.MOVE: RESTART}},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        },
    ]


def policies_that_guard_moves() -> list[Json]:
    """What must exist before any pod is moved: the part of deploy/kubernetes/moves.yaml that the embedded world
    reads."""
    message = f"{GUARD} lets a worker change nothing of a Deployment but the annotations of a move"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}
    specs: list[Json] = [
        {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": message}],
        },
        {"policyName": GUARD, "validationActions": ["Deny"]},
    ]
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": GUARD}, "spec": spec}
        for kind, spec in zip(GUARD_KINDS, specs, strict=True)
    ]


def opening_at(moment: float) -> Json:
    """From that minute on, nodes may begin to leave for a change, for an hour."""
    window = {"from": format_time(moment)[11:16], "to": format_time(moment + 3600)[11:16], "reasons": ["Drifted"]}
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "window"},
        "spec": {"timeZone": "UTC", "allow": [window]},
    }

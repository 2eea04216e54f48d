"""Manifests as a user would write them: valid by default, and a way to change one place.

Used by the tests of the models and by tests/cluster/test_crds.py, which puts the same objects before the real API
server.
"""

import copy
from typing import Any

from worlds.disruption import EC2_CLASS
from worlds.manifests import claim_manifest, class_reference, pool_manifest

Manifest = dict[str, Any]
REMOVED = object()


def a_written_pool() -> Manifest:
    return pool_manifest(of=EC2_CLASS)


def a_written_claim() -> Manifest:
    return claim_manifest(of=EC2_CLASS)


def an_overlay() -> Manifest:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "default"},
        "spec": {"requirements": []},
    }


def a_buffer() -> Manifest:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "default", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "web"}, "replicas": 3},
    }


def a_node_class() -> Manifest:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"discovery": "here"}}],
            "securityGroupSelectorTerms": [{"tags": {"discovery": "here"}}],
        },
    }


def a_class_reference() -> Manifest:
    return class_reference(EC2_CLASS)


def changed(manifest: Manifest, path: str, value: Any) -> Manifest:
    """A copy with one place changed (`spec.weight`); what is missing on the way is made; `REMOVED` takes it out."""
    result = copy.deepcopy(manifest)
    *way, last = path.split(".")
    place = result
    for step in way:
        place = place.setdefault(step, {})
    if value is REMOVED:
        del place[last]
    else:
        place[last] = value
    return result

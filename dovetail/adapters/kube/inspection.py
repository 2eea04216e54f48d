"""The port Inspection over the Kubernetes API: what is served, what we may do, the server's clock, and all objects.

Nothing here comes from the cache, because a cache that cannot be filled is one of the things a person looks into.
RIGHTS are those of deploy/kubernetes/rbac.yaml; a test keeps them equal.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from dovetail.adapters.kube.client import Client, Request
from dovetail.adapters.kube.failures import NotServed
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.ports.failures import Forbidden
from dovetail.ports.inspection import ClusterFacts, RawObjects

_LOOK: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch",)

# (group, resource[/subresource], verbs), in the order of the cluster role.
RIGHTS: Final = (
    ("karpenter.sh", "nodepools", (*_LOOK, *_CHANGE)),
    ("karpenter.sh", "nodeclaims", (*_LOOK, "create", *_CHANGE, "delete")),
    ("karpenter.sh", "nodepools/status", _CHANGE),
    ("karpenter.sh", "nodeclaims/status", _CHANGE),
    ("", "nodes", (*_LOOK, "patch", "delete")),
    ("", "pods", (*_LOOK, "delete")),
    ("", "pods/eviction", ("create",)),
    *[("", name, _LOOK) for name in ("namespaces", "persistentvolumes", "persistentvolumeclaims")],
    *[("", name, _LOOK) for name in ("services", "replicationcontrollers")],
    *[("apps", name, _LOOK) for name in ("daemonsets", "replicasets", "statefulsets")],
    ("policy", "poddisruptionbudgets", _LOOK),
    *[("storage.k8s.io", name, _LOOK) for name in ("storageclasses", "csinodes", "volumeattachments")],
    ("", "events", ("create",)),
)

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class KubeInspection:
    """One cluster, over a client that is open."""

    def __init__(self, client: Client, further: Iterable[Kind] = (), clock: Callable[[], float] = time.time) -> None:
        self._client = client
        # `further`: NodeClasses, and what an open feature gate watches, which may take the place of a kind.
        self._kinds = tuple({kind.name: kind for kind in (*CLUSTER_KINDS, *further)}.values())
        self._clock = clock

    async def facts(self) -> ClusterFacts:
        asked = self._clock()
        answer = await self._client.call(Request(method="GET", path="/version", subject="cluster"))
        answered = self._clock()
        moment = answer.moment if answer.moment is not None else asked
        served = await asyncio.gather(*[self._is_served(kind) for kind in self._kinds])
        rights = [(group, resource, verb) for group, resource, verbs in RIGHTS for verb in verbs]
        granted = await asyncio.gather(*[self._may(*right) for right in rights])
        return ClusterFacts(
            address=self._client.host,
            version=str(answer.body.get("gitVersion") or "unknown"),
            # The header is cut to whole seconds: half a second is added, and is part of the error beside the trip.
            clock_ahead=moment + 0.5 - (asked + answered) / 2 if answer.moment is not None else 0.0,
            clock_error=0.5 + (answered - asked) / 2,
            missing_kinds=tuple(k.name for k, there in zip(self._kinds, served, strict=True) if not there),
            missing_rights=tuple(_words(*right) for right, may in zip(rights, granted, strict=True) if not may),
        )

    async def objects(self) -> RawObjects:
        found: dict[str, list[dict[str, Any]]] = {}
        for kind in self._kinds:
            try:
                found[kind.name] = [raw async for raw in list_all(self._client, kind.path, kind.name)]
            except NotServed:
                if not kind.optional:
                    raise
        return found

    async def _is_served(self, kind: Kind) -> bool:
        request = Request(method="GET", path=kind.path, subject=kind.name, query={"limit": "1"})
        try:
            await self._client.call(request)
        except NotServed:
            return False
        except Forbidden:
            return True  # it is served; the missing right is reported among the rights
        return True

    async def _may(self, group: str, resource: str, verb: str) -> bool:
        name, _, subresource = resource.partition("/")
        attributes = {"group": group, "resource": name, "subresource": subresource, "verb": verb}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        request = Request(method="POST", path=_REVIEWS, subject="SelfSubjectAccessReview", body=body)
        answer = await self._client.call(request)
        return bool((answer.body.get("status") or {}).get("allowed"))


def _words(group: str, resource: str, verb: str) -> str:
    return f"{verb} {resource}.{group}" if group else f"{verb} {resource}"

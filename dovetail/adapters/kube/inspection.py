"""The port Inspection over the Kubernetes API: what is served, our rights, the server's clock, and all objects.

Nothing here comes from the cache, because a cache that cannot be filled is one of the things people investigate. The
rights checked are those of deploy/kubernetes/rbac.yaml; a test keeps them equal. Rights to NodeClasses, to kinds that
an open feature gate watches, and those in places.yaml are checked if a worker needs them.
"""

import asyncio
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.discovery import is_absent
from dovetail.adapters.kube.failures import NotServed
from dovetail.adapters.kube.guards import DELETION_COSTS, MOVES, PLACES, GuardedRight, why_unproven
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.raw import KubeRawObjects
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.objects.watched_kinds import POLICIES
from dovetail.ports.failures import Forbidden
from dovetail.ports.inspection import ClusterFacts, RawObjects
from dovetail.ports.provider import Right

_LOOK: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch",)

# (group, resource[/subresource], verbs), in the order of the cluster role.
RIGHTS: Final = (
    ("karpenter.sh", "nodepools", (*_LOOK, *_CHANGE)),
    ("karpenter.sh", "nodeclaims", (*_LOOK, "create", *_CHANGE, "delete")),
    *[("karpenter.sh", f"{name}/status", _CHANGE) for name in ("nodepools", "nodeclaims")],
    *[("karpenter.sh", f"{name}/finalizers", ("update",)) for name in ("nodepools", "nodeclaims")],
    ("", "nodes", (*_LOOK, "patch", "delete")),
    ("", "nodes/status", _CHANGE),
    ("", "pods", (*_LOOK, "delete")),
    ("", "pods/eviction", ("create",)),
    *[("", name, _LOOK) for name in ("namespaces", "persistentvolumes", "persistentvolumeclaims")],
    *[("", name, _LOOK) for name in ("services", "replicationcontrollers")],
    *[("apps", name, _LOOK) for name in ("daemonsets", "replicasets", "statefulsets")],
    ("policy", "poddisruptionbudgets", _LOOK),
    *[("storage.k8s.io", name, _LOOK) for name in ("storageclasses", "csinodes", "volumeattachments")],
    *[("dovetail.sh", name, _LOOK) for name in ("disruptionpolicies", "freezes", "noderollouts")],
    *[("dovetail.sh", f"{name}/status", _CHANGE) for name in ("disruptionpolicies", "freezes", "noderollouts")],
    ("dovetail.sh", "noderollouts", ("create", "delete")),
    ("", "events", ("create", "patch")),
    ("coordination.k8s.io", "leases", ("list",)),
    ("discovery.k8s.io", "endpointslices", ("get",)),
)

# In the namespace of the worker: (group, resource, verbs).
OWN_RIGHTS: Final = (("", "configmaps", ("get", *_CHANGE)),)

# Where NodePools are under the policy cost: to nominate pods for the nodes that were made for them.
PLACES_RIGHTS: Final = (("", "pods/status", _CHANGE),)

# Where the gate PodDeletionCostManagement is open.
DELETION_COST_RIGHTS: Final = (("", "pods", _CHANGE),)

# Where pods are moved by a roll-out of their Deployment; an admission policy keeps the first to that.
MOVES_RIGHTS: Final = (
    ("apps", "deployments", _CHANGE),
    *[("admissionregistration.k8s.io", f"validatingadmission{kind}", _LOOK) for kind in ("policies", "policybindings")],
)

# Of these kinds one object alone may be seen and changed. What is created cannot be named.
NAMES: Final = {
    "leases": "karpenter-leader-election",
    "configmaps": "dovetail-shortages",
    "endpointslices": "kubernetes",
}

# Of the kinds that a feature gate opens, those that are written.
_WRITTEN: Final = frozenset({"nodeoverlays", "capacitybuffers"})


def name_of(resource: str, verb: str) -> str:
    """The one object to which a right is granted; empty if it is granted to all."""
    return "" if verb == "create" else NAMES.get(resource, "")


def rights_of_watched(path: str) -> tuple[Right, ...]:
    """The rights needed for a kind of NodeClass, and for one that an open feature gate watches."""
    group, resource = _group_and_resource(path)
    status = ((group, f"{resource}/status", _CHANGE),) if resource in _WRITTEN else ()
    return ((group, resource, _LOOK), *status)


def _group_and_resource(path: str) -> tuple[str, str]:
    parts = path.strip("/").split("/")
    return parts[1] if parts[0] == "apis" else "", parts[-1]


# Of releases of Karpenter before v1: kinds of every cloud, and the two namespaces in which its settings were.
_OLD_KINDS: Final = {
    "Provisioner": "/apis/karpenter.sh/v1alpha5/provisioners",
    "Machine": "/apis/karpenter.sh/v1alpha5/machines",
}
_OLD_SETTINGS: Final = ("karpenter", "kube-system")

_VERSION: Final = Request(method="GET", path="/version", subject="cluster")
_SERVERS: Final = Request(
    method="GET",
    path="/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
    subject="EndpointSlice default/kubernetes, the addresses of the API server",
)
REVIEWS_AT_ONCE: Final = 8  # a hundred at once are a hundred handshakes
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a worker's settings require: rights in its own namespace, to keep places for pods, to move them, to write
    their deletion costs, and its cloud's."""

    namespace: str = "kube-system"
    keeps_places: bool = False
    moves: bool = False
    deletion_costs: bool = False
    of_cloud: tuple[Right, ...] = ()
    retired: tuple[tuple[str, str], ...] = ()  # kinds of NodeClass that its cloud no longer has, and their paths


class KubeInspection:
    """One cluster, over a client that is open."""

    def __init__(
        self,
        client: Client,
        gated: Iterable[Kind],
        node_classes: Iterable[Kind],
        need: Need,
    ) -> None:
        self._client = client
        self._namespace = need.namespace
        gated, node_classes = tuple(gated), tuple(node_classes)
        # What an open feature gate watches may take the place of a kind.
        self._kinds = tuple({kind.name: kind for kind in (*CLUSTER_KINDS, *node_classes, *gated)}.values())
        self._rights = _single(
            [
                (RIGHTS, ""),
                (OWN_RIGHTS, need.namespace),
                (PLACES_RIGHTS if need.keeps_places else (), ""),
                (MOVES_RIGHTS if need.moves else (), ""),
                (DELETION_COST_RIGHTS if need.deletion_costs else (), ""),
                (need.of_cloud, ""),
                *[(rights_of_watched(kind.path), "") for kind in (*node_classes, *gated)],
            ]
        )
        asked = ((need.keeps_places, PLACES), (need.moves, MOVES), (need.deletion_costs, DELETION_COSTS))
        self._guarded = [right for is_used, right in asked if is_used]
        self._old_kinds = {**_OLD_KINDS, **dict(need.retired)}

    async def facts(self) -> ClusterFacts:
        asked = time.time()
        answer = await self._client.call(_VERSION)
        answered = time.time()
        moment = answer.moment if answer.moment is not None else asked
        served = await asyncio.gather(*[self._is_served(kind) for kind in self._kinds])
        turn = asyncio.Semaphore(REVIEWS_AT_ONCE)

        async def may(right: tuple[str, str, str, str]) -> bool:
            async with turn:
                return await self._may(*right)

        granted = await asyncio.gather(*[may(right) for right in self._rights])
        return ClusterFacts(
            address=self._client.host,
            version=_version_in(answer.body),
            # The header is cut to whole seconds: half a second is added, and is part of the error beside the trip.
            clock_ahead=moment + 0.5 - (asked + answered) / 2 if answer.moment is not None else 0.0,
            clock_error=0.5 + (answered - asked) / 2,
            missing_kinds=tuple(
                k.name for k, there in zip(self._kinds, served, strict=True) if not there and k.name not in POLICIES
            ),
            missing_memory=await self._missing_memory(),
            left_behind=await self._left_behind(),
            missing_rights=tuple(_words(*right) for right, may in zip(self._rights, granted, strict=True) if not may),
            unproven=tuple([why for right in self._guarded if (why := await self._why_unproven(right))]),
        )

    async def version(self) -> str:
        return _version_in((await self._client.call(_VERSION)).body)

    async def servers(self) -> Collection[str]:
        listed = (await self._client.call(_SERVERS)).body.get("endpoints") or ()
        return [address for endpoint in listed for address in endpoint.get("addresses") or ()]

    async def _why_unproven(self, right: GuardedRight) -> str:
        """Tried on the first object that there is; empty also where there is none."""
        first = Request(method="GET", path=right.path, subject=right.kind, query={"limit": "1"})
        try:
            for found in (await self._client.call(first)).body.get("items") or ():
                meta = found["metadata"]
                return await why_unproven(self._client, right, meta["namespace"], meta["name"]) or ""
        except Forbidden:
            return ""  # the missing right is reported among the rights
        return ""

    async def _missing_memory(self) -> str:
        name = NAMES["configmaps"]
        shared = KubeRawObjects(self._client, "ConfigMap", "/api/v1/configmaps", self._namespace)
        try:
            return "" if await shared.read(name) is not None else f"{self._namespace}/{name}"
        except Forbidden:
            return ""  # the missing right is reported among the rights

    async def _left_behind(self) -> tuple[str, ...]:
        """What may not be read counts as absent: nobody is warned about a mere possibility."""
        kinds = await asyncio.gather(*[self._first_of(kind, path) for kind, path in self._old_kinds.items()])
        settings = await asyncio.gather(*[self._old_settings(namespace) for namespace in _OLD_SETTINGS])
        return tuple(words for words in (*kinds, *settings) if words)

    async def _first_of(self, kind: str, path: str) -> str:
        try:
            answer = await self._client.call(Request(method="GET", path=path, subject=kind, query={"limit": "1"}))
        except (NotServed, Forbidden):
            return ""
        items = answer.body.get("items") or []
        return f"{kind} {items[0]['metadata']['name']}" if items else ""

    async def _old_settings(self, namespace: str) -> str:
        settings = KubeRawObjects(self._client, "ConfigMap", "/api/v1/configmaps", namespace)
        try:
            found = await settings.read("karpenter-global-settings")
        except Forbidden:
            return ""
        return "" if found is None else f"ConfigMap {namespace}/karpenter-global-settings"

    async def objects(self) -> RawObjects:
        found: dict[str, list[dict[str, Any]]] = {}
        for kind in self._kinds:
            try:
                found[kind.name] = [raw async for raw in list_all(self._client, kind.path, kind.name)]
            except NotServed:
                if not kind.optional or not await is_absent(self._client, kind.path):
                    raise
        return found

    async def object(self, kind: str, name: str) -> dict[str, Any] | None:
        path = next(each.path for each in self._kinds if each.name == kind)
        return await KubeRawObjects(self._client, kind, path).read(name)

    async def _is_served(self, kind: Kind) -> bool:
        request = Request(method="GET", path=kind.path, subject=kind.name, query={"limit": "1"})
        try:
            await self._client.call(request)
        except NotServed:
            return False
        except Forbidden:
            return True  # it is served; the missing right is reported among the rights
        return True

    async def _may(self, group: str, resource: str, verb: str, namespace: str) -> bool:
        name, _, subresource = resource.partition("/")
        attributes = {"group": group, "resource": name, "subresource": subresource, "verb": verb}
        attributes |= {"namespace": namespace} if namespace else {}
        alone = name_of(resource, verb)
        attributes |= {"name": alone} if alone else {}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        request = Request(method="POST", path=_REVIEWS, subject="SelfSubjectAccessReview", body=body)
        answer = await self._client.call(request)
        return bool((answer.body.get("status") or {}).get("allowed"))


def _version_in(body: dict[str, Any]) -> str:
    return str(body.get("gitVersion") or "unknown")


def _single(sources: Iterable[tuple[Iterable[Right], str]]) -> tuple[tuple[str, str, str, str], ...]:
    """Each right once: (group, resource, verb, namespace)."""
    found = [
        (group, resource, verb, namespace)
        for rights, namespace in sources
        for group, resource, verbs in rights
        for verb in verbs
    ]
    return tuple(dict.fromkeys(found))


def _words(group: str, resource: str, verb: str, namespace: str) -> str:
    words = f"{verb} {resource}.{group}" if group else f"{verb} {resource}"
    return f"{words} in {namespace}" if namespace else words

"""The port MadeObjects: objects of one kind as JSON, over the same client as all others."""

from collections.abc import Collection

from dovetail.adapters.kube.discovery import is_absent
from dovetail.adapters.kube.failures import CONFLICT, NOT_FOUND, NotServed
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.requests import Caller, Request, object_path
from dovetail.model.values.json import Json
from dovetail.ports.failures import Conflict, Forbidden


class KubeRawObjects:
    """One kind, by the path under which it is listed in all namespaces; `namespace` is empty for cluster-wide kinds."""

    def __init__(self, client: Caller, kind: str, path: str, namespace: str = "") -> None:
        self._client, self._kind, self._path, self._namespace = client, kind, path, namespace

    async def read(self, name: str) -> Json | None:
        answer = await self._client.call(self._request("GET", name, expected={NOT_FOUND}))
        return None if answer.status == NOT_FOUND else answer.body

    async def patch(self, raw: Json, change: Json, subresource: str = "") -> Json | None:
        meta = raw["metadata"]
        body = {**change, "metadata": {**change.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}}
        request = self._request("PATCH", meta["name"], body, {NOT_FOUND, CONFLICT}, subresource)
        answer = await self._client.call(request)
        if answer.status == CONFLICT:
            raise Conflict(request.subject, answer.message)
        return None if answer.status == NOT_FOUND else answer.body

    async def merge(self, name: str, change: Json) -> None:
        await self._client.call(self._request("PATCH", name, change))

    async def create(self, name: str, body: Json) -> Json | None:
        place = {"name": name, **({"namespace": self._namespace} if self._namespace else {})}
        request = Request(
            method="POST",
            path=self._collection,
            subject=f"{self._kind}/{name}",
            body={**body, "metadata": {**body.get("metadata", {}), **place}},
            expected=frozenset({CONFLICT}),
        )
        answer = await self._client.call(request)
        return None if answer.status == CONFLICT else answer.body

    async def list_labelled(self, selector: str) -> tuple[Json, ...]:
        found = list_all(self._client, self._collection, f"{self._kind}s", {"labelSelector": selector})
        return tuple([raw async for raw in found])

    @property
    def _collection(self) -> str:
        return object_path(self._path, "", namespace=self._namespace).rstrip("/")

    def _request(
        self, method: str, name: str, body: Json | None = None, expected: Collection[int] = (), subresource: str = ""
    ) -> Request:
        return Request(
            method=method,
            path=object_path(self._path, name, subresource, self._namespace),
            subject=f"{self._kind}/{name}",
            body=body,
            expected=frozenset(expected),
        )


async def server_version(client: Caller) -> str:
    """Major.minor of the cluster, as the API server answers now."""
    there = frozenset({NOT_FOUND})  # a gateway's is no answer
    answer = await client.call(Request(method="GET", path="/version", subject="version of the cluster", expected=there))
    minor = "".join(c for c in str(answer.body.get("minor", "")) if c.isdigit())  # EKS says "36+"
    return f"{answer.body.get('major', '')}.{minor}"


async def user_of(client: Caller) -> str:
    """The name under which the API server knows us; empty if it gives none (before 1.28, or without the right)."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        answer = await client.call(Request(method="POST", path=path, subject="our own name", body=review))
    except Forbidden:
        return ""
    except NotServed:
        if await is_absent(client, path):
            return ""
        raise
    return str(((answer.body.get("status") or {}).get("userInfo") or {}).get("username") or "")

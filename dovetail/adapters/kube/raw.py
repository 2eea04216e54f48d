"""Objects that have no port, as raw JSON: a cloud's NodeClasses and the ConfigMap in which it remembers shortages.

The same promises as everywhere: changes carry the version they were decided on, None stands for gone. The trap avoided:
a second client with its own idea of what a status means.
"""

from dovetail.adapters.kube.client import Client, Request, object_path
from dovetail.adapters.kube.failures import CONFLICT, NOT_FOUND
from dovetail.model.json import Json
from dovetail.ports.failures import Conflict


class RawObjects:
    """One kind, by the path under which it is listed in all namespaces; `namespace` is empty for cluster-wide kinds."""

    def __init__(self, client: Client, path: str, namespace: str = "") -> None:
        self._client = client
        self._path = path
        self._namespace = namespace

    async def read(self, name: str) -> Json | None:
        """The object as the API server has it now."""
        answer = await self._client.call(self._request("GET", name, None, {NOT_FOUND}))
        return None if answer.status == NOT_FOUND else answer.body

    async def create(self, body: Json) -> Json:
        """Create it; Taken where the name is."""
        path = object_path(self._path, "", "", self._namespace).rstrip("/")
        subject = f"{body['kind']}/{body['metadata']['name']}"
        return (await self._client.call(Request(method="POST", path=path, subject=subject, body=body))).body

    async def patch(self, raw: Json, body: Json, subresource: str = "") -> Json | None:
        """A merge patch at the version of `raw`; None where it is gone, Conflict where it has changed."""
        meta = raw["metadata"]
        patch = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}}
        request = self._request("PATCH", meta["name"], patch, {NOT_FOUND, CONFLICT}, subresource)
        answer = await self._client.call(request)
        if answer.status == CONFLICT:
            raise Conflict(request.subject, answer.message)
        return None if answer.status == NOT_FOUND else answer.body

    def _request(self, method: str, name: str, body: Json | None, expected: set[int], subresource: str = "") -> Request:
        return Request(
            method=method,
            path=object_path(self._path, name, subresource, self._namespace),
            subject=f"{self._path.rpartition('/')[2]}/{name}",
            body=body,
            expected=frozenset(expected),
        )

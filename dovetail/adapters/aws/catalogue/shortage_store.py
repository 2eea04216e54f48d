"""Shortages in a ConfigMap, shared by all workers and kept over restarts.

An entry per shortage, its value the end as seconds; writers merge, so that none takes away what another has just found.
"""

from typing import Any, Final

from dovetail.adapters.kube.client import Client, Request, object_path

Json = dict[str, Any]

NAME: Final = "dovetail-shortages"
_COLLECTION: Final = "/api/v1/configmaps"
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class ConfigMapStore:
    """The ConfigMap."""

    def __init__(self, client: Client, namespace: str, name: str = NAME) -> None:
        self._client, self._namespace, self._name = client, namespace, name

    async def read(self) -> dict[str, float]:
        answer = await self._client.call(self._request("GET", None, _NOT_FOUND))
        if answer.status == _NOT_FOUND:
            return {}
        data: dict[str, str] = answer.body.get("data") or {}
        return {key: float(value) for key, value in data.items() if _is_number(value)}

    async def write(self, changes: dict[str, float | None]) -> None:
        data = {key: None if end is None else f"{end:.3f}" for key, end in changes.items()}
        answer = await self._client.call(self._request("PATCH", {"data": data}, _NOT_FOUND))
        if answer.status != _NOT_FOUND:
            return
        kept = {key: value for key, value in data.items() if value is not None}
        body = {"metadata": {"name": self._name, "namespace": self._namespace}, "data": kept}
        made = Request(
            method="POST",
            path=f"/api/v1/namespaces/{self._namespace}/configmaps",
            subject=f"ConfigMap/{self._name}",
            body=body,
            expected=frozenset({_CONFLICT}),
        )
        if (await self._client.call(made)).status == _CONFLICT:
            await self._client.call(self._request("PATCH", {"data": data}))

    def _request(self, method: str, body: Json | None, *expected: int) -> Request:
        return Request(
            method=method,
            path=object_path(_COLLECTION, self._name, namespace=self._namespace),
            subject=f"ConfigMap/{self._name}",
            body=body,
            expected=frozenset(expected),
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""What reading and changing one object have in common, whatever its kind.

Every change is a merge patch that carries the resourceVersion it was decided on, or a JSON patch that tests the parts
that it changes; "gone" means that no object of that UID exists any more. So the UID is checked after a conflict: the
conflict may be with another object that has since taken the name. Changes of one object take turns (`latest.py`).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from dovetail.adapters.kube.failures import CONFLICT, INVALID, NOT_FOUND, Answer, failure_of
from dovetail.adapters.kube.objects.latest import LatestAnswers
from dovetail.adapters.kube.requests import PARTS_PATCH, Caller, Request, object_path
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.model.values.json import Json
from dovetail.ports.failures import Conflict, Forbidden, NotReadable
from dovetail.ports.objects import Versioned

Object = TypeVar("Object", bound=Versioned)


@dataclass(frozen=True)  # no slots: a generic class with both cannot be made in 3.11
class Collection(Generic[Object]):
    """The objects of one cluster-scoped kind."""

    client: Caller
    kind: str
    path: str
    parse: Callable[[Json], Object]
    latest: LatestAnswers[Object] = field(default_factory=LatestAnswers)

    async def read(self, name: str) -> Object | None:
        raw = await self.read_raw(name)
        return None if raw is None else self.latest.remember(self.parsed(raw))

    async def read_raw(self, name: str) -> Json | None:
        answer = await self.client.call(self._request("GET", name, {NOT_FOUND}))
        return None if answer.status == NOT_FOUND else answer.body

    async def raw_at_version(self, value: Object) -> Json:
        """The JSON that `value` was read from; Conflict if the object has changed since, {} if it is gone."""
        raw = await self.read_raw(value.name)
        if raw is None:
            return {}
        if raw["metadata"].get("resourceVersion") != value.resource_version:
            raise Conflict(f"{self.kind}/{value.name}", f"no longer at version {value.resource_version}")
        return raw

    async def patch(self, value: Object, body: Json, subresource: str = "") -> Object | None:
        """A merge patch at the version of `value`; None where the object is gone.

        A Conflict carries the object as it is now."""
        meta = {**body.get("metadata", {}), "resourceVersion": value.resource_version}
        whole = {**body, "metadata": meta}
        return await self._patched(value, self._request("PATCH", value.name, {NOT_FOUND, CONFLICT}, subresource, whole))

    async def patch_parts(self, value: Object, operations: list[Json]) -> Object | None:
        """A JSON patch whose tests hold what it was decided on, whatever else has changed; None if the object is gone,
        and a Conflict as above if a test fails."""
        request = self._request("PATCH", value.name, {NOT_FOUND, CONFLICT, INVALID}, body=operations)
        return await self._patched(value, replace(request, patch_type=PARTS_PATCH))

    async def _patched(self, value: Object, request: Request) -> Object | None:
        async with self.latest.turn(value.name):
            newer = self.latest.newer_than(value)
            if newer is not None:
                message = f"changed from version {value.resource_version} to {newer.resource_version}"
                raise Conflict(f"{self.kind}/{value.name}", message, newer)
            answer = await self.client.call(request)
            if answer.status == NOT_FOUND:
                self.latest.drop(value.name)
                return None
            if answer.status == INVALID and not _is_failed_test(answer):
                raise failure_of(answer, request.subject)
            if answer.status in (CONFLICT, INVALID):
                return await self._conflicted(value, answer)
            return self.latest.remember(self.parsed(answer.body))

    async def delete(self, name: str, uid: str) -> int:
        """Delete the object of that UID; the version at which it is now deleting, 0 if it is gone."""
        request = self._request("DELETE", name, {NOT_FOUND, CONFLICT}, body={"preconditions": {"uid": uid}})
        answer = await self.client.call(request)
        if answer.status == NOT_FOUND:
            return 0
        if answer.status == CONFLICT:
            if await self._is_there(name, uid):
                raise Conflict(f"{self.kind}/{name}", answer.message)
            return 0
        meta = answer.body.get("metadata") or {}
        if not meta.get("finalizers"):
            return 0  # it is gone with the answer, which is then a bare Status (or its last state)
        with suppress(NotReadable):  # it is being deleted all the same
            self.latest.remember(self.parsed(answer.body))
        return int(meta["resourceVersion"])

    def parsed(self, raw: Json) -> Object:
        """The object, or NotReadable naming it and the field."""
        return parsed(self.parse, raw)

    async def _conflicted(self, value: Object, answer: Answer) -> Object | None:
        raw = await self.read_raw(value.name)
        live = None if raw is None else self.latest.replace(self.parsed(raw))
        if live is None or live.uid != value.uid:
            return None
        if answer.status == INVALID and live.resource_version == value.resource_version:
            raise Forbidden(f"{self.kind}/{value.name}", answer.message)  # a webhook's 422: no test can have failed
        raise Conflict(f"{self.kind}/{value.name}", answer.message, live)

    async def _is_there(self, name: str, uid: str) -> bool:
        raw = await self.read_raw(name)
        return raw is not None and raw["metadata"].get("uid") == uid

    def _request(
        self, method: str, name: str, expected: set[int], subresource: str = "", body: Json | list[Json] | None = None
    ) -> Request:
        return Request(
            method=method,
            path=object_path(self.path, name, subresource),
            subject=f"{self.kind}/{name}",
            body=body,
            expected=frozenset(expected),
        )


def _is_failed_test(answer: Answer) -> bool:
    """Whether a test of the patch failed: other errors have causes. An existing taint is no fault of ours."""
    return all(str(cause.get("field")).startswith("spec.taints") for cause in answer.causes)

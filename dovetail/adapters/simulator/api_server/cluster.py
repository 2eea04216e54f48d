"""The API server's verbs over one open transaction: create, patch, delete, with what it promises about each.

Each call leaves an entry in the ledger. As on the real server: preconditions on resourceVersion and UID answered
by 409, finalizers holding a deleted object, graceful deletion of bound pods, generation rising with the spec, and a
patch that changes nothing leaving the version alone.
"""

import secrets
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import orjson

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.admission import (
    NAMESPACED,
    STATUS_ONLY_THROUGH_SUBRESOURCE,
    WITHOUT_GENERATION,
    admitted,
    check_change,
    without_empty,
)
from dovetail.adapters.simulator.api_server.patching import merged
from dovetail.adapters.simulator.api_server.policies import check_policies
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.ledger import Entry, append
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time, parse_time

# What no patch changes.
_KEPT: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class Cluster:
    """The cluster as one actor writes to it at one moment."""

    def __init__(self, connection: sqlite3.Connection, actor: str, now: float) -> None:
        self.connection = connection
        self.actor = actor
        self.now = now

    def read(self, kind: str, key: str) -> Json | None:
        """One object, or None."""
        return objects.read(self.connection, kind, key)

    def create(self, body: Json) -> Json:
        """Create an object. 409 AlreadyExists if the name is taken."""
        body = self._with_identity(body)
        with self.recorded("create", body):
            self._check_namespace(body)
            if self.read(body["kind"], objects.key_of(body)) is not None:
                raise Rejected(409, "AlreadyExists", f"{body['kind']} {objects.key_of(body)} already exists")
            return objects.put(self.connection, without_empty(admitted(body, self.now)))

    def patch(
        self, kind: str, key: str, patch: Any, subresource: str = "", by: Callable[[Any, Any], Any] = merged
    ) -> Json:
        """Patch an object or its status. Removing the last finalizer ends a deleted object."""
        with self.recorded(f"patch-{subresource}" if subresource else "patch", _named(kind, key), patch):
            old = self._existing(kind, key)
            wanted = {} if isinstance(patch, list) else patch.get("metadata") or {}
            _check_same(old, "resourceVersion", wanted.get("resourceVersion"))
            if wanted.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
                message = f"{kind} {key}: metadata.uid: field is immutable"
                raise Rejected(422, "Invalid", message, {"field": "metadata.uid"})
            new = without_empty(self._changed(old, by(without_empty(old), patch), subresource))
            check_change(old, new)
            check_policies(self.connection, self.actor, old, new)
            if new == old:
                return old
            if _generates(old) and _without_state(new) != _without_state(old):
                new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
            if _is_finished(new):
                return objects.remove(self.connection, new)
            return objects.put(self.connection, new)

    def delete(self, kind: str, key: str, uid: str = "", grace: int | None = None) -> Json | None:
        """Delete an object. The object if finalizers or its grace still hold it, None if it is gone."""
        with self.recorded("delete", _named(kind, key, uid), {"gracePeriodSeconds": grace}):
            old = self._existing(kind, key)
            _check_same(old, "uid", uid)
            return self.end(old, grace)

    @contextmanager
    def recorded(self, verb: str, body: Json, detail: Any = None) -> Iterator[None]:
        """Record what happens inside in the ledger, a rejection included."""
        outcome = "ok"
        try:
            yield
        except Rejected as rejected:
            outcome = f"{rejected.code} {rejected.reason}"
            raise
        finally:
            entry = Entry(
                at=self.now,
                actor=self.actor,
                operation=f"cluster:{verb}",
                kind=body["kind"],
                key=objects.key_of(body),
                uid=body["metadata"].get("uid", ""),
                outcome=outcome,
                detail=orjson.dumps(detail).decode() if detail else "",
            )
            append(self.connection, entry)

    def _with_identity(self, body: Json) -> Json:
        metadata = dict(body["metadata"])
        if "name" not in metadata:
            metadata["name"] = metadata.pop("generateName") + secrets.token_hex(5)
        if body["kind"] in NAMESPACED:
            metadata.setdefault("namespace", "default")
        metadata.pop("deletionTimestamp", None)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = format_time(self.now)
        if body["kind"] not in WITHOUT_GENERATION:
            metadata["generation"] = 1
        created = {**body, "metadata": metadata}
        if body["kind"] in STATUS_ONLY_THROUGH_SUBRESOURCE:
            created.pop("status", None)
        return created

    def _check_namespace(self, body: Json) -> None:
        namespace = body["metadata"].get("namespace")
        if namespace and self.read("Namespace", namespace) is None:
            raise Rejected(404, "NotFound", f'namespaces "{namespace}" not found')

    def _existing(self, kind: str, key: str) -> Json:
        found = self.read(kind, key)
        if found is None:
            raise Rejected(404, "NotFound", f"{kind} {key} not found")
        return found

    def _changed(self, old: Json, new: Json, subresource: str) -> Json:
        """The part of a change that a write there may make."""
        if subresource == "status":
            return {**old, "metadata": dict(old["metadata"]), "status": new.get("status", {})}
        if old["kind"] in STATUS_ONLY_THROUGH_SUBRESOURCE or old["kind"] == "Node":
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        metadata = {name: value for name, value in new["metadata"].items() if name not in _KEPT}
        kept = {
            name: old["metadata"][name] for name in (*_KEPT, "generation", "resourceVersion") if name in old["metadata"]
        }
        new["metadata"] = {**metadata, **kept}
        return new

    def end(self, old: Json, grace: int | None = None) -> Json | None:
        """The effect of a delete or an accepted eviction on an object; it makes no ledger entry of its own."""
        seconds = _grace_of(old, grace)
        metadata = dict(old["metadata"])
        if "deletionTimestamp" in metadata:
            left = metadata.get("deletionGracePeriodSeconds", 0)
            if seconds >= left:
                return old  # already deleting; a longer grace is not granted
            started = parse_time(metadata["deletionTimestamp"]) - left
        else:
            started = self.now
            if _generates(old):
                metadata["generation"] = metadata.get("generation", 1) + 1
        metadata["deletionTimestamp"] = format_time(started + seconds)
        metadata["deletionGracePeriodSeconds"] = seconds
        new = {**old, "metadata": metadata}
        if _is_finished(new):
            objects.remove(self.connection, new)
            return None
        return objects.put(self.connection, new)


def _check_same(found: Json, name: str, wanted: str | None) -> None:
    """Refuse where a precondition names another version or UID."""
    if wanted and wanted != found["metadata"][name]:
        message = f"{found['kind']} {objects.key_of(found)}: {name} is {found['metadata'][name]}, not {wanted}"
        raise Rejected(409, "Conflict", message)


def _named(kind: str, key: str, uid: str = "") -> Json:
    namespace, _, name = key.rpartition("/")
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace, "uid": uid}}


def _generates(body: Json) -> bool:
    return body["kind"] not in WITHOUT_GENERATION


def _without_state(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in ("metadata", "status")}


def _is_finished(body: Json) -> bool:
    """Deleting, held by no finalizer and by no grace."""
    metadata = body["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds", 0)
    )


def _grace_of(body: Json, grace: int | None) -> int:
    """Only a bound pod that has not ended gets a grace period."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    if body["kind"] != "Pod" or not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    wanted = spec.get("terminationGracePeriodSeconds", 30) if grace is None else grace
    return int(wanted)

"""The rows under the API: one object one row, one write one revision.

A revision is the row number of `changes`, and the resourceVersion of the object written with it; like etcd's it is one
counter for every kind.
"""

import sqlite3
from collections.abc import Iterator

import orjson

from dovetail.model.values.json import Json


def key_of(body: Json) -> str:
    """namespace/name, or the name alone of an object without a namespace."""
    metadata = body["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def read(connection: sqlite3.Connection, kind: str, key: str) -> Json | None:
    row = connection.execute("SELECT body FROM objects WHERE kind = ? AND key = ?", (kind, key)).fetchone()
    return None if row is None else orjson.loads(row["body"])


def every(connection: sqlite3.Connection, kind: str) -> Iterator[Json]:
    """All objects of a kind, by key."""
    for row in connection.execute("SELECT body FROM objects WHERE kind = ? ORDER BY key", (kind,)):
        yield orjson.loads(row["body"])


def pods_on(connection: sqlite3.Connection, node: str) -> list[Json]:
    rows = connection.execute(
        "SELECT body FROM objects WHERE kind = 'Pod' AND json_extract(body, '$.spec.nodeName') = ? ORDER BY key",
        (node,),
    )
    return [orjson.loads(row["body"]) for row in rows]


def put(connection: sqlite3.Connection, body: Json) -> Json:
    """Write an object at the next revision; the object as it now stands."""
    kind, key, uid = body["kind"], key_of(body), body["metadata"]["uid"]
    revision = _next_revision(connection, kind, key, uid)
    body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(revision)}}
    connection.execute(
        "INSERT INTO objects (kind, key, uid, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (kind, key) DO UPDATE SET uid = excluded.uid, body = excluded.body",
        (kind, key, uid, orjson.dumps(body).decode()),
    )
    return body


def remove(connection: sqlite3.Connection, body: Json) -> Json:
    """Remove an object at the next revision; its last state."""
    kind, key, uid = body["kind"], key_of(body), body["metadata"]["uid"]
    revision = _next_revision(connection, kind, key, uid, deleted="{}")
    body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(revision)}}
    connection.execute("UPDATE changes SET deleted = ? WHERE revision = ?", (orjson.dumps(body).decode(), revision))
    connection.execute("DELETE FROM objects WHERE kind = ? AND key = ?", (kind, key))
    return body


def newest_revision(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT MAX(revision) AS newest FROM changes").fetchone()
    return row["newest"] or 0


def _next_revision(connection: sqlite3.Connection, kind: str, key: str, uid: str, deleted: str | None = None) -> int:
    change = (kind, key, uid, deleted)
    cursor = connection.execute("INSERT INTO changes (kind, key, uid, deleted) VALUES (?, ?, ?, ?)", change)
    if cursor.lastrowid is None:
        raise RuntimeError("an INSERT without a row number")
    return cursor.lastrowid

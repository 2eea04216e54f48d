"""The ledger: each call to the cluster or the cloud, its caller, and its outcome.

Written in the transaction of the call itself, so that neither a call nor its entry exists without the other. The file
refuses to change an entry.
"""

import sqlite3
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One call. Operation is `cluster:<verb>` or `cloud:<verb>`; outcome is `ok` or the code or word of the answer."""

    id: int = 0
    at: float
    actor: str
    operation: str
    kind: str = ""
    key: str = ""
    uid: str = ""
    token: str = ""
    outcome: str = "ok"
    detail: str = ""


def append(connection: sqlite3.Connection, entry: Entry) -> None:
    """Add an entry; the file assigns its id."""
    connection.execute(
        "INSERT INTO ledger (at, actor, operation, kind, key, uid, token, outcome, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        astuple(entry)[1:],
    )

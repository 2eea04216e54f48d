"""Ordered faults: calls that fail before their effect, or after it with the answer lost.

Tests order them. The second kind matters most: the instance is launched, and the caller learns only that the cloud is
unreachable (DUR-1).
"""

import sqlite3
from typing import Final, Literal

from dovetail.ports.failures import Conflict, Failure, Forbidden, Throttled, Unauthenticated, Unreachable

Moment = Literal["before", "after"]

_FAILURES: Final[dict[str, type[Failure]]] = {
    kind.__name__: kind for kind in (Conflict, Forbidden, Throttled, Unauthenticated, Unreachable)
}


def order(connection: sqlite3.Connection, operation: str, moment: Moment, failure: str, times: int) -> None:
    """Let the next `times` calls of an operation fail."""
    if failure not in _FAILURES:
        raise ValueError(f"no such failure: {failure}")
    connection.execute(
        "INSERT INTO faults (operation, moment, failure, remaining) VALUES (?, ?, ?, ?)",
        (operation, moment, failure, times),
    )


def take(connection: sqlite3.Connection, operation: str, moment: Moment) -> Failure | None:
    """The failure that is due for this call now, if one was ordered; it counts as used."""
    row = connection.execute(
        "SELECT id, failure FROM faults WHERE operation = ? AND moment = ? AND remaining > 0 ORDER BY id LIMIT 1",
        (operation, moment),
    ).fetchone()
    if row is None:
        return None
    connection.execute("UPDATE faults SET remaining = remaining - 1 WHERE id = ?", (row["id"],))
    return _FAILURES[row["failure"]](operation, f"a fault on order, {moment} the effect")

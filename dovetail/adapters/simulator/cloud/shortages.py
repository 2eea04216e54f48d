"""Shortages: which offerings the cloud has refused, and until when they are remembered.

Written by a launch that was refused, read by the next `prepare` and by the catalogue. Kept in the file, so that every
worker knows what one of them learned; each is forgotten after 3 minutes (AWS-72).
"""

import sqlite3
from collections.abc import Iterable

from dovetail.adapters.kwok.instance_types import OfferingKey


def remember(connection: sqlite3.Connection, pools: Iterable[OfferingKey], until: float) -> None:
    """These had no capacity; a repeated shortage lasts longer."""
    connection.executemany(
        "INSERT INTO shortages (instance_type, zone, capacity_type, until) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (instance_type, zone, capacity_type) DO UPDATE SET until = MAX(until, excluded.until)",
        [(*pool, until) for pool in pools],
    )


def known(connection: sqlite3.Connection, now: float) -> frozenset[OfferingKey]:
    rows = connection.execute("SELECT instance_type, zone, capacity_type FROM shortages WHERE until > ?", (now,))
    return frozenset(OfferingKey(row["instance_type"], row["zone"], row["capacity_type"]) for row in rows)

"""Which offerings the cloud has refused, until when: what design.md calls shortages.

Written by a launch that met famine, read by the next `prepare` and by the catalogue. Kept in the file, so that every
worker knows what one of them learned. The trap avoided: a fact without an end; each is forgotten in 3 minutes (W-72).
"""

import sqlite3
from collections.abc import Iterable

from dovetail.adapters.simulator.cloud.purchases import Pool


def remember(connection: sqlite3.Connection, pools: Iterable[Pool], until: float) -> None:
    """These had nothing to sell; known again makes it last longer."""
    connection.executemany(
        "INSERT INTO shortages (instance_type, zone, capacity_type, until) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (instance_type, zone, capacity_type) DO UPDATE SET until = MAX(until, excluded.until)",
        [(*pool, until) for pool in pools],
    )


def known(connection: sqlite3.Connection, now: float) -> frozenset[Pool]:
    """The shortages of this moment."""
    rows = connection.execute("SELECT instance_type, zone, capacity_type FROM shortages WHERE until > ?", (now,))
    return frozenset((row["instance_type"], row["zone"], row["capacity_type"]) for row in rows)

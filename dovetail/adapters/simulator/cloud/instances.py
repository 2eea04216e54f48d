"""The cloud's own side: instances, tokens, missing capacity. Of claims it knows only the tags that it is given.

A token always refers to one instance, so that none is launched twice; reused with other parameters it is refused, as
AWS does with IdempotentParameterMismatch.
"""

import secrets
import sqlite3
from dataclasses import dataclass, replace
from typing import Literal

from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.cloud.catalogue import read_catalogue
from dovetail.adapters.simulator.settings import WorldSettings, read_settings, write_settings

State = Literal["pending", "running", "terminating", "terminated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCall:
    """One launch: the capacity pools in the order in which they are tried, and the data of the instance."""

    token: str
    parameters: str
    pools: tuple[OfferingKey, ...]
    cluster: str
    claim_uid: str
    claim_name: str
    image: str
    annotations: str
    user_data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    id: str
    provider_id: str
    token: str | None
    parameters: str
    cluster: str
    claim_uid: str
    claim_name: str
    instance_type: str
    zone: str
    capacity_type: str
    image: str
    annotations: str
    user_data: str
    state: State
    launched: float
    boots: float | None
    joins: int
    node: str
    joined: float | None
    ends: float | None

    @property
    def pool(self) -> OfferingKey:
        """The capacity pool that it came from."""
        return OfferingKey(self.instance_type, self.zone, self.capacity_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """The answer to a launch: the instance, if any, and the pools that had no capacity."""

    row: InstanceRow | None
    refused: tuple[OfferingKey, ...] = ()


def launch(connection: sqlite3.Connection, call: LaunchCall, now: float) -> Launched:
    """Launch in the first pool that has capacity. The same token answers with the same instance."""
    earlier = _one(connection, "token = ?", call.token) if call.token else None
    if earlier is not None:
        if earlier.parameters != call.parameters:
            raise Rejected(400, "IdempotentParameterMismatch", "the token was used with other parameters before")
        return Launched(row=earlier)
    refused: list[OfferingKey] = []
    for pool in call.pools:
        if not is_sold_out(connection, pool):
            return Launched(row=_boot(connection, call, pool, now), refused=tuple(refused))
        refused.append(pool)
    return Launched(row=None, refused=tuple(refused))


def terminate(connection: sqlite3.Connection, provider_id: str, now: float) -> Literal["terminating", "gone"]:
    """Terminate an instance; it is gone a while later."""
    row = by_provider_id(connection, provider_id)
    if row is None or row.state == "terminated":
        return "gone"
    if row.state != "terminating":
        ends = now + read_settings(connection).delay("shutdown")
        connection.execute("UPDATE instances SET state = 'terminating', ends = ? WHERE id = ?", (ends, row.id))
    return "terminating"


def reboot(connection: sqlite3.Connection, provider_id: str, now: float) -> str:
    """Reboot it; whether it does. One that is already booting accepts no second request."""
    row = by_provider_id(connection, provider_id)
    if row is None or row.state != "running":
        return "refused" if row is None or row.state != "pending" else "booting"
    boots = now + read_settings(connection).delay("boot")
    connection.execute("UPDATE instances SET state = 'pending', boots = ? WHERE id = ?", (boots, row.id))
    return "rebooting"


def by_provider_id(connection: sqlite3.Connection, provider_id: str) -> InstanceRow | None:
    """The instance of that id, whatever its state."""
    return _one(connection, "provider_id = ?", provider_id) if provider_id else None


def live_of_claim(connection: sqlite3.Connection, claim_uid: str) -> InstanceRow | None:
    """The instance tagged with that claim's UID that is not gone; the oldest, should there be several."""
    return _one(connection, "claim_uid = ? AND state <> 'terminated'", claim_uid) if claim_uid else None


def every(connection: sqlite3.Connection) -> list[InstanceRow]:
    """All instances that ever existed, oldest first."""
    rows = connection.execute("SELECT * FROM instances ORDER BY launched, id")
    return [InstanceRow(**dict(row)) for row in rows]


def unended(connection: sqlite3.Connection) -> list[InstanceRow]:
    """The instances that are not gone, oldest first."""
    rows = connection.execute("SELECT * FROM instances WHERE state <> 'terminated' ORDER BY launched, id")
    return [InstanceRow(**dict(row)) for row in rows]


def set_state(connection: sqlite3.Connection, row: InstanceRow, state: State) -> InstanceRow:
    connection.execute("UPDATE instances SET state = ? WHERE id = ?", (state, row.id))
    return replace(row, state=state)


def set_joined(connection: sqlite3.Connection, row: InstanceRow, node: str, now: float) -> None:
    """Its kubelet has registered a Node of that name."""
    connection.execute("UPDATE instances SET node = ?, joined = ? WHERE id = ?", (node, now, row.id))


def is_sold_out(connection: sqlite3.Connection, pool: OfferingKey) -> bool:
    row = connection.execute(
        "SELECT 1 FROM famines WHERE instance_type IN (?, '*') AND zone IN (?, '*') AND capacity_type IN (?, '*')",
        pool,
    ).fetchone()
    return row is not None


def _one(connection: sqlite3.Connection, condition: str, value: str) -> InstanceRow | None:
    statement = f"SELECT * FROM instances WHERE {condition} ORDER BY launched, id LIMIT 1"
    row = connection.execute(statement, (value,)).fetchone()
    return None if row is None else InstanceRow(**dict(row))


def _boot(connection: sqlite3.Connection, call: LaunchCall, pool: OfferingKey, now: float) -> InstanceRow:
    settings = read_settings(connection)
    joins = _takes_part(connection, settings)
    identity = f"i-{secrets.token_hex(8)}"
    row = InstanceRow(
        id=identity,
        provider_id=read_catalogue(connection).provider_id(pool.zone, identity),
        token=call.token or None,
        parameters=call.parameters,
        cluster=call.cluster,
        claim_uid=call.claim_uid,
        claim_name=call.claim_name,
        instance_type=pool.instance_type,
        zone=pool.zone,
        capacity_type=pool.capacity_type,
        image=call.image,
        annotations=call.annotations,
        user_data=call.user_data,
        state="pending",
        launched=now,
        boots=now + settings.delay("boot"),
        joins=joins,
        node="",
        joined=None,
        ends=None,
    )
    return insert(connection, row)


def insert(connection: sqlite3.Connection, row: InstanceRow) -> InstanceRow:
    """Add a row as it is."""
    fields = InstanceRow.__slots__
    marks = ", ".join("?" for _ in fields)
    values = tuple(getattr(row, name) for name in fields)
    connection.execute(f"INSERT INTO instances ({', '.join(fields)}) VALUES ({marks})", values)
    return row


def _takes_part(connection: sqlite3.Connection, settings: WorldSettings) -> int:
    """0 if this instance is one of those that never join; each one reduces the count."""
    if settings.never_join == 0:
        return 1
    if settings.never_join > 0:
        write_settings(connection, replace(settings, never_join=settings.never_join - 1))
    return 0

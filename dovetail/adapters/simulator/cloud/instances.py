"""The cloud's own side: instances, tokens, famine. Knows nothing of claims but the tags that it is given.

The trap avoided: buying twice. A token stands for one instance for ever; used again with other parameters it is
refused, as AWS refuses it with IdempotentParameterMismatch.
"""

import secrets
import sqlite3
from dataclasses import dataclass, replace
from typing import Literal

from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.cloud.offers import read_shelf
from dovetail.adapters.simulator.cloud.purchases import Pool
from dovetail.adapters.simulator.settings import WorldSettings, read_settings, write_settings

State = Literal["pending", "running", "terminating", "terminated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One call to buy: the ways to buy in the order in which they are tried, and what the instance is to carry."""

    token: str
    parameters: str
    pools: tuple[Pool, ...]
    cluster: str
    claim_uid: str
    claim_name: str
    image: str
    annotations: str
    user_data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One instance as its row has it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """The answer to an order: the instance, if any, and the pools that had nothing to sell."""

    machine: Machine | None
    refused: tuple[Pool, ...] = ()


def buy(connection: sqlite3.Connection, order: Order, now: float) -> Bought:
    """Buy from the first pool that has capacity. The same token answers with the same instance."""
    earlier = _one(connection, "token = ?", order.token) if order.token else None
    if earlier is not None:
        if earlier.parameters != order.parameters:
            raise Rejected(400, "IdempotentParameterMismatch", "the token was used with other parameters before")
        return Bought(machine=earlier)
    refused: list[Pool] = []
    for pool in order.pools:
        if not is_short(connection, pool):
            return Bought(machine=_boot(connection, order, pool, now), refused=tuple(refused))
        refused.append(pool)
    return Bought(machine=None, refused=tuple(refused))


def end(connection: sqlite3.Connection, provider_id: str, now: float) -> Literal["terminating", "gone"]:
    """Terminate an instance; it is gone a while later."""
    machine = by_provider_id(connection, provider_id)
    if machine is None or machine.state == "terminated":
        return "gone"
    if machine.state != "terminating":
        ends = now + read_settings(connection).delay("shutdown")
        connection.execute("UPDATE instances SET state = 'terminating', ends = ? WHERE id = ?", (ends, machine.id))
    return "terminating"


def by_provider_id(connection: sqlite3.Connection, provider_id: str) -> Machine | None:
    """The instance of that id, whatever its state."""
    return _one(connection, "provider_id = ?", provider_id) if provider_id else None


def live_of_claim(connection: sqlite3.Connection, claim_uid: str) -> Machine | None:
    """The instance tagged with that claim's UID that is not gone; the oldest, should there be several."""
    return _one(connection, "claim_uid = ? AND state <> 'terminated'", claim_uid) if claim_uid else None


def every(connection: sqlite3.Connection) -> list[Machine]:
    """All instances that there ever were, oldest first."""
    rows = connection.execute("SELECT * FROM instances ORDER BY launched, id")
    return [Machine(**dict(row)) for row in rows]


def unended(connection: sqlite3.Connection) -> list[Machine]:
    """The instances that are not gone, oldest first."""
    rows = connection.execute("SELECT * FROM instances WHERE state <> 'terminated' ORDER BY launched, id")
    return [Machine(**dict(row)) for row in rows]


def set_state(connection: sqlite3.Connection, machine: Machine, state: State) -> Machine:
    """The instance in its next state."""
    connection.execute("UPDATE instances SET state = ? WHERE id = ?", (state, machine.id))
    return replace(machine, state=state)


def set_joined(connection: sqlite3.Connection, machine: Machine, node: str, now: float) -> None:
    """Its kubelet has registered a Node of that name."""
    connection.execute("UPDATE instances SET node = ?, joined = ? WHERE id = ?", (node, now, machine.id))


def is_short(connection: sqlite3.Connection, pool: Pool) -> bool:
    """Whether a capacity pool has nothing to sell now."""
    row = connection.execute(
        "SELECT 1 FROM famines WHERE instance_type IN (?, '*') AND zone IN (?, '*') AND capacity_type IN (?, '*')",
        pool,
    ).fetchone()
    return row is not None


def set_famine(connection: sqlite3.Connection, pool: Pool) -> None:
    """A pool, or with '*' many, has nothing to sell from now on."""
    connection.execute(
        "INSERT OR IGNORE INTO famines (instance_type, zone, capacity_type) VALUES (?, ?, ?)",
        pool,
    )


def end_famines(connection: sqlite3.Connection) -> None:
    """Everything is for sale again."""
    connection.execute("DELETE FROM famines")


def _one(connection: sqlite3.Connection, condition: str, value: str) -> Machine | None:
    statement = f"SELECT * FROM instances WHERE {condition} ORDER BY launched, id LIMIT 1"
    row = connection.execute(statement, (value,)).fetchone()
    return None if row is None else Machine(**dict(row))


def _boot(connection: sqlite3.Connection, order: Order, pool: Pool, now: float) -> Machine:
    settings = read_settings(connection)
    joins = _takes_part(connection, settings)
    instance_type, zone, capacity_type = pool
    identity = f"i-{secrets.token_hex(8)}"
    machine = Machine(
        id=identity,
        provider_id=read_shelf(connection).provider_id(zone, identity),
        token=order.token or None,
        parameters=order.parameters,
        cluster=order.cluster,
        claim_uid=order.claim_uid,
        claim_name=order.claim_name,
        instance_type=instance_type,
        zone=zone,
        capacity_type=capacity_type,
        image=order.image,
        annotations=order.annotations,
        user_data=order.user_data,
        state="pending",
        launched=now,
        boots=now + settings.delay("boot"),
        joins=joins,
        node="",
        joined=None,
        ends=None,
    )
    return insert(connection, machine)


def insert(connection: sqlite3.Connection, machine: Machine) -> Machine:
    """A row as it is said to be."""
    fields = Machine.__slots__
    marks = ", ".join("?" for _ in fields)
    values = tuple(getattr(machine, name) for name in fields)
    connection.execute(f"INSERT INTO instances ({', '.join(fields)}) VALUES ({marks})", values)
    return machine


def _takes_part(connection: sqlite3.Connection, settings: WorldSettings) -> int:
    """0 where this instance is one of those that never join; a counted one is used up."""
    if settings.never_join == 0:
        return 1
    if settings.never_join > 0:
        write_settings(connection, replace(settings, never_join=settings.never_join - 1))
    return 0

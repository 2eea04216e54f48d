"""What the file of a simulated world holds.

`changes` is the watch: one row per write, its number being the resourceVersion. Tests of faults judge by `ledger`, so
the file itself refuses to change or delete a row of it. The columns beside an object's JSON are derived from it in the
same statement, so that they cannot differ.
"""

from typing import Final

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,               -- name, or namespace/name
    uid TEXT NOT NULL,
    body TEXT NOT NULL,              -- the JSON of the API
    PRIMARY KEY (kind, key)
);
CREATE INDEX IF NOT EXISTS pods_by_node
    ON objects (json_extract(body, '$.spec.nodeName')) WHERE kind = 'Pod';

CREATE TABLE IF NOT EXISTS changes (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    uid TEXT NOT NULL,
    deleted TEXT                     -- the last state of an object that is gone; NULL for one that was written
);

CREATE TABLE IF NOT EXISTS instances (
    id TEXT PRIMARY KEY,
    provider_id TEXT NOT NULL UNIQUE,
    token TEXT UNIQUE,
    parameters TEXT NOT NULL,        -- what the token was used with
    cluster TEXT NOT NULL,
    claim_uid TEXT NOT NULL,
    claim_name TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    zone TEXT NOT NULL,
    capacity_type TEXT NOT NULL,
    image TEXT NOT NULL,
    annotations TEXT NOT NULL,       -- JSON
    user_data TEXT NOT NULL,         -- JSON: labels and taints with which its kubelet registers
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'terminating', 'terminated')),
    launched REAL NOT NULL,
    boots REAL,                      -- the moment at which it runs and its kubelet joins
    joins INTEGER NOT NULL,          -- 0: it never joins
    node TEXT NOT NULL DEFAULT '',   -- the Node that its kubelet made
    joined REAL,
    ends REAL                        -- the moment at which a terminating instance is gone
);
CREATE INDEX IF NOT EXISTS instances_by_claim ON instances (claim_uid);
CREATE INDEX IF NOT EXISTS instances_unended ON instances (launched) WHERE state <> 'terminated';

CREATE TABLE IF NOT EXISTS famines (  -- '*' stands for every one
    instance_type TEXT NOT NULL,
    zone TEXT NOT NULL,
    capacity_type TEXT NOT NULL,
    PRIMARY KEY (instance_type, zone, capacity_type)
);
CREATE TABLE IF NOT EXISTS shortages ( -- what the cloud has refused, as the adapter remembers it
    instance_type TEXT NOT NULL,
    zone TEXT NOT NULL,
    capacity_type TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (instance_type, zone, capacity_type)
);
CREATE TABLE IF NOT EXISTS faults (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    operation TEXT NOT NULL,          -- cloud:launch, cluster:patch, ...
    moment TEXT NOT NULL CHECK (moment IN ('before', 'after')),
    failure TEXT NOT NULL,            -- the name of a failure of dovetail.ports.failures
    remaining INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    operation TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    uid TEXT NOT NULL,
    token TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_by_operation ON ledger (operation, kind);
CREATE TRIGGER IF NOT EXISTS ledger_is_not_changed BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS ledger_is_not_shortened BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""

"""deploy/temporal/values.yaml uses keys that Temporal's chart 1.x reads.

The chart itself cannot be had here. Its keys as far as we use them are written down below, and what it refuses since
1.0: values of the form before stop its installation.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

VALUES: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "deploy/temporal/values.yaml").read_text())

_SQL = {
    "createDatabase": bool,
    "manageSchema": bool,
    "pluginName": str,
    "driverName": str,
    "databaseName": str,
    "connectAddr": str,
    "connectProtocol": str,
    "user": str,
    "existingSecret": str,
    "secretKey": str,
    "maxConns": int,
    "maxIdleConns": int,
    "maxConnLifetime": str,
}
_STORES = {"default": {"sql": _SQL}, "visibility": {"sql": _SQL}}
_PERSISTENCE = {"defaultStore": str, "visibilityStore": str, "numHistoryShards": int, "datastores": _STORES}
# A type: a value of that kind; `object`: whatever Kubernetes takes there.
KEYS: dict[str, Any] = {
    "server": {
        "replicaCount": int,
        "config": {"persistence": _PERSISTENCE},
        "affinity": object,
        "tolerations": object,
        "resources": object,
    },
    "web": {"replicaCount": int},
}


def wrong(values: Any, keys: Any, path: str = "") -> Iterator[str]:
    """The paths that the chart does not read, or reads as something else."""
    if not isinstance(keys, dict):
        if not isinstance(values, keys):
            yield path
        return
    for name, value in values.items():
        inner = f"{path}.{name}".lstrip(".")
        if name not in keys:
            yield inner
        else:
            yield from wrong(value, keys[name], inner)


def test_every_key_is_one_of_chart_1() -> None:
    assert list(wrong(VALUES, KEYS)) == []


def test_a_key_of_chart_0_is_found() -> None:
    assert list(wrong({"cassandra": {"enabled": False}, "schema": {"setup": {}}}, KEYS)) == ["cassandra", "schema"]
    old = {"server": {"config": {"persistence": {"default": {"driver": "sql"}}}}}
    assert list(wrong(old, KEYS)) == ["server.config.persistence.default"]


def test_both_stores_are_on_postgresql_with_databases_of_their_own_and_the_password_of_a_secret() -> None:
    persistence = VALUES["server"]["config"]["persistence"]
    stores = [persistence["datastores"][persistence[f"{name}Store"]]["sql"] for name in ("default", "visibility")]
    assert {store["pluginName"] for store in stores} == {"postgres12"}
    assert len({store["databaseName"] for store in stores}) == 2
    assert all(store["existingSecret"] and "password" not in store for store in stores)

"""deploy/temporal/values.yaml and what is laid over it use keys that Temporal's chart 1.x reads.

The chart itself cannot be had here. Its keys as far as we use them are written down below, and what it refuses since
1.0: values of the form before stop its installation.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "temporal"
VALUES: dict[str, Any] = yaml.safe_load((FOLDER / "values.yaml").read_text())
WITH_TLS: dict[str, Any] = yaml.safe_load((FOLDER / "tls.yaml").read_text())

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
    "tls": {"enabled": bool, "caFile": str, "enableHostVerification": bool},
}
_MOUNTED = {"additionalVolumes": list, "additionalVolumeMounts": list}
_DOOR = {
    "server": {"certFile": str, "keyFile": str},
    "client": {"serverName": str, "rootCaFiles": list},
}
_STORES = {"default": {"sql": _SQL}, "visibility": {"sql": _SQL}}
_PERSISTENCE = {"defaultStore": str, "visibilityStore": str, "numHistoryShards": int, "datastores": _STORES}
# A type: a value of that kind; `object`: whatever Kubernetes takes there.
KEYS: dict[str, Any] = {
    "server": {
        "replicaCount": int,
        "config": {"persistence": _PERSISTENCE, "tls": {"frontend": _DOOR}},
        **_MOUNTED,
        "affinity": object,
        "tolerations": object,
        "resources": object,
        "history": {"resources": object},
    },
    "admintools": _MOUNTED,
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


@pytest.mark.parametrize("values", [VALUES, WITH_TLS], ids=["values", "tls"])
def test_every_key_is_one_of_chart_1(values: dict[str, Any]) -> None:
    assert list(wrong(values, KEYS)) == []


def test_whatever_file_tls_names_is_mounted_in_the_servers_and_the_jobs() -> None:
    stores = WITH_TLS["server"]["config"]["persistence"]["datastores"].values()
    door = WITH_TLS["server"]["config"]["tls"]["frontend"]
    files = [
        *(store["sql"]["tls"]["caFile"] for store in stores),
        *(door["server"][name] for name in ("certFile", "keyFile")),
        *door["client"]["rootCaFiles"],
    ]
    assert all(store["sql"]["tls"]["enableHostVerification"] for store in stores) and len(stores) == 2
    for part in (WITH_TLS["server"], WITH_TLS["admintools"]):
        folders = {mount["mountPath"] for mount in part["additionalVolumeMounts"]}
        assert {str(Path(file).parent) for file in files} == folders
        assert [each["name"] for each in part["additionalVolumes"]] == [
            m["name"] for m in part["additionalVolumeMounts"]
        ]


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

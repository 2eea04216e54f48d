"""A world's file, opened: what it holds, or Misconfigured."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.cloud.catalogue import WorldCatalogue, read_catalogue
from dovetail.ports.failures import Misconfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    store: Store
    catalogue: WorldCatalogue
    cluster_uid: str  # of the namespace kube-system


def open_file(file: Path) -> OpenFile:
    if not file.exists():
        raise Misconfigured("embedded world", f"there is no file {file}")
    store = Store(file)
    try:
        with store.reading() as connection:
            catalogue = read_catalogue(connection)
            system = objects.read(connection, "Namespace", "kube-system")
    except sqlite3.Error as error:
        store.close()
        raise Misconfigured("embedded world", f"{file}: {error}") from None
    return OpenFile(store=store, catalogue=catalogue, cluster_uid=str(system["metadata"]["uid"]) if system else "")

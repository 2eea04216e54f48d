"""The cloud's node controller: deletes Nodes that have no instance any more, as the real one does.

Every few seconds it asks about the nodes that are not ready, and deletes those whose instance the cloud no longer has.
A node that still says Ready is left alone, even if its instance is gone, until the control plane notices the missing
lease. Deleting is a request; finalizers still hold the object.
"""

import threading
import time

from testbed.cloud.json_object import Json
from testbed.cloud.kubelets.clients import Cluster, UnreachableError
from testbed.cloud.kubelets.joining import NODES, Followed, say
from testbed.cloud.kubelets.node import is_ready

PREFIX = "aws:///"
SWEEP = 60.0  # also nodes of instances that we never heard of (another cloud before a reset)


class NodeController:
    """Removes the Nodes of instances that are gone."""

    def __init__(self, cluster: Cluster, followed: Followed, period: float = 5.0) -> None:
        self._cluster = cluster
        self._followed = followed
        self._period = period
        self._removed: set[tuple[str, str]] = set()
        self._swept = float("-inf")

    def run(self, stopping: threading.Event) -> None:
        """Look until stopped."""
        while not stopping.wait(self._period):
            try:
                self.look()
            except UnreachableError as away:
                say(str(away))

    def look(self) -> None:
        """One round. Between sweeps only nodes of instances known to be gone are read, one by one."""
        now = time.time()
        if self._followed.epoch is None:
            return  # nothing heard from the cloud yet: every node would look like an orphan
        if time.monotonic() - self._swept >= SWEEP:
            self._swept = time.monotonic()
            for node in self._all_nodes():
                self._judge(node, now)
            return
        for name in self._gone_nodes(now):
            status, node = self._cluster.ask("GET", f"{NODES}/{name[1]}")
            if status == 404:
                self._removed.add(name)
            elif status == 200:
                self._judge(node, now)

    def _gone_nodes(self, now: float) -> list[tuple[str, str]]:
        epoch = self._followed.epoch or ""
        with self._followed.lock:
            gone = [
                (epoch, each["nodeName"])
                for each in self._followed.instances.values()
                if each["goneAt"] is not None and now >= each["goneAt"]
            ]
        return [each for each in gone if each not in self._removed]

    def _all_nodes(self) -> list[Json]:
        _, listed = self._cluster.ask("GET", NODES)
        nodes: list[Json] = listed.get("items") or []
        return nodes

    def _judge(self, node: Json, now: float) -> None:
        provider = (node.get("spec") or {}).get("providerID") or ""
        if not provider.startswith(PREFIX) or is_ready(node) or "deletionTimestamp" in node["metadata"]:
            return
        if self._followed.is_gone(provider.rsplit("/", 1)[-1], now):
            say(f"{node['metadata']['name']}: instance gone, removing the Node")
            self._cluster.ask("DELETE", f"{NODES}/{node['metadata']['name']}")

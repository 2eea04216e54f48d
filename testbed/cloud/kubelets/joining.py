"""Makes instances join as Nodes, and their kubelets fall silent when they shut down.

Follows the cloud's instances (a long poll, so nothing is asked in vain), and acts at the moments that the cloud fixed
at launch. What failed stays due, so that an API server that is away for a while does not lose a node.
"""

import threading
import time

import yaml

from testbed.cloud.json_object import Json
from testbed.cloud.kubelets.advertised import add, advertised
from testbed.cloud.kubelets.clients import STRATEGIC, CloudControl, Cluster, UnreachableError
from testbed.cloud.kubelets.node import KUBELET, SILENT, condition, make_node

LONGEST_WAIT = 20.0
RETRY = 0.5
NODES = "/api/v1/nodes"


def say(text: str) -> None:
    """One line to the log, at once."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Followed:
    """The cloud's instances as last read; shared with the node controller."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.epoch: str | None = None
        self.version = 0
        self.instances: dict[str, Json] = {}

    def take(self, feed: Json) -> list[Json]:
        """Take in a feed; the instances that changed."""
        with self.lock:
            if feed["epoch"] != self.epoch:
                self.epoch, self.instances = feed["epoch"], {}
            self.version = feed["version"]
            for each in feed["instances"]:
                self.instances[each["id"]] = each
        changed: list[Json] = feed["instances"]
        return changed

    def is_gone(self, instance_id: str, now: float) -> bool:
        """Whether the cloud no longer has it; one that it never listed is gone too."""
        with self.lock:
            found = self.instances.get(instance_id)
        return found is None or (found["goneAt"] is not None and now >= found["goneAt"])


def _is_down(instance: Json) -> bool:
    """Whether its kubelet has ended: not while the instance only stops, which takes a while."""
    return instance["terminatedAt"] is not None or instance["forcedState"] == "stopped"


def _may_have_joined(instance: Json) -> bool:
    """Also true of instances that joined before this process was started."""
    joins, ended = instance["joinsAt"], instance["terminatedAt"]
    return joins is not None and (ended is None or joins <= ended)


class Kubelets:
    """All kubelets of one cloud."""

    def __init__(
        self, cluster: Cluster, cloud: CloudControl, *, last_words: bool = False, advertise_claims: bool = False
    ) -> None:
        self._cluster = cluster
        self._cloud = cloud
        self._last_words, self._advertise_claims = last_words, advertise_claims
        self._types: dict[str, Json] = {}
        self._due: dict[str, float] = {}
        self._joined: set[str] = set()
        self._silent: set[str] = set()
        self._boots: dict[str, int] = {}
        self._version = "v1.36.0"
        self.followed = Followed()

    def run(self, stopping: threading.Event) -> None:
        """Follow until stopped."""
        while not stopping.is_set():
            try:
                self.step()
            except UnreachableError as away:
                say(str(away))
                stopping.wait(RETRY)

    def step(self) -> None:
        """Wait for changes, at most until something is due; then do what is due."""
        now = time.time()
        wait = max(0.0, min([each - now for each in self._due.values()] + [LONGEST_WAIT]))
        followed = self.followed
        epoch = f"&epoch={followed.epoch}" if followed.epoch else ""
        before = followed.epoch
        changed = followed.take(self._cloud.ask(f"instances?after={followed.version}{epoch}&wait={wait:.3f}"))
        if before != followed.epoch:
            self._due, self._joined, self._silent = {}, set(), set()
        for each in changed:
            self._plan(each)
        for instance_id in [key for key, at in self._due.items() if at <= time.time()]:
            self._act(followed.instances[instance_id])

    def _plan(self, instance: Json) -> None:
        """When this instance next needs something."""
        key = instance["id"]
        if _is_down(instance):
            if _may_have_joined(instance) and key not in self._silent:
                self._due[key] = 0.0
            else:
                self._due.pop(key, None)
        elif key not in self._joined and instance["joinsAt"] is not None:
            self._due[key] = instance["joinsAt"]
        elif instance["reboots"] != self._boots.get(key, 0):
            self._due[key] = 0.0
        else:
            self._due.pop(key, None)

    def _act(self, instance: Json) -> None:
        if _is_down(instance):
            self._fall_silent(instance)
        elif instance["id"] in self._joined:
            self._boot_anew(instance)
        else:
            self._join(instance)
        self._due.pop(instance["id"], None)

    def _facts(self, name: str) -> Json:
        if name not in self._types:
            self._types = self._cloud.ask("types")
            self._version = str(self._cluster.ask("GET", "/version")[1].get("gitVersion", self._version))
        found: Json = self._types[name]
        return found

    def _join(self, instance: Json) -> None:
        try:
            node = make_node(instance, self._facts(instance["type"]), self._version)
        except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as unreadable:
            # as on AWS: an instance that cannot read its user data runs and never joins
            say(f"{instance['id']} never joins, its user data is broken: {unreadable!r}")
            self._joined.add(instance["id"])
            return
        if self._advertise_claims:
            add(node, advertised(self._cluster, instance))
        status, answer = self._cluster.ask("POST", NODES, node)
        if status == 409:  # this process was started anew; or a Node of an earlier instance is in the way
            found = self._cluster.ask("GET", f"{NODES}/{instance['nodeName']}")[1]
            if (found.get("spec") or {}).get("providerID") != instance["providerID"]:
                raise UnreachableError(f"{instance['nodeName']} is taken by another instance's Node; waiting")
        elif status != 201:
            say(f"{instance['nodeName']} may not join: {status} {answer.get('message')}")
        self._joined.add(instance["id"])

    def _boot_anew(self, instance: Json) -> None:
        """Another boot id, and nothing that a monitor has found before: it looks at a machine that has just started."""
        path, boots = f"{NODES}/{instance['nodeName']}", instance["reboots"]
        found = self._cluster.ask("GET", path)[1].get("status") or {}
        ailing = [each["type"] for each in found.get("conditions") or () if each["type"].endswith("Ready")]
        well = [{**condition("True", "KubeletReady", "the machine has started"), "type": each} for each in ailing]
        status = {"conditions": well, "nodeInfo": {"bootID": f"{instance['id']}-{boots}"}}
        self._cluster.ask("PATCH", f"{path}/status", {"status": status}, STRATEGIC)
        self._boots[instance["id"]] = boots

    def _fall_silent(self, instance: Json) -> None:
        path = f"{NODES}/{instance['nodeName']}"
        self._cluster.ask("PATCH", path, {"metadata": {"labels": {KUBELET: SILENT}}}, STRATEGIC)
        if self._last_words:  # only after the label, or kwok would answer with Ready again
            words = condition("False", "KubeletNotReady", "node is shutting down")
            self._cluster.ask("PATCH", f"{path}/status", {"status": {"conditions": [words]}}, STRATEGIC)
        self._silent.add(instance["id"])

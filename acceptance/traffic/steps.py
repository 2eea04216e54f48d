"""What is done to the cluster and the cloud after the launch: one action for each key of a step.

An action that nothing here knows is an error of that case, in one line, and never passed over: the case would be
compared for something that was not done. So is a key inside an action: the AWS server refuses those of a world and
of an instance, the API server those of objects.
"""

import copy
import json
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from acceptance.traffic.lane import Lane
from acceptance.traffic.paths import NODE_CLAIMS, NODE_CLASSES, NODE_POOLS, NODES, PODS
from acceptance.traffic.worker import PlayedWorker
from dovetail.model.values.json import Json
from testbed.cloud.control.events import scheduled_event
from testbed.plane import ApiClient, ApiResponse

WAITS: Final = ("wait", "until")
_TAGGED: Final = ("karpenter.k8s.aws/tagged", "compatibility.karpenter.k8s.aws/cluster-name-tagged")
_TOUCH: Final = "example.com/touch"
_DEAD: Final = "dovetail-dead"
# Also what the test bed's kubelet process writes when an instance shuts down: kwok then leaves the node alone.
_SILENT: Final = {"dovetail.test/kubelet": "silent"}
# A field that the API server does not know would be dropped with a warning that nobody reads.
_STRICT: Final = "?fieldValidation=Strict"


class UnknownStep(Exception):
    """The case asks for something that this runner cannot do."""


def bare_pod(name: str, spec: Json, labels: dict[str, str]) -> Json:
    """A pod as the recordings' own."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": spec,
    }


def complete_pod(given: Json) -> Json:
    """A pod as a case gives it, with what the API server wants besides."""
    pod = copy.deepcopy(given)
    pod.setdefault("apiVersion", "v1")
    pod.setdefault("kind", "Pod")
    pod.setdefault("metadata", {}).setdefault("namespace", "default")
    return pod


def pods_of(step: Json) -> list[Json]:
    """`{"name": …, "requests": …}`: one pod, or `count` equal ones; other keys go into the pod's spec."""
    asked = dict(step)
    name, count = str(asked.pop("name", "p")), int(asked.pop("count", asked.pop("n", 1)))
    requests = {"cpu": "1", **(asked.pop("requests", None) or {})}
    limits = asked.pop("limits", None) or {}
    labels = {"app": name, **(asked.pop("labels", None) or {})}
    annotations = asked.pop("annotations", None)
    container = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": limits}}
    spec = {"containers": [container], **(asked.pop("spec", None) or {}), **asked}
    pods = [bare_pod(f"{name}-{number}", spec, labels) for number in range(count)]
    for pod in pods:
        if annotations:
            pod["metadata"]["annotations"] = annotations
    return pods


async def create(api: ApiClient, path: str, body: Json) -> ApiResponse:
    """Create; what the server said."""
    return await api.post(path, body)


class Steps:
    """Carries steps out on one lane."""

    def __init__(self, lane: Lane, worker: PlayedWorker) -> None:
        self._lane, self._worker, self._api = lane, worker, lane.api
        self._actions: dict[str, Callable[[Any], Awaitable[None]]] = {
            "world": self._world,
            "patchClass": lambda asked: self._patch_first(NODE_CLASSES, asked),
            "patchPool": lambda asked: self._patch_first(NODE_POOLS, asked),
            "touchClaims": self._touch_claims,
            "deleteNode": lambda asked: self._delete(NODES, asked, first_only=True),
            "deleteClaim": lambda asked: self._delete(NODE_CLAIMS, asked, first_only=True),
            "deletePods": lambda asked: self._delete(PODS, asked, first_only=False),
            "deleteClass": lambda asked: self._delete(NODE_CLASSES, asked, first_only=True),
            "deletePool": lambda asked: self._delete(NODE_POOLS, asked, first_only=True),
            "pods": self._pods,
            "instance": self._instance,
            "addInstance": self._add_instance,
            "nodeReady": self._node_ready,
            "sqs": self._send,
            "untag": self._untag,
            "restart": self._restart,
            "sleep": self._sleep,
        }

    async def do(self, step: Json) -> None:
        """Everything that the step names, in its order; the waiting is the caller's."""
        unknown = [key for key in step if key not in self._actions and key not in WAITS]
        if unknown:
            raise UnknownStep(f"a step asks for {', '.join(unknown)}, which this runner does not know")
        for key, asked in step.items():
            if key in self._actions:
                await self._actions[key](asked)

    async def _items(self, collection: str) -> list[Json]:
        found: list[Json] = (await self._api.get(collection)).body.get("items") or []
        return sorted(found, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))

    async def _must(self, answer: ApiResponse) -> None:
        if answer.status >= 300 and answer.status not in (404, 409):
            raise UnknownStep(f"a step was refused by the API server: {answer.text[:300]}")

    async def _world(self, change: Json) -> None:
        self._lane.cloud.control("PATCH", "world", change)

    async def _patch_first(self, collection: str, change: Json) -> None:
        named = (change.get("metadata") or {}).get("name")
        for each in await self._items(collection):
            if named in (None, each["metadata"]["name"]):
                path = f"{collection}/{each['metadata']['name']}{_STRICT}"
                await self._must(await self._api.patch(path, change))
                return
        raise UnknownStep(f"a step changes an object of {collection}, and there is none")

    async def _touch_claims(self, _asked: Any) -> None:
        for each in await self._items(NODE_CLAIMS):
            change = {"metadata": {"annotations": {_TOUCH: datetime.fromtimestamp(time.time(), UTC).isoformat()}}}
            await self._must(await self._api.patch(f"{NODE_CLAIMS}/{each['metadata']['name']}", change))

    async def _delete(self, collection: str, asked: Any, *, first_only: bool) -> None:
        names = [each["metadata"]["name"] for each in await self._items(collection)]
        if isinstance(asked, str):
            names = [each for each in names if each == asked]
        elif isinstance(asked, list):
            names = [each for each in names if each in asked]
        elif first_only:
            names = names[: 1 if asked is True else int(asked)]
        for name in names:
            await self._must(await self._api.delete(f"{collection}/{name}"))

    async def _pods(self, asked: Any) -> None:
        for each in asked if isinstance(asked, list) else [asked]:
            pods = [complete_pod(each)] if "metadata" in each else pods_of(each)
            for pod in pods:
                await self._must(await create(self._api, f"{PODS}{_STRICT}", pod))

    async def _instance(self, change: Json) -> None:
        self._lane.cloud.control("PATCH", "instances/first", change)

    async def _add_instance(self, asked: Json) -> None:
        self._lane.cloud.control("POST", "instances", asked)

    async def _node_ready(self, asked: Any) -> None:
        status = {True: "True", False: "False"}.get(asked, str(asked)) if isinstance(asked, bool) else str(asked)
        node = next(iter(await self._items(NODES)), None)
        if node is None:
            raise UnknownStep("a step changes the first Node, and there is none")
        path = f"{NODES}/{node['metadata']['name']}"
        marked = {"metadata": {"labels": _SILENT, "annotations": {_DEAD: "true"}}}
        await self._must(await self._api.patch(path, marked))
        condition = {"type": "Ready", "status": status, "reason": "Declared", "message": "by the case"}
        await self._must(await self._api.patch(f"{path}/status", {"status": {"conditions": [condition]}}, "strategic"))

    async def _send(self, asked: Any) -> None:
        """What an event of health announces stands in EC2 as well (decision 77)."""
        if isinstance(asked, dict) and (asked.get("detail") or {}).get("eventTypeCategory") == "scheduledChange":
            self._lane.cloud.control("PATCH", "world", {"instanceStatus": [scheduled_event("$INSTANCE")]})
        self._lane.cloud.control("POST", "sqs", {"body": asked if isinstance(asked, str) else json.dumps(asked)})

    async def _untag(self, _asked: Any) -> None:
        """The cloud first: once the annotations are gone, a worker tags what it then finds."""
        for instance in self._lane.cloud.instances():
            if instance["state"] != "terminated":
                tags: Json = {"Name": "kept", "karpenter.sh/nodeclaim": None}
                self._lane.cloud.control("PATCH", f"instances/{instance['id']}", {"tags": tags})
        for each in await self._items(NODE_CLAIMS):
            change: Json = {"metadata": {"annotations": dict.fromkeys(_TAGGED)}}
            await self._must(await self._api.patch(f"{NODE_CLAIMS}/{each['metadata']['name']}", change))

    async def _restart(self, _asked: Any) -> None:
        await self._worker.stop()
        if not await self._worker.start():
            raise UnknownStep(f"the worker did not start again: {self._worker.last_words()}")

    async def _sleep(self, _asked: Any) -> None:
        return

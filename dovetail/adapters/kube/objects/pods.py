"""Pods that must leave: listed live, evicted, deleted. Waiting pods: nominated for a node.

Pods are nominated and annotated only where the policy that keeps us to that is proven (`guards.py`).

Every request carries the pod's UID, so that a new pod of the same name is left alone (TRM-21, TRM-25). A 429 means two
things: "fewer calls, please", or, with the cause DisruptionBudget, that a budget does not allow the eviction now.
"""

from collections.abc import Callable
from typing import Final

from dovetail.adapters.kube.failures import CONFLICT, NOT_FOUND, Answer, failure_of
from dovetail.adapters.kube.guards import DELETION_COSTS, PLACES, Guard
from dovetail.adapters.kube.paging import list_all
from dovetail.adapters.kube.requests import Caller, Request, object_path
from dovetail.adapters.kubernetes_json.parsing.errors import parsed
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod, pods_that_hold
from dovetail.adapters.kubernetes_json.pod_kind import POD
from dovetail.adapters.kubernetes_json.rendering.pods import render_annotation, render_nomination
from dovetail.model.pods import Pod
from dovetail.model.values.json import Json
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import Eviction

_BLOCKED: Final = 429
_UNSUPPORTED: Final = 500


class KubePods:
    def __init__(self, client: Caller, clock: Callable[[], float]) -> None:
        self._client, self._clock = client, clock
        self._costs, self._places = Guard(client, DELETION_COSTS), Guard(client, PLACES)

    async def list_on(self, node: str) -> tuple[Pod, ...]:
        query = {"fieldSelector": f"spec.nodeName={node}"}
        raws = [raw async for raw in list_all(self._client, POD.path, f"Pods on {node}", query)]
        return pods_that_hold(raws, self._clock())

    async def evict(self, pod: Pod) -> Eviction:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.shape.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        expected = {NOT_FOUND, CONFLICT, _BLOCKED, _UNSUPPORTED}
        answer = await self._client.call(_request("POST", pod, body, expected, "eviction"))
        return _eviction(answer, f"Pod/{pod.key}")

    async def delete(self, pod: Pod, grace_seconds: int) -> None:
        body = {"gracePeriodSeconds": max(grace_seconds, 1), "preconditions": {"uid": pod.uid}}
        answer = await self._client.call(_request("DELETE", pod, body, {NOT_FOUND, CONFLICT}))
        if answer.status == CONFLICT and await self._is_there(pod):
            raise Conflict(f"Pod/{pod.key}", answer.message)

    async def read(self, pod: Pod) -> Pod | None:
        raw = await self._raw(pod)
        return None if raw is None else parsed(parse_pod, raw)

    async def nominate(self, pod: Pod, node: str) -> None:
        if await self._places.insist(pod.shape.namespace, pod.name):
            await self._patch(pod, render_nomination(pod, node), "status")

    async def annotate(self, pod: Pod, key: str, value: str | None) -> None:
        if await self._costs.insist(pod.shape.namespace, pod.name):
            await self._patch(pod, render_annotation(pod, key, value))

    async def _patch(self, pod: Pod, body: Json, subresource: str = "") -> None:
        answer = await self._client.call(_request("PATCH", pod, body, {NOT_FOUND, CONFLICT}, subresource))
        if answer.status == CONFLICT:
            raise Conflict(f"Pod/{pod.key}", answer.message)

    async def _is_there(self, pod: Pod) -> bool:
        return await self._raw(pod) is not None

    async def _raw(self, pod: Pod) -> Json | None:
        answer = await self._client.call(_request("GET", pod, None, {NOT_FOUND}))
        same = answer.status != NOT_FOUND and answer.body["metadata"].get("uid") == pod.uid
        return answer.body if same else None


def _request(method: str, pod: Pod, body: Json | None, expected: set[int], subresource: str = "") -> Request:
    return Request(
        method=method,
        path=object_path(POD.path, pod.name, subresource, pod.shape.namespace),
        subject=f"Pod/{pod.key}",
        body=body,
        expected=frozenset(expected),
    )


def _eviction(answer: Answer, subject: str) -> Eviction:
    """What an answer to an eviction means (TRM-26)."""
    code, message = answer.status, answer.message
    if code < 300:
        return Eviction(outcome="evicted", code=code)
    if code == NOT_FOUND:
        return Eviction(outcome="gone", code=code, message=message)
    if code == CONFLICT:
        return Eviction(outcome="replaced", code=code, message=message)
    if code == _BLOCKED and any(cause.get("reason") == "DisruptionBudget" for cause in answer.causes):
        return Eviction(outcome="blocked", code=code, message=_why_blocked(answer))
    # The answer to several matching budgets is a 500 without a reason; an internal error carries one.
    if code == _UNSUPPORTED and not answer.reason:
        return Eviction(outcome="unsupported", code=code, message=message)
    raise failure_of(answer, subject)


def _why_blocked(answer: Answer) -> str:
    """The message with the causes, which name the budget."""
    causes = [str(cause["message"]) for cause in answer.causes if cause.get("message")]
    return " ".join((answer.message, *causes))

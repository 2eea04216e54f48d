"""The admission policies without which some rights of ours would be the whole cluster, and the proof that they stand.

Who may change a Deployment or a pod may run any image in it. Such a right is shipped with a policy that refuses us
everything but the one thing we use it for. The policy's name and fields prove nothing: it may concern another identity,
or have conditions that let us pass. So we try, by a dry run, what it must refuse. Only a refusal in its own name proves
it: RBAC's 403, another policy's 422 and the 404 of an object that is gone do not.

Each try writes a value that no object has. One that is known beforehand could be written first by anybody who may edit
the object: then nothing would change, no policy refuses that, and one label in one namespace would stop all moves.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from dovetail.adapters.kube.failures import CONFLICT, INVALID, NOT_FOUND
from dovetail.adapters.kube.requests import Caller, Request, object_path
from dovetail.model.places.move_changes import GUARD
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Forbidden

_log = logging.getLogger(__name__)

TRIED_FOR: Final = 300.0  # seconds for which a refusal that was seen counts
AGAIN_SECONDS: Final = 60.0  # and for which none is tried for again
FORBIDDEN: Final = 403


def _labelled(value: str) -> Json:
    return {"metadata": {"labels": {"dovetail.sh/may-not": value}}}


def _saying(value: str) -> Json:
    return {"status": {"message": value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedRight:
    """A right, and the policy that keeps us to what it is for. `forbidden`: a change to a given value that the policy
    refuses, and nothing else would."""

    policy: str
    kind: str
    path: str
    forbidden: Callable[[str], Json]
    subresource: str = ""


DEPLOYMENTS_PATH: Final = "/apis/apps/v1/deployments"
PODS_PATH: Final = "/api/v1/pods"
MOVES: Final = GuardedRight(policy=GUARD, kind="Deployment", path=DEPLOYMENTS_PATH, forbidden=_labelled)
DELETION_COSTS: Final = GuardedRight(policy="dovetail-deletion-costs", kind="Pod", path=PODS_PATH, forbidden=_labelled)
PLACES: Final = GuardedRight(
    policy="dovetail-places", kind="Pod", path=PODS_PATH, forbidden=_saying, subresource="status"
)


async def why_unproven(client: Caller, right: GuardedRight, namespace: str, name: str) -> str | None:
    """Tried on that object: empty where the policy refuses it, else what happened instead. None: the object is gone,
    and nothing is known."""
    request = Request(
        method="PATCH",
        path=object_path(right.path, name, right.subresource, namespace),
        subject=f"{right.kind}/{namespace}/{name}",
        query={"dryRun": "All"},
        body=right.forbidden(f"be-written-{uuid4().hex}"),
        expected=frozenset({FORBIDDEN, INVALID, NOT_FOUND, CONFLICT}),
    )
    answer = await client.call(request)
    if answer.status == NOT_FOUND:
        return None
    refusal = f"ValidatingAdmissionPolicy '{right.policy}' with binding '{right.policy}' denied request"
    if answer.status in (FORBIDDEN, INVALID) and refusal in answer.message:
        return ""
    said = answer.message if answer.status in request.expected else "it was accepted"
    return f"the admission policy {right.policy} does not refuse this worker another change of it: {said}"


class Guard:
    """The proof of one policy, by namespace, since a policy may leave some out."""

    def __init__(self, client: Caller, right: GuardedRight, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self.right, self._clock = client, right, clock
        self._proven: dict[str, float] = {}
        self._unproven: dict[str, _Unproven] = {}

    @property
    def stands(self) -> bool:
        """Whether nothing that was tried has passed it."""
        return not self._unproven

    async def insist(self, namespace: str, name: str) -> bool:
        """Forbidden unless the policy is proven; False if the object is gone. Asked before the right is used."""
        now = self._clock()
        if now - self._proven.get(namespace, float("-inf")) < TRIED_FOR:
            return True
        known = self._unproven.get(namespace)
        if known is None or now - known.at >= AGAIN_SECONDS:
            if not await self._try(namespace, name):
                return False
            known = self._unproven.get(namespace)
        if known is not None:
            raise Forbidden(f"{self.right.kind}/{namespace}/{name}", known.why)
        return True

    async def keep(self, some: Callable[[], tuple[str, str] | None]) -> None:
        """Try it for as long as the worker runs, so that decisions know. `some`: namespace and name of an object."""
        while True:
            await self.look(some())
            await asyncio.sleep(AGAIN_SECONDS)

    async def look(self, one: tuple[str, str] | None) -> None:
        """Try it on that object, and where it was unproven. If the server cannot be asked, the last answer counts."""
        again = [(namespace, known.name) for namespace, known in self._unproven.items()]
        for namespace, name in dict([*again, *([one] if one is not None else [])]).items():
            try:
                await self._try(namespace, name)
            except Failure as failure:
                _log.debug("the admission policy %s could not be tried: %s", self.right.policy, failure)

    async def _try(self, namespace: str, name: str) -> bool:
        """False if the object is gone: then nothing is known of its namespace."""
        why, stood = await why_unproven(self._client, self.right, namespace, name), self.stands
        self._proven.pop(namespace, None)
        self._unproven.pop(namespace, None)
        if why:
            self._unproven[namespace] = _Unproven(at=self._clock(), name=name, why=why)
        elif why is not None:
            self._proven[namespace] = self._clock()
        if stood and why:
            _log.error("%s/%s/%s: %s; the right is not used", self.right.kind, namespace, name, why)
        return why is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unproven:
    """When it was tried, on which object, and what happened instead."""

    at: float
    name: str
    why: str

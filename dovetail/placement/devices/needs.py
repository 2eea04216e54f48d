"""What do a pod's resource claims ask for, made ready to be compared with devices?

A claim that a person created is shared by all pods that name it. One made from a template is each pod's own; pods of
one template ask for the same and are one demand. What is not understood, or does not exist, is a fault that names the
claim; such a pod is refused alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.model.expressions.evaluation import ReadExpression, read_expression
from dovetail.model.expressions.values import ExpressionError
from dovetail.model.pods import DeviceClaimUse, Pod
from dovetail.model.scheduling.devices import ClaimSpec, DeviceClass, DeviceRequest, MatchConstraint, ResourceClaim
from dovetail.model.snapshot import Snapshot

MOST_DEVICES: Final = 32  # of one claim, the API's own limit
_PER_LOOK: Final = 50  # characters of selectors that take as long as a look at a device
_MOST_OF_POD: Final = 128  # that a pod may ask for by count, because a search goes that deep


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedRequest:
    source: DeviceRequest
    selectors: tuple[ReadExpression, ...]
    cost: int = 1  # of a device that they are evaluated for, in looks

    @property
    def words(self) -> str:
        count = "all devices" if self.source.count is None else f"{self.source.count} of the devices"
        asked = " and ".join(self.source.selectors)
        return f"{count} of class {self.source.device_class}{f' with {asked}' if asked else ''}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClaimNeed:
    """One claim of a pod. `key`: set for an existing claim, which may be shared or allocated; empty for a pod's own."""

    name: str
    key: str
    requests: tuple[tuple[JudgedRequest, ...], ...]
    constraints: tuple[MatchConstraint, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceNeeds:
    """All claims of a pod, or why they cannot be judged. Pods with equal needs share one object."""

    claims: tuple[ClaimNeed, ...] = ()
    fault: str = ""


class _FaultyClaimError(ValueError):
    """What is wrong with a claim."""


class NeedsReader:
    """The needs of a snapshot's pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._own = {
            (claim.owner, claim.pod_claim): claim for claim in snapshot.resource_claims.values() if claim.owner
        }
        self._known: dict[object, DeviceNeeds] = {}

    def of(self, pod: Pod) -> DeviceNeeds:
        try:
            found = [(use.name, *self._asked(pod, use)) for use in pod.shape.device_claims]
        except _FaultyClaimError as fault:
            return DeviceNeeds(fault=str(fault))
        key = tuple(found)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _needs(found, self._snapshot.device_classes)
        return known

    def _asked(self, pod: Pod, use: DeviceClaimUse) -> tuple[str, ClaimSpec]:
        if use.claim:
            named = self._snapshot.resource_claims.get(f"{pod.namespace}/{use.claim}")
            if named is None:
                raise _FaultyClaimError(f"ResourceClaim {pod.namespace}/{use.claim} does not exist")
            return named.key, named.spec
        own = self._own.get((pod.uid, use.name)) if pod.uid else None
        if own is not None:
            return self._key_of(pod, own), own.spec
        template = self._snapshot.claim_templates.get(f"{pod.namespace}/{use.template}")
        if template is None:
            raise _FaultyClaimError(f"ResourceClaimTemplate {pod.namespace}/{use.template} does not exist")
        return "", template.spec

    @staticmethod
    def _key_of(pod: Pod, own: ResourceClaim) -> str:
        """Empty for a running pod that will move, as it gets another claim there; a waiting pod keeps what it has."""
        return own.key if own.allocation is not None and not pod.node_name else ""


def _needs(found: list[tuple[str, str, ClaimSpec]], classes: Mapping[str, DeviceClass]) -> DeviceNeeds:
    try:
        claims = tuple(_ready(name, key, spec, classes) for name, key, spec in found)
    except _FaultyClaimError as fault:
        return DeviceNeeds(fault=str(fault))
    asked = sum(max((each.source.count or 1) for each in request) for claim in claims for request in claim.requests)
    if asked > _MOST_OF_POD:
        return DeviceNeeds(fault=f"its resource claims ask for {asked} devices; at most {_MOST_OF_POD} are looked for")
    return DeviceNeeds(claims=claims)


def _ready(name: str, key: str, spec: ClaimSpec, classes: Mapping[str, DeviceClass]) -> ClaimNeed:
    if spec.aside:
        raise _FaultyClaimError(f"resource claim {name}: {spec.aside} is not supported")
    requests = tuple(tuple(_request(name, each, classes) for each in request) for request in spec.requests)
    if sum(min((each.source.count or 1) for each in request) for request in requests if request) > MOST_DEVICES:
        raise _FaultyClaimError(f"resource claim {name}: more than {MOST_DEVICES} devices")
    if not all(requests):
        raise _FaultyClaimError(f"resource claim {name}: a request without alternatives")
    return ClaimNeed(name=name, key=key, requests=requests, constraints=spec.constraints)


def _request(claim: str, request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> JudgedRequest:
    where = f"resource claim {claim}, request {request.name}"
    if request.aside:
        raise _FaultyClaimError(f"{where}: {request.aside} is not supported")
    of_class = classes.get(request.device_class)
    if of_class is None:
        raise _FaultyClaimError(f"{where}: DeviceClass {request.device_class} does not exist")
    selectors: list[ReadExpression] = []
    for source, texts in ((f"DeviceClass {of_class.name}", of_class.selectors), (where, request.selectors)):
        for number, text in enumerate(texts):
            try:
                selectors.append(read_expression(text, ("device",)))
            except ExpressionError as error:
                raise _FaultyClaimError(f"{source}, selectors[{number}]: {error}") from None
    length = sum(map(len, (*of_class.selectors, *request.selectors)))
    return JudgedRequest(source=request, selectors=tuple(selectors), cost=1 + length // _PER_LOOK)

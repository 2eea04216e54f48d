"""Which of these devices could a pod's claims have, all together?

The search tries devices in order and takes the first combination that works, like the kube-scheduler. The number of
devices that it looks at is limited: a claim that would need more finds nothing. A device whose selectors are evaluated
for the first time counts by their length, which anybody who makes a claim decides.
"""

from collections.abc import Collection, Sequence
from typing import Final

from dovetail.model.scheduling.devices import Device, DeviceId, MatchConstraint
from dovetail.placement.devices.matching import Matcher
from dovetail.placement.devices.needs import MOST_DEVICES, ClaimNeed, JudgedRequest

_LOOKS_AT_ONCE: Final = 5_000
_LOOKS_IN_ALL: Final = 500_000  # for one need in one pass


class Looks:
    """How many devices may still be looked at for one need of a pass."""

    def __init__(self) -> None:
        self._in_all = _LOOKS_IN_ALL
        self.exhausted = False
        self._left = 0

    def begin(self) -> None:
        self._left = min(_LOOKS_AT_ONCE, self._in_all)

    def look(self, cost: int) -> bool:
        """Whether one more device may be looked at, for which so many looks are counted."""
        self._left -= cost
        self._in_all -= cost
        self.exhausted = self.exhausted or self._left < 0
        return self._left >= 0


class Search:
    """One search. `whole`: whether all devices of the node are known; otherwise nobody can have all of them."""

    def __init__(
        self,
        devices: Sequence[Device],
        taken: Sequence[Collection[DeviceId]],
        whole: bool,
        matcher: Matcher,
        looks: Looks,
    ) -> None:
        self._all, self._whole = devices, whole
        self._free = [device for device in devices if not any(device.id in each for each in taken)]
        self._free_ids = {device.id for device in self._free}
        self._matcher, self._looks = matcher, looks
        self._chosen: dict[DeviceId, Device] = {}
        self._steps: list[tuple[ClaimNeed, tuple[JudgedRequest, ...]]] = []
        self._names: list[tuple[ClaimNeed, str]] = []  # what each chosen device is for

    def find(self, claims: Sequence[ClaimNeed]) -> tuple[Device, ...] | None:
        """The devices, or None. ExpressionError if a selector has no value for a device on the way."""
        self._steps = [(claim, request) for claim in claims for request in claim.requests]
        self._looks.begin()
        if sum(_at_least(alternatives) for _, alternatives in self._steps) > len(self._free):
            return None  # else every combination would be tried in vain
        return tuple(self._chosen.values()) if self._from(0) else None

    def _from(self, step: int) -> bool:
        if step == len(self._steps):
            return True
        claim, alternatives = self._steps[step]
        return any(self._alternative(step, claim, request) for request in alternatives)

    def _alternative(self, step: int, claim: ClaimNeed, request: JudgedRequest) -> bool:
        if request.source.count is None:
            return self._everything(step, claim, request)
        held = sum(1 for each, _ in self._names if each is claim)
        if held + request.source.count > MOST_DEVICES:
            return False
        return self._slots(step, claim, request, (request.source.count, 0))

    def _everything(self, step: int, claim: ClaimNeed, request: JudgedRequest) -> bool:
        if not self._whole:
            return False
        wanted = [device for device in self._all if self._may(request, device)]
        if not 0 < len(wanted) <= MOST_DEVICES or any(
            each.id not in self._free_ids or each.id in self._chosen for each in wanted
        ):
            return False
        before = len(self._chosen)
        for device in wanted:
            if not self._agrees(claim, request, device):
                break
            self._take(claim, request, device)
        else:
            if self._from(step + 1):
                return True
        while len(self._chosen) > before:
            self._give_back()
        return False

    def _slots(self, step: int, claim: ClaimNeed, request: JudgedRequest, place: tuple[int, int]) -> bool:
        """The rest of a request: this many devices, from that one on. Devices of one request have no order."""
        left, begin = place
        if left == 0:
            return self._from(step + 1)
        for number in range(begin, len(self._free) - left + 1):
            device = self._free[number]
            if device.id in self._chosen or not self._may(request, device) or not self._agrees(claim, request, device):
                continue
            self._take(claim, request, device)
            if self._slots(step, claim, request, (left - 1, number + 1)):
                return True
            self._give_back()
        return False

    def _may(self, request: JudgedRequest, device: Device) -> bool:
        if device.aside:
            return False
        cost = 1 if self._matcher.knows(request, device) else request.cost
        return self._looks.look(cost) and self._matcher.matches(request, device)

    def _take(self, claim: ClaimNeed, request: JudgedRequest, device: Device) -> None:
        self._chosen[device.id] = device
        self._names.append((claim, request.source.name))

    def _give_back(self) -> None:
        self._chosen.popitem()
        self._names.pop()

    def _agrees(self, claim: ClaimNeed, request: JudgedRequest, device: Device) -> bool:
        """Whether the device equals the claim's other devices wherever they must be equal."""
        for constraint in claim.constraints:
            if not _concerns(constraint, request.source.name):
                continue
            value = device.attributes.get(constraint.attribute)
            if value is None:
                return False
            for other, (of_claim, name) in zip(self._chosen.values(), self._names, strict=True):
                if of_claim is claim and _concerns(constraint, name):
                    theirs = other.attributes.get(constraint.attribute)
                    if type(theirs) is not type(value) or theirs != value:
                        return False
                    break
        return True


def _at_least(alternatives: Sequence[JudgedRequest]) -> int:
    """The least number of devices that a request takes; 1 if it takes all that exist."""
    return min((each.source.count or 1 for each in alternatives), default=0)


def _concerns(constraint: MatchConstraint, request: str) -> bool:
    """Whether the constraint covers the request; an alternative is named request/alternative."""
    named = constraint.requests
    return not named or request in named or request.partition("/")[0] in named

"""Which warnings the cloud must confirm before they delete a claim (decision 77). Pure.

Anybody who can write to the queue, or to Temporal's namespace, can send a warning about any instance. When capacity is
taken back, the cloud shows it nowhere before the instance ends, and leaves two minutes. So such a warning is believed,
but only for instances of that capacity type, while it is fresh, and for a limited number at once. Warnings beyond that
wait for their turn, or for the cloud's confirmation.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from dovetail.messages.interruptions import TAKEN_BACK, Interruption, Warned
from dovetail.model.names import CAPACITY_TYPE, DISRUPTION_REASON, ENDED_BECAUSE
from dovetail.model.nodes import NodeClaim
from dovetail.model.reasons.endings import INTERRUPTIONS, OF_REASONS, is_interrupted

FRESH_SECONDS: Final = 300.0  # what the cloud shows may come later than its warning
TURN_SECONDS: Final = 20.0  # five turns take all of a fleet, before the first of its instances is taken away
LEAST: Final = 3
_SHARE: Final = 5  # a fifth

_ENDINGS: Final = tuple(OF_REASONS[reason] for reason in TAKEN_BACK)


class Met(NamedTuple):
    """A warning, and a claim whose instance it names."""

    warning: Interruption
    claim: NodeClaim

    @property
    def warned(self) -> Warned:
        """The warning in the form in which the cloud is asked about it."""
        return instance_of(self.claim), self.warning.reason

    @property
    def ends_claim(self) -> bool:
        """Whether the claim would be deleted for it."""
        return self.warning.ends_instances and self.claim.deleting_since is None

    def shortens(self, now: float) -> bool:
        """Whether it ends the instance of a claim that leaves already within minutes. A change that the cloud schedules
        is days away. Of a claim that a person deletes, the cloud is not asked whether it is so: the news of our own
        termination comes by the same queue."""
        ending = OF_REASONS.get(self.warning.reason)
        if is_interrupted(self.claim) or not (self.warning.forceful or ending in INTERRUPTIONS):
            return False
        disrupted = self.claim.is_true(DISRUPTION_REASON) and not self.claim.is_rebooting
        return disrupted or (self.claim.deleting_since is not None and is_plausible(self, now))


def instance_of(claim: NodeClaim) -> str:
    """The cloud's own id; empty before the launch."""
    return claim.provider_id.rpartition("/")[2]


def is_fresh(warning: Interruption, now: float) -> bool:
    """Whether the cloud may still come to confirm it."""
    return abs(now - warning.at) < FRESH_SECONDS


def apart(
    met: Iterable[Met], fleet: Collection[NodeClaim], taken: Collection[str], now: float
) -> tuple[list[Met], list[Met]]:
    """The warnings that are acted upon without asking, and those that the cloud is asked about first. `taken`: the UIDs
    of the claims whose warnings this process has believed in this turn; their claims may not say so yet, or be gone."""
    believed = set(taken)
    room = _room(fleet, believed, now)
    sure: list[Met] = []
    doubted: list[Met] = []
    for each in met:
        uid, plausible = each.claim.uid, is_plausible(each, now)
        if not each.ends_claim and (plausible or not each.shortens(now)):
            sure.append(each)
        elif plausible and (uid in believed or room > 0):
            room -= uid not in believed
            believed.add(uid)
            sure.append(each)
        else:
            doubted.append(each)
    return sure, doubted


def is_plausible(met: Met, now: float) -> bool:
    """Whether it says what the cloud shows nowhere: that capacity of this claim's type was taken back a moment ago."""
    kind = TAKEN_BACK.get(met.warning.reason)
    return kind is not None and met.claim.labels.get(CAPACITY_TYPE) == kind and is_fresh(met.warning, now)


def _room(fleet: Collection[NodeClaim], believed: Collection[str], now: float) -> int:
    """How many more may be believed now. What other workers have believed is counted on the claims."""
    gone = {claim.uid for claim in fleet if _has_just_gone(claim, now)}
    return max(LEAST, len(fleet) // _SHARE) - len(gone.union(believed))


def beyond(fleet: Collection[NodeClaim], mine: Mapping[str, int], believed: Collection[str], now: float) -> set[str]:
    """Which of my claims others came before. `fleet`: all claims, with the reasons of their deletion up to my last;
    `mine`: at which version each of mine was given its reason, by UID. All workers find the same order."""
    gone = {claim.uid for claim in fleet if _has_just_gone(claim, now)}
    gone |= set(believed) - {claim.uid for claim in fleet}
    room = max(0, max(LEAST, len(fleet) // _SHARE) - len(gone))
    marks = [(mine.get(claim.uid, int(claim.resource_version or 0)), claim.uid) for claim in fleet if _is_to_go(claim)]
    return {uid for _, uid in sorted(marks)[room:] if uid in mine}


def _is_to_go(claim: NodeClaim) -> bool:
    return claim.deleting_since is None and claim.annotations.get(ENDED_BECAUSE, "") in _ENDINGS


def _has_just_gone(claim: NodeClaim, now: float) -> bool:
    since = claim.deleting_since
    return since is not None and now - since < TURN_SECONDS and claim.annotations.get(ENDED_BECAUSE, "") in _ENDINGS


def met_by(warnings: Sequence[Interruption], fleet: Iterable[NodeClaim]) -> list[Met]:
    claims: dict[str, list[NodeClaim]] = {}
    for claim in fleet:
        claims.setdefault(instance_of(claim), []).append(claim)
    return [
        Met(warning, claim)
        for warning in warnings
        for instance in warning.instances
        for claim in claims.get(instance, ())
    ]

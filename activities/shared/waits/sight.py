"""What a long wait reports about those who wait for it, so that others can tell a worker that computes from one that is
gone.

An idle wait sends a heartbeat once a minute, so by these alone a killed worker would be noticed late. But other workers
see the same cluster, and so who is waiting: pods, claims that are being deleted. So with an extra heartbeat the wait
reports which of them it has seen, by the version of their kinds, and whether it is still working for them. If one of
them is neither seen nor answered, its worker is gone (`worker/unanswered.py`).

Only news is reported, and only by a look that takes longer than a moment. So nothing extra is sent at rest, for a pod
that finds no place, or for a plan that is made at once.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from dovetail.activities.shared.every_step.heartbeats import say_no_more, say_seen


@dataclass(slots=True)
class Sight:
    """What the looks of one wait have seen of these kinds."""

    kinds: tuple[str, ...]
    known: Set[str] = field(default_factory=frozenset)
    version: int = 0
    new: bool = False  # somebody does not know yet that they are seen
    at_work: bool = False

    def sees(self, uids: Set[str], versions: Mapping[str, int]) -> None:
        if not uids <= self.known:
            self.version, self.new = max((versions.get(kind, 0) for kind in self.kinds), default=0), True
            self.works()
        self.known = uids

    def works(self) -> None:
        """Work begins that may take long."""
        self.at_work = True
        say_seen(self.version, at_work=True)

    def answered(self) -> None:
        """They got no more than a reason, and continue to wait."""
        if self.new:
            say_seen(self.version, at_work=False)
            self.new = self.at_work = False
        self.rests()

    def rests(self) -> None:
        """The look is over, and what waited has been helped, as anybody can see."""
        if self.at_work:
            say_no_more()
        self.new = self.at_work = False


@dataclass(frozen=True, slots=True)
class Reported:
    version: int = 0
    at_work: bool = False


def reported_in(details: Sequence[Any]) -> Reported:
    """What the details of a heartbeat report; nothing before the first that has any."""
    match list(details):
        case [_, _, [int(version), bool(at_work)], *_]:
            return Reported(version, at_work)
    return Reported()

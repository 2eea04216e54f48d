"""Which claims have expired, and when the next one will: each is judged only when one has expired or something has
changed."""

from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import earliest
from dovetail.lifecycle import unfinished
from dovetail.messages.orders import DeleteClaim
from dovetail.model.objects.watched_kinds import STANDING_CLAIMS
from dovetail.model.snapshot import Snapshot
from dovetail.rules.pause.pauses import next_end

DEPENDS_ON = STANDING_CLAIMS | {"NodePool", "DisruptionPolicy"}


class Expiries:
    """Asked at each look for orders."""

    def __init__(self) -> None:
        self._first = LastAnswer(DEPENDS_ON, unfinished.first_expiry)

    def look(self, snapshot: Snapshot) -> tuple[tuple[DeleteClaim, ...], float | None]:
        """The claims that have expired, and the next moment at which one may."""
        first = self._first.of(snapshot)
        if first is None or first > snapshot.now:
            return (), earliest(first, next_end(snapshot))
        return unfinished.expired(snapshot), unfinished.next_expiry(snapshot)

"""What does not work in Dovetail itself, for the first line of an answer: since when, what still works, what does not.

It loads nothing of the engines: a command that asks a worker reads these records from the worker's documents.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dovetail.model.pods import Pod
    from dovetail.model.snapshot import Snapshot

NEW_SECONDS: Final = 120.0  # a worker that was made within this may still start
LONGEST: Final = 200  # of the words of a failure
AWAY_PAGE: Final = "docs/temporal-outages.md"
FAILING_PAGE: Final = "docs/operations.md, DovetailStepFailing"
WORKERS_PAGE: Final = "docs/guides/troubleshooting.md"
API_SERVER_PAGE: Final = "docs/guides/troubleshooting.md"
SEVERAL_KINDS: Final = 3  # that are broken for causes of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTrouble:
    """One trouble. `page`: the document that says what to do."""

    what: str
    since: float | None = None
    goes_on: str = ""
    stands_still: str = ""
    page: str = ""


def temporal_away(silent: float, now: float) -> OwnTrouble:
    """Temporal has not answered for so many seconds."""
    return OwnTrouble(
        what="Temporal does not answer",
        since=now - silent,
        goes_on="deleted nodes drain and warnings are answered",
        stands_still="nothing is launched, disrupted or called off",
        page=AWAY_PAGE,
    )


def scheduler_silent(why: str) -> OwnTrouble:
    """Temporal answers, and the Scheduler does not."""
    return OwnTrouble(
        what=f"the Scheduler does not answer ({_short(why)})",
        goes_on="what has begun",
        stands_still="perhaps no launch and no disruption begins",
        page="dovetail doctor",
    )


def watches_broken(stale: Mapping[str, str], silent: Callable[[str], float], now: float) -> Iterator[OwnTrouble]:
    """The kinds that the worker does not see change. Many have one cause: the API server."""
    if len(stale) > SEVERAL_KINDS:
        kind, why = min(stale.items())
        yield OwnTrouble(
            what=f"the API server's objects are not seen, {len(stale)} kinds: {_short(why)}",
            since=_heard(min(map(silent, stale)), now),
            goes_on="what runs on the nodes; shown is what was last seen",
            stands_still="launches, disruptions and drains",
            page=API_SERVER_PAGE,
        )
        return
    for kind, why in sorted(stale.items()):
        yield OwnTrouble(
            what=f"{kind} objects are not seen: {_short(why)}",
            since=_heard(silent(kind), now),
            stands_still=f"what is decided from {kind} objects",
            page="dovetail doctor",
        )


def _heard(silent: float, now: float) -> float | None:
    return now - silent if silent else None


def workers_missing(snapshot: "Snapshot", namespace: str, pod: str) -> Iterator[OwnTrouble]:
    """The pods of the worker's own owner that should be ready and are not."""
    own = next((p for p in snapshot.pods.values() if p.name == pod and p.namespace == namespace), None)
    owner = _owner_of(own) if own is not None else ""
    if not owner:
        return
    beside = [p for p in snapshot.pods.values() if p.namespace == namespace and _owner_of(p) == owner]
    gone = sorted(p.name for p in beside if p.name != pod and _is_gone(p, snapshot.now))
    if gone:
        yield OwnTrouble(
            what=f"{len(beside) - len(gone)} of {len(beside)} workers work; not ready: {', '.join(gone[:3])}",
            goes_on="everything",
            stands_still="nothing, until the last worker ends",
            page=WORKERS_PAGE,
        )


def _owner_of(pod: "Pod") -> str:
    return next((owner.uid for owner in pod.owners if owner.controller), "")


def _is_gone(pod: "Pod", now: float) -> bool:
    return pod.ready is not True and now - pod.created > NEW_SECONDS


def failing(lines: Iterable[str]) -> Iterator[OwnTrouble]:
    """What fails again and again in this worker, by its own lines."""
    for line in lines:
        yield OwnTrouble(what=_short(line), page=FAILING_PAGE)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"

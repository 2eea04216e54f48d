"""Logs once an hour for each pending pod that its mere preferences can prevent consolidation (PLC-28).

Consolidation treats a preference that a node was made for like a requirement, so nodes stay that people think are
superfluous. The log explains that at its beginning, as Karpenter's does.
"""

from collections.abc import Callable, Collection
from typing import Final

from dovetail.model.pods import Pod
from dovetail.telemetry.log import arrivals

SAY_AGAIN_SECONDS: Final = 3600.0
MOST_REMEMBERED: Final = 10_000  # pods


class ChoosyPods:
    def __init__(self) -> None:
        self._said: dict[tuple[str, str], float] = {}

    def say(self, pods: Collection[Pod], now: float) -> None:
        """A line for each sort of preference, with the pods of which it was not said in the last hour."""
        self._said = {key: at for key, at in self._said.items() if now - at < SAY_AGAIN_SECONDS}
        arrivals.prefer_apart(self._news("apart", pods, _prefers_apart, now))
        arrivals.prefer_spread(self._news("spread", pods, _prefers_spread, now))

    def _news(self, sort: str, pods: Collection[Pod], has: Callable[[Pod], bool], now: float) -> list[str]:
        found = [pod for pod in pods if has(pod) and (sort, pod.uid) not in self._said]
        for pod in found[: max(0, MOST_REMEMBERED - len(self._said))]:
            self._said[sort, pod.uid] = now
        return sorted(pod.key for pod in found)


def _prefers_apart(pod: Pod) -> bool:
    return bool(pod.shape.preferred_anti_affinity)


def _prefers_spread(pod: Pod) -> bool:
    return any(spread.when_unsatisfiable == "ScheduleAnyway" for spread in pod.shape.spread)

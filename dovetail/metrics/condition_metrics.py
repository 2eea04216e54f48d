"""How objects' conditions stand and how they change, as the library under Karpenter counts them (M-5, W-167).

Fed by the cache with each change of a NodeClaim, a NodePool, a Node or a node class; its gauges are worked out at each
scrape from what the cache holds. Metrics are named for the kind; all kinds but Node have twins under the older names,
told apart by group and kind, because alerts still ask for those. The trap avoided: a series for an object that is gone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry import metrics

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.parsing.fields import conditions as read_conditions
from dovetail.adapters.kubernetes_json.parsing.times import optional_time
from dovetail.metrics.gauges import Sample
from dovetail.metrics.instruments import Instruments
from dovetail.model import names
from dovetail.model.nodes import Condition

PREFIX: Final = "operator_"

_BUCKETS: Final = tuple(2.0**power for power in range(-1, 14))
_COUNTERS: Final = {"status_condition_transitions_total": "Transitions of a condition, by type and new status."}
_HISTOGRAMS: Final = {
    "status_condition_transition_seconds": "Seconds that a condition had a status before it got another.",
    "termination_duration_seconds": "Seconds from an object's deletion to its end.",
}
_GAUGES: Final = {
    "status_condition_count": "1 for each condition of an object; its labels say how it stands.",
    "status_condition_current_status_seconds": "Seconds since a condition got its status.",
    "termination_current_time_seconds": "Seconds since an object that is not gone yet was deleted.",
}


@dataclass(frozen=True, slots=True)
class _Told:
    """What is told of an object, whether it is kept raw or as a model."""

    name: str
    labels: Mapping[str, str]
    conditions: Sequence[Condition]
    deleting_since: float | None

    @classmethod
    def of(cls, found: Any) -> "_Told":
        if not isinstance(found, Mapping):
            return cls(found.name, found.labels, found.conditions, found.deleting_since)
        metadata = found["metadata"]
        deleting = optional_time(metadata.get("deletionTimestamp"))
        conditions = read_conditions((found.get("status") or {}).get("conditions"))
        return cls(metadata["name"], metadata.get("labels") or {}, conditions, deleting)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Followed:
    """A kind, the labels of its objects that become labels of its metrics, and whether it has twins."""

    kind: str
    group: str
    labels: tuple[str, ...] = ()
    twins: bool = True

    @property
    def infixes(self) -> tuple[str, ...]:
        """What stands in the names of its metrics."""
        own = f"{self.kind.lower()}_"
        return (own, "") if self.twins else (own,)

    def families(self, told: _Told) -> Iterator[tuple[str, dict[str, str]]]:
        """Each infix with the labels that tell this object: its own, or those of its kind."""
        for infix in self.infixes:
            own = {key.translate(_TO_UNDERSCORE): told.labels.get(key, "") for key in self.labels}
            yield infix, own if infix else {"group": self.group, "kind": self.kind}


_TO_UNDERSCORE: Final = str.maketrans("/.-", "___")


class ConditionMetrics:
    """Counters, durations and gauges of conditions and terminations."""

    def __init__(self, cache: Cache, classes: Sequence[tuple[str, str]], now: Callable[[], float]) -> None:
        """`classes`: group and kind of the node classes that are supported."""
        self._cache, self._now = cache, now
        chosen = tuple(f"{group}/{kind.lower()}" for group, kind in sorted(classes))
        followed = (
            _Followed(kind="NodeClaim", group="karpenter.sh", labels=(*chosen, names.NODE_POOL)),
            _Followed(kind="NodePool", group="karpenter.sh"),
            _Followed(kind="Node", group="", labels=(*chosen, names.NODE_POOL, names.INITIALIZED), twins=False),
            *(_Followed(kind=kind, group=group) for group, kind in sorted(classes)),
        )
        watched = {kind.name for kind in cache.kinds()}
        self._followed = tuple(each for each in followed if each.kind in watched)
        infixes = {infix for each in self._followed for infix in each.infixes}
        self.help = {f"{infix}{name}": words for name, words in _GAUGES.items() for infix in infixes}
        self._instruments = Instruments(
            meter=metrics.get_meter("dovetail"),
            prefix=PREFIX,
            counters={f"{infix}{name}": words for name, words in _COUNTERS.items() for infix in infixes},
            histograms={
                f"{infix}{name}": (words, _BUCKETS) for name, words in _HISTOGRAMS.items() for infix in infixes
            },
        )

    def follow(self) -> None:
        """From now on changes are counted; what stands counts as having come just now, as upstream has it."""
        for each in self._followed:
            self._cache.listen(each.kind, self._listener(each))

    def _listener(self, followed: _Followed) -> Callable[[Any, Any], None]:
        def heard(old: Any, new: Any) -> None:
            before = None if old is None else _Told.of(old)
            if new is not None:
                self._count(followed, before, _Told.of(new))
            elif before is not None and before.deleting_since is not None:
                self._observe(followed, before, "termination_duration_seconds", self._now() - before.deleting_since, {})

        return heard

    def _count(self, followed: _Followed, before: _Told | None, now: _Told) -> None:
        known = {} if before is None else {condition.type: condition for condition in before.conditions}
        for condition in now.conditions:
            last = known.get(condition.type)
            if last is not None and last.status == condition.status:
                continue
            labels = {"type": condition.type, "status": condition.status, "reason": condition.reason}
            for infix, whose in followed.families(now):
                self._instruments.counter(f"{infix}status_condition_transitions_total").add(1, {**labels, **whose})
            if last is not None:
                left = {"type": last.type, "status": last.status}
                lasted = condition.changed - last.changed
                self._observe(followed, now, "status_condition_transition_seconds", lasted, left)

    def _observe(self, followed: _Followed, told: _Told, name: str, seconds: float, labels: Mapping[str, str]) -> None:
        for infix, whose in followed.families(told):
            self._instruments.histogram(f"{infix}{name}").record(seconds, {**labels, **whose})

    def samples(self) -> Iterator[Sample]:
        """The gauges of what the cache holds now."""
        now = self._now()
        for followed in self._followed:
            for _, found in sorted(self._cache.objects(followed.kind).items()):
                told = _Told.of(found)
                for infix, whose in followed.families(told):
                    yield from _gauges(infix, told, {"namespace": "", "name": told.name, **whose}, now)


def _gauges(infix: str, told: _Told, labels: Mapping[str, str], now: float) -> Iterator[Sample]:
    for each in told.conditions:
        stands = {**labels, "type": each.type, "status": each.status, "reason": each.reason}
        series = tuple(stands.items())
        yield Sample(name=f"{infix}status_condition_count", labels=series, value=1.0)
        lasting = now - each.changed
        yield Sample(name=f"{infix}status_condition_current_status_seconds", labels=series, value=lasting)
    if told.deleting_since is not None:
        since = now - told.deleting_since
        yield Sample(name=f"{infix}termination_current_time_seconds", labels=tuple(labels.items()), value=since)

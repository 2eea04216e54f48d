"""The state and changes of objects' conditions, as counted by the library under Karpenter (MET-5, AWS-167).

Each change of a NodeClaim, a NodePool, a Node or a NodeClass is counted as the cache reports it; the gauges are worked
out at each scrape from existing objects, so that no series outlives its object. Metrics are named after the kind; all
kinds but Node have twins under the older names, with group and kind as labels, because alerts still use those.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from opentelemetry import metrics

from dovetail.model import names
from dovetail.ports.view import ConditionsListener, ConditionsView, ObjectConditions
from dovetail.telemetry.metrics.duties import UPKEEP, Duties
from dovetail.telemetry.metrics.exposition import head, inside
from dovetail.telemetry.metrics.instruments import Instruments

PREFIX: Final = "operator_"

_BUCKETS: Final = tuple(2.0**power for power in range(-1, 14))
COUNTERS: Final = {"status_condition_transitions_total": "Transitions of a condition, by type and new status."}
HISTOGRAMS: Final = {
    "status_condition_transition_seconds": "Seconds that a condition had a status before it got another.",
    "termination_duration_seconds": "Seconds from an object's deletion to its end.",
}
GAUGES: Final = {
    "status_condition_count": "1 for each condition of an object; its labels say how it stands.",
    "status_condition_current_status_seconds": "Seconds since a condition got its status.",
    "termination_current_time_seconds": "Seconds since an object that is not gone yet was deleted.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Followed:
    """A kind, the labels of its objects that become labels of its metrics, and whether it has twins."""

    kind: str
    group: str
    labels: tuple[str, ...] = ()
    twins: bool = True

    @property
    def infixes(self) -> tuple[str, ...]:
        """The kind's part in the names of its metrics."""
        own = f"{self.kind.lower()}_"
        return (own, "") if self.twins else (own,)

    def families(self, found: ObjectConditions) -> Iterator[tuple[str, dict[str, str]]]:
        """Each infix with the labels that identify this object: its own, or those of its kind."""
        for infix in self.infixes:
            own = {key.translate(_TO_UNDERSCORE): found.labels.get(key, "") for key in self.labels}
            yield infix, own if infix else {"group": self.group, "kind": self.kind}


_TO_UNDERSCORE: Final = str.maketrans("/.-", "___")


class ConditionMetrics:
    """Counters, durations and gauges of conditions and terminations."""

    def __init__(
        self,
        view: ConditionsView,
        classes: Sequence[tuple[str, str]],
        now: Callable[[], float],
        duties: Duties,
    ) -> None:
        """`classes`: group and kind of the NodeClasses that are supported."""
        self._view, self._now, self._duties = view, now, duties
        chosen = tuple(f"{group}/{kind.lower()}" for group, kind in sorted(classes))
        followed = (
            _Followed(kind="NodeClaim", group="karpenter.sh", labels=(*chosen, names.NODE_POOL)),
            _Followed(kind="NodePool", group="karpenter.sh"),
            _Followed(kind="Node", group="", labels=(*chosen, names.NODE_POOL, names.INITIALIZED), twins=False),
            *(_Followed(kind=kind, group=group) for group, kind in sorted(classes)),
        )
        self._followed = tuple(each for each in followed if each.kind in view.kinds())
        infixes = {infix for each in self._followed for infix in each.infixes}
        self.help = {f"{infix}{name}": words for name, words in GAUGES.items() for infix in infixes}
        self._texts: dict[tuple[str, str], _Text] = {}
        self._instruments = Instruments(
            meter=metrics.get_meter("dovetail"),
            prefix=PREFIX,
            counters={f"{infix}{name}": words for name, words in COUNTERS.items() for infix in infixes},
            histograms={f"{infix}{name}": (words, _BUCKETS) for name, words in HISTOGRAMS.items() for infix in infixes},
        )

    def follow(self) -> None:
        """Count changes from now on. Existing objects count as just created, as upstream does."""
        for each in self._followed:
            self._view.listen(each.kind, self._listener(each))

    def _listener(self, followed: _Followed) -> ConditionsListener:
        def changed(before: ObjectConditions | None, after: ObjectConditions | None) -> None:
            if not self._duties.has(UPKEEP):
                return  # every worker sees it, and one counts
            if after is not None:
                self._count(followed, before, after)
            elif before is not None and before.deleting_since is not None:
                self._observe(followed, before, "termination_duration_seconds", self._now() - before.deleting_since, {})

        return changed

    def _count(self, followed: _Followed, before: ObjectConditions | None, now: ObjectConditions) -> None:
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

    def _observe(
        self, followed: _Followed, found: ObjectConditions, name: str, seconds: float, labels: Mapping[str, str]
    ) -> None:
        for infix, whose in followed.families(found):
            self._instruments.histogram(f"{infix}{name}").record(seconds, {**labels, **whose})

    def blocks(self) -> Iterator[bytes]:
        """The gauges of the existing objects, as Prometheus reads them, in whole lines.

        A hundred thousand conditions are as they were at the last scrape: the text of an object with the same
        conditions is reused, except for its ages.
        """
        families: dict[str, list[bytes]] = {}
        known, self._texts, ages = self._texts, {}, _AgeTexts(self._now())
        for followed in self._followed:
            for found in self._view.of_kind(followed.kind):
                key = followed.kind, found.name
                text = known.get(key)
                if text is None or not text.says(found):
                    text = _Text.of(followed, found)
                self._texts[key] = text
                text.add_to(families, ages)
        for name in sorted(families):
            yield "".join([f"{line}\n" for line in head(PREFIX + name, self.help[name], "gauge")]).encode()
            yield from families[name]


class _AgeTexts(dict[float, bytes]):
    """How long ago a moment was, as text for the end of a line. Conditions change in whole seconds, many in the same
    one."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self._now = now

    def __missing__(self, since: float) -> bytes:
        found = self[since] = b"%.3f\n" % (self._now - since)
        return found


class _Ages(NamedTuple):
    """Lines of one family, each with a place for its age, and the times from which the ages count."""

    family: str
    lines: bytes
    since: tuple[float, ...]


class _Text(NamedTuple):
    """The gauges of one object. `fixed`: families and lines that do not change with time."""

    found: ObjectConditions
    fixed: tuple[tuple[str, bytes], ...]
    ages: tuple[_Ages, ...]

    @classmethod
    def of(cls, followed: _Followed, found: ObjectConditions) -> "_Text":
        fixed: list[tuple[str, bytes]] = []
        ages: list[_Ages] = []
        for infix, whose in followed.families(found):
            labels = {"namespace": "", "name": found.name, **whose}
            count, age = f"{infix}status_condition_count", f"{infix}status_condition_current_status_seconds"
            series = [
                inside({**labels, "type": each.type, "status": each.status, "reason": each.reason}.items())
                for each in found.conditions
            ]
            if series:
                fixed.append((count, "".join([f"{PREFIX}{count}{{{text}}} 1\n" for text in series]).encode()))
                ages.append(_Ages(age, _aging(age, series), tuple([each.changed for each in found.conditions])))
            if found.deleting_since is not None:
                name = f"{infix}termination_current_time_seconds"
                ages.append(_Ages(name, _aging(name, [inside(labels.items())]), (found.deleting_since,)))
        return cls(found=found, fixed=tuple(fixed), ages=tuple(ages))

    def says(self, found: ObjectConditions) -> bool:
        mine = self.found
        same = mine.conditions is found.conditions or mine.conditions == found.conditions
        return (
            same
            and mine.deleting_since == found.deleting_since
            and (mine.labels is found.labels or mine.labels == found.labels)
        )

    def add_to(self, families: dict[str, list[bytes]], ages: _AgeTexts) -> None:
        for name, text in self.fixed:
            families.setdefault(name, []).append(text)
        for name, lines, since in self.ages:
            families.setdefault(name, []).append(lines % tuple(map(ages.__getitem__, since)))


def _aging(name: str, series: list[str]) -> bytes:
    """Lines, each with a place for its age at the end."""
    return b"".join([f"{PREFIX}{name}{{{text}}} ".replace("%", "%%").encode() + b"%b" for text in series])

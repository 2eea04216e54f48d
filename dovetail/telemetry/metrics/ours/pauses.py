"""What a person has paused. The name is ours alone: Karpenter has no pause."""

from collections.abc import Iterator
from typing import Final

from dovetail.model.names import SYSTEM_NAMESPACE
from dovetail.model.own.pauses import Activity
from dovetail.model.snapshot import Snapshot
from dovetail.rules.pause.pauses import EVERY_POOL, holding, pause_on, pauses_of_all
from dovetail.telemetry.metrics.gauges import Sample

HELP: Final = {"paused": "1 while that is paused for a NodePool; for all of them, where it names none."}


def pause_samples(snapshot: Snapshot) -> Iterator[Sample]:
    """For each activity, whether all pools and each pool are held, by whatever holds them."""
    general = pauses_of_all(snapshot.namespaces.get(SYSTEM_NAMESPACE), snapshot.freezes, snapshot.now)
    for activity in Activity:
        yield _sample(activity, EVERY_POOL, held=holding(general, activity) is not None)
        for pool in sorted(snapshot.pools):
            yield _sample(activity, pool, held=pause_on(snapshot, pool, activity) is not None)


def _sample(activity: Activity, pool: str, *, held: bool) -> Sample:
    return Sample(name="paused", labels=(("what", activity), ("pool", pool)), value=float(held))

"""Gauges of what surrounds a worker, under names of our own: which watches are broken."""

from collections.abc import Iterator, Mapping
from typing import Final

from dovetail.metrics.gauges import Sample

HELP: Final = {
    "watch_broken": "1 for each kind whose watch is broken: what is decided on that kind waits.",
}


def watch_samples(stale: Mapping[str, str]) -> Iterator[Sample]:
    """The kinds that cannot be trusted now."""
    for kind in sorted(stale):
        yield Sample(name="watch_broken", labels=(("kind", kind),), value=1.0)

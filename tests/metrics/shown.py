"""The gauges of a snapshot as a worker prints them, read back."""

import re

from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import PREFIX
from dovetail.telemetry.metrics.karpenters.cluster_lines import ClusterLines

_LABEL = re.compile(r'(\w+)="([^"]*)"')


def shown(snapshot: Snapshot) -> list[Sample]:
    """Every series that a first scrape has."""
    lines = b"".join(ClusterLines().blocks(snapshot)).decode().splitlines()
    return [_sample(*line.rsplit(" ", 1)) for line in lines if not line.startswith("#")]


def _sample(series: str, value: str) -> Sample:
    name, _, labels = series.removeprefix(PREFIX).partition("{")
    return Sample(name=name, labels=tuple(_LABEL.findall(labels)), value=float(value))

"""Metrics in Prometheus' text format, family by family, with exactly the names and labels that were counted.

Written here because the usual exporter adds labels and suffixes of its own, and Karpenter's dashboards and alerts need
the exact names.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate, groupby
from math import isfinite, isnan
from typing import Final, TypeAlias

from opentelemetry.sdk.metrics.export import (
    ExponentialHistogramDataPoint,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    Sum,
)

from dovetail.telemetry.metrics.gauges import HELP, Sample
from dovetail.telemetry.metrics.instruments import PREFIX

DataPoint: TypeAlias = NumberDataPoint | HistogramDataPoint | ExponentialHistogramDataPoint

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

OVERFLOW: Final = "otel.metric.overflow"  # the label of the one series in which the SDK folds what is beyond a limit

_PLAIN = re.compile(r"[^\\\"\n]*").fullmatch


def counted(data: MetricsData | None, left_out: Collection[str] = ()) -> Iterator[str]:
    """The lines of everything counted since the process began. `left_out`: names that this worker does not publish."""
    if data is None:
        return
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in sorted(scope.metrics, key=lambda metric: metric.name):
                if metric.name not in left_out:
                    yield from _family(metric)


def _family(metric: Metric) -> Iterator[str]:
    match metric.data:
        case Sum():
            yield from head(metric.name, metric.description or "", "counter")
            for number in _points(metric):
                assert isinstance(number, NumberDataPoint)
                yield line(metric.name, _labels(number.attributes), number.value)
        case Histogram():
            yield from head(metric.name, metric.description or "", "histogram")
            for point in _points(metric):
                assert isinstance(point, HistogramDataPoint)
                yield from _histogram(metric.name, point)
        case Gauge():
            yield from head(metric.name, metric.description or "", "gauge")
            for number in _points(metric):
                assert isinstance(number, NumberDataPoint)
                yield line(metric.name, _labels(number.attributes), number.value)
        case _:
            raise AssertionError(f"{metric.name}: no step makes a {type(metric.data).__name__}")


def _points(metric: Metric) -> Iterator[DataPoint]:
    """The series, without the one that stands for all beyond the limit: its label is no label of Prometheus', which
    would refuse the whole page for it."""
    return (point for point in metric.data.data_points if not _is_beyond(point))


def _is_beyond(point: DataPoint) -> bool:
    return OVERFLOW in (point.attributes or {})


def left_out_samples(data: MetricsData | None) -> Iterator[Sample]:
    """What was counted beyond the limit of series, by metric."""
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data is not None else ()
    for metric in metrics:
        for point in filter(_is_beyond, metric.data.data_points):
            number = point.value if isinstance(point, NumberDataPoint) else point.count
            yield Sample(name="counts_left_out", labels=(("metric", metric.name),), value=float(number))


def _histogram(name: str, point: HistogramDataPoint) -> Iterator[str]:
    labels = _labels(point.attributes)
    bounds = [*(number(bound) for bound in point.explicit_bounds), "+Inf"]
    for bound, below in zip(bounds, accumulate(point.bucket_counts), strict=True):
        yield line(f"{name}_bucket", [*labels, ("le", bound)], below)
    yield line(f"{name}_sum", labels, point.sum)
    yield line(f"{name}_count", labels, point.count)


def measured(samples: Iterable[Sample], help_texts: Mapping[str, str] = HELP, prefix: str = PREFIX) -> Iterator[str]:
    ordered = sorted(samples, key=lambda sample: sample.name)
    for name, family in groupby(ordered, key=lambda sample: sample.name):
        yield from head(prefix + name, help_texts[name], "gauge")
        for sample in family:
            yield line(prefix + name, sample.labels, sample.value)


def head(name: str, words: str, kind: str) -> Iterator[str]:
    """The lines that introduce a family."""
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _labels(attributes: Mapping[str, object] | None) -> list[tuple[str, str]]:
    return sorted((key, str(value)) for key, value in (attributes or {}).items())


def line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    text = inside(labels)
    return f"{name}{{{text}}} {number(value)}" if text else f"{name} {number(value)}"


def inside(labels: Iterable[tuple[str, str]]) -> str:
    """The text between the braces of a series."""
    return ",".join([f'{key}="{_escaped(text)}"' for key, text in labels])


def _escaped(text: str) -> str:
    if _PLAIN(text):  # nearly all of a page's million values
        return text
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))

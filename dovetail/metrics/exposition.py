"""Metrics as Prometheus reads them: text, a family at a time, exactly the names and labels that were counted.

Written here because the usual exporter adds labels and suffixes of its own, and Karpenter's dashboards and alerts know
the names as they are.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby

from opentelemetry.sdk.metrics.export import (
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    Sum,
)

from dovetail.metrics.gauges import HELP, Sample
from dovetail.metrics.instruments import PREFIX

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def counted(data: MetricsData | None) -> Iterator[str]:
    """The lines of what steps have counted since the process began."""
    if data is None:
        return
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in sorted(scope.metrics, key=lambda metric: metric.name):
                yield from _family(metric)


def _family(metric: Metric) -> Iterator[str]:
    match metric.data:
        case Sum():
            yield from _head(metric.name, metric.description or "", "counter")
            for number in metric.data.data_points:
                assert isinstance(number, NumberDataPoint)
                yield _line(metric.name, _labels(number.attributes), number.value)
        case Histogram():
            yield from _head(metric.name, metric.description or "", "histogram")
            for point in metric.data.data_points:
                assert isinstance(point, HistogramDataPoint)
                yield from _histogram(metric.name, point)
        case Gauge():
            yield from _head(metric.name, metric.description or "", "gauge")
            for number in metric.data.data_points:
                assert isinstance(number, NumberDataPoint)
                yield _line(metric.name, _labels(number.attributes), number.value)
        case _:
            raise AssertionError(f"{metric.name}: no step makes a {type(metric.data).__name__}")


def _histogram(name: str, point: HistogramDataPoint) -> Iterator[str]:
    labels = _labels(point.attributes)
    bounds = [*(_number(bound) for bound in point.explicit_bounds), "+Inf"]
    for bound, below in zip(bounds, accumulate(point.bucket_counts), strict=True):
        yield _line(f"{name}_bucket", [*labels, ("le", bound)], below)
    yield _line(f"{name}_sum", labels, point.sum)
    yield _line(f"{name}_count", labels, point.count)


def measured(samples: Iterable[Sample], help_texts: Mapping[str, str] = HELP, prefix: str = PREFIX) -> Iterator[str]:
    """The lines of gauges."""
    ordered = sorted(samples, key=lambda sample: sample.name)
    for name, family in groupby(ordered, key=lambda sample: sample.name):
        yield from _head(prefix + name, help_texts[name], "gauge")
        for sample in family:
            yield _line(prefix + name, sample.labels, sample.value)


def _head(name: str, words: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _labels(attributes: Mapping[str, object] | None) -> list[tuple[str, str]]:
    return sorted((key, str(value)) for key, value in (attributes or {}).items())


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))

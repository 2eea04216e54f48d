"""What a worker sends to a collector, and that it loads nothing for it where none is named."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from acceptance.bench.worker.scrape import View
from dovetail.disruption.settings import DisruptionSettings
from dovetail.settings.settings import SettingsError, read_settings
from dovetail.telemetry.traces.ids import SpanId
from dovetail.telemetry.traces.spans import Span
from dovetail.worker.otlp import observing
from dovetail.worker.otlp.observing import Observed, observed_by
from testbed.collector import Collector
from worlds.disruption import a_pair, a_pod, a_pool, a_world
from worlds.fakes import a_scrape

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
FIRST = SpanId(trace="ab" * 16, span="cd" * 8)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """One that the environment names."""
    made = Collector()
    monkeypatch.setenv(ENDPOINT, made.start())
    yield made
    made.close()


def span(name: str, identity: SpanId = FIRST, **more: object) -> Span:
    given: dict[str, object] = {"name": name, "id": identity, "began": 1.5, "ended": 2.25, **more}
    return Span(**given)  # type: ignore[arg-type]


def test_a_span_arrives_as_it_was_told(collector: Collector) -> None:
    observed = observed_by(read_settings({ENDPOINT: "as the environment has it", "CLUSTER_NAME": "prod"}))
    assert observed.spans is not None
    below = FIRST.within("step")
    observed.spans.record(span("first"))
    observed.spans.record(
        span("below", below, parent=FIRST, attributes={"pods": 3, "": ""}, links=(FIRST,), error="why")
    )
    observed.close()

    [first, second] = collector.trace(FIRST.trace)
    assert (first.name, first.span, first.parent, first.failed) == ("first", FIRST.span, "", False)
    assert (first.began, first.ended) == (1_500_000_000, 2_250_000_000)
    assert (second.span, second.parent, second.failed) == (below.span, FIRST.span, True)
    assert second.attributes == {"pods": 3} and second.links == ((FIRST.trace, FIRST.span),)
    assert (first.resource["service.name"], first.resource["k8s.cluster.name"]) == ("dovetail", "prod")


def test_a_span_that_is_told_twice_arrives_once_and_one_that_is_not_kept_never(collector: Collector) -> None:
    observed = observed_by(read_settings({ENDPOINT: "set"}))
    assert observed.spans is not None
    for _ in range(2):
        observed.spans.record(span("first"))
    observed.spans.record(span("other", SpanId(trace="12" * 16, span="34" * 8, kept=False)))
    observed.close()
    assert [each.name for each in collector.spans] == ["first"]


def test_the_name_of_the_service_can_be_chosen(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nodes")
    observed = observed_by(read_settings({ENDPOINT: "set"}))
    assert observed.spans is not None
    observed.spans.record(span("first"))
    observed.close()
    assert collector.spans[0].resource["service.name"] == "nodes"


def test_lines_of_the_log_arrive_with_their_fields(collector: Collector) -> None:
    observed = observed_by(read_settings({ENDPOINT: "set", "OTEL_TRACES_EXPORTER": "none"}))
    logging.getLogger("dovetail.any").warning("a pod of %s waits", "web")
    observed.close()
    logging.getLogger("dovetail.any").warning("not sent any more")
    assert observed.spans is None
    assert [(line.message, line.severity) for line in collector.lines] == [("a pod of web waits", "WARN")]
    assert collector.lines[0].attributes["logger"] == "dovetail.any"


async def test_what_is_counted_and_the_gauges_arrive(collector: Collector) -> None:
    """Those of the cluster too, without a series for each node and pod."""
    observed = observed_by(read_settings({ENDPOINT: "set", "CLUSTER_NAME": "prod"}))
    assert observed.metrics is not None
    provider = MeterProvider(
        metric_readers=[observed.metrics.reader], resource=observed.metrics.resource, shutdown_on_exit=False
    )
    meter = provider.get_meter("test")
    meter.create_counter("karpenter_nodes_created_total").add(3, {"nodepool": "a"})
    meter.create_histogram("karpenter_nodes_lifetime_duration_seconds").record(5.0)
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1")], pools=[a_pool()])
    scrape = a_scrape(
        view=View(world),  # a scrape asks nothing else of it
        supported=frozenset,
        settings=DisruptionSettings(),
        reader=InMemoryMetricReader(),
    )
    observed.metrics.gauges_from(scrape)
    await asyncio.to_thread(observed.close)

    [created] = collector.metrics["karpenter_nodes_created_total"]
    assert (created.kind, created.value, created.attributes) == ("sum", 3, {"nodepool": "a"})
    assert created.resource["k8s.cluster.name"] == "prod"
    [lifetime] = collector.metrics["karpenter_nodes_lifetime_duration_seconds"]
    assert (lifetime.kind, lifetime.value) == ("histogram", 1)
    assert [point.value for point in collector.metrics["karpenter_cluster_state_node_count"]] == [2]
    used = {
        (point.attributes["nodepool"], point.attributes["resource_type"]): point.value
        for point in collector.metrics["karpenter_nodepools_usage"]
    }
    assert [amount for (_, resource), amount in used.items() if resource == "nodes"] == [2]
    assert "dovetail_nodeclaims" in collector.metrics and "karpenter_pods_state" not in collector.metrics


@pytest.mark.parametrize(
    ("environment", "sends"),
    [
        ({}, (False, False, False)),
        ({ENDPOINT: "http://c:4318"}, (True, True, True)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, (True, False, False)),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://c:4318/v1/logs"}, (False, True, False)),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, (False, False, True)),
        ({ENDPOINT: "http://c:4318", "OTEL_METRICS_EXPORTER": "none"}, (True, True, False)),
        ({ENDPOINT: "http://c:4318", "OTEL_LOGS_EXPORTER": "none"}, (True, False, True)),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, (False, False, False)),
    ],
)
def test_the_standard_variables_say_what_is_sent(environment: dict[str, str], sends: tuple[bool, bool, bool]) -> None:
    settings = read_settings(environment)
    assert (settings.sends_traces, settings.sends_logs, settings.sends_metrics) == sends


@pytest.mark.parametrize(
    ("sampler", "argument", "share"),
    [
        ("always_on", "0.1", 1.0),
        ("always_off", "1", 0.0),
        ("traceidratio", "0.1", 0.1),
        ("parentbased_traceidratio", "0.25", 0.25),
        ("parentbased_always_off", "1", 0.0),
    ],
)
def test_the_sampler_says_which_share_is_kept(sampler: str, argument: str, share: float) -> None:
    settings = read_settings({"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument})
    assert settings.traces_kept == share


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ("LOG_FORMAT", "xml"),
    ],
)
def test_a_value_that_cannot_be_used_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        read_settings({name: value})


def test_without_the_packages_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dovetail.worker.otlp.sending", None)
    with pytest.raises(SettingsError, match=r"install dovetail\[otlp\]"):
        observed_by(read_settings({ENDPOINT: "set"}))


def test_without_a_collector_nothing_is_made_or_put_around_anything() -> None:
    observed = observed_by(read_settings({}))
    assert observed == Observed()
    assert observed.interceptors(lambda: 0.0, lambda uid: None) == ([], [])
    observed.close()


def test_without_a_collector_nothing_of_it_is_loaded() -> None:
    code = (
        "import sys\n"
        f"from {observing.__name__} import observed_by\n"
        "from dovetail.settings.settings import read_settings\n"
        "observed_by(read_settings({}))\n"
        "names = tuple('opentelemetry.' + end for end in ('exporter', 'sdk.trace', 'sdk._logs', 'proto'))\n"
        "print([name for name in sys.modules if name.startswith(names)], flush=True)\n"
        "import os; os._exit(0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"

"""The runtime of Temporal's SDK and its counters, printed with the worker's own metrics.

The SDK counts by itself and serves a page on a port of localhost, which is read at each scrape, so nobody needs to
reach that port. A process has one runtime, made before its first connection. A process that makes none (a command, a
test) uses the SDK's default, which counts nothing.
"""

import http.client
import logging
import random
from collections.abc import Iterator
from functools import cache
from typing import Final

from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

HERE: Final = "127.0.0.1"
PORTS: Final = range(15_000, 32_000)  # below those that systems give to outgoing connections
TRIES: Final = 20
PAGE_SECONDS: Final = 5.0
MILLISECONDS: Final = (
    1.0,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1000.0,
    2500.0,
    5000.0,
    10000.0,
    30000.0,
    60000.0,
)
DURATIONS: Final = (
    "request_latency",
    "long_request_latency",
    "workflow_endtoend_latency",
    "workflow_task_schedule_to_start_latency",
    "workflow_task_replay_latency",
    "workflow_task_execution_latency",
    "activity_schedule_to_start_latency",
    "activity_execution_latency",
    "activity_succeed_endtoend_latency",
    "local_activity_execution_latency",
    "local_activity_succeed_endtoend_latency",
)

_log = logging.getLogger(__name__)
_pages: list[int] = []  # the ports of the pages of this process: one, once its runtime is made


@cache
def counting_runtime() -> Runtime:
    chance = random.SystemRandom()
    refused: ValueError | None = None
    for _ in range(TRIES):
        port = chance.choice(PORTS)  # another process may have it
        page = PrometheusConfig(
            bind_address=f"{HERE}:{port}", histogram_bucket_overrides=dict.fromkeys(DURATIONS, MILLISECONDS)
        )
        try:
            runtime = Runtime(telemetry=TelemetryConfig(metrics=page))
        except ValueError as error:
            refused = error
            continue
        _pages.append(port)
        return runtime
    raise OSError(f"METRICS_PORT: no page for the metrics of Temporal's SDK on {TRIES} ports of {HERE}: {refused}")


def sdk_lines() -> Iterator[str]:
    """What the SDK has counted, as Prometheus reads it; nothing where the runtime does not count."""
    for port in _pages:
        try:
            yield from _read(port).splitlines()
        except (OSError, http.client.HTTPException) as error:
            _log.warning("the metrics of Temporal's SDK could not be read: %s", error)


def _read(port: int) -> str:
    connection = http.client.HTTPConnection(HERE, port, timeout=PAGE_SECONDS)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()

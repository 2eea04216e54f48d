"""The runtime of Temporal's SDK, with a buffer for what it counts, printed with the worker's own metrics.

A process has one runtime, made before the first connection. A process that makes none of these, as a command or a test
does, uses the SDK's own, which counts nothing.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

from dovetail.metrics.temporal_sdk import SdkMetrics

# A burst of a thousand nodes makes some ten thousand updates a second.
BUFFERED: Final = 100_000
DRAIN_SECONDS: Final = 1.0

_made: list[SdkMetrics] = []


@cache
def counting_runtime() -> Runtime:
    """The runtime of this process."""
    buffer = MetricBuffer(BUFFERED)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))

    def updates() -> Sequence[Any]:
        return buffer.retrieve_updates()

    _made.append(SdkMetrics(updates))
    return runtime


def sdk_lines() -> Iterator[str]:
    """What the SDK has counted, as Prometheus reads it; nothing where the runtime does not count."""
    for metrics in _made:
        yield from metrics.lines()


async def keep_draining() -> None:
    """Empty the buffer for ever: one that is full drops what comes."""
    while True:
        await asyncio.sleep(DRAIN_SECONDS)
        for metrics in _made:
            metrics.drain()

"""The header that says which trace a workflow, and every step and child that it asks for, is part of."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from temporalio.api.common.v1 import Payload

from dovetail.telemetry.traces.ids import SpanId

HEADER: Final = "traceparent"  # in the form of the W3C

# Of the step that runs, for the workflows that it starts: they are part of the trace as its workflow's children are.
of_running_step: ContextVar[SpanId | None] = ContextVar("of_running_step", default=None)


def header_of(parent: SpanId) -> Payload:
    """The header as it is sent. Never encrypted: it holds ids alone."""
    text = f"00-{parent.trace}-{parent.span}-{'01' if parent.kept else '00'}"
    return Payload(metadata={"encoding": b"json/plain"}, data=f'"{text}"'.encode())


def parent_in(headers: Mapping[str, Payload]) -> SpanId | None:
    """What the headers name; None where they name nothing that can be read."""
    found = headers.get(HEADER)
    parts = found.data.decode(errors="replace").strip('"').split("-") if found is not None else []
    if len(parts) != 4 or (len(parts[1]), len(parts[2])) != (32, 16):
        return None
    return SpanId(trace=parts[1], span=parts[2], kept=parts[3] == "01")

"""What fails outside is one line of the log; what nobody foresaw keeps its traceback."""

import io
import logging
from collections.abc import Iterator

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError

from dovetail.ports.failures import Forbidden
from dovetail.telemetry.log.line import JsonLines, TextLines
from dovetail.telemetry.log.start import start_logging

REFUSED = "operation error EC2: CreateFleet, 403\nnot authorized"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The root logger as it was, after the worker's own has been put in its place."""
    root, library = logging.getLogger(), logging.getLogger("temporalio.activity")
    before = (root.level, list(root.handlers), library.level, list(library.filters))
    start_logging("info", "json")
    [handler] = root.handlers
    assert isinstance(handler, logging.StreamHandler) and isinstance(handler.formatter, JsonLines | TextLines)
    found = io.StringIO()
    handler.setStream(found)
    yield found
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    library.setLevel(before[2])
    library.filters[:] = before[3]


@pytest.mark.parametrize("error", [Forbidden("ec2:CreateFleet", REFUSED), ApplicationError(REFUSED, type="Forbidden")])
def test_a_refused_launch_is_one_line_without_a_traceback(written: io.StringIO, error: Exception) -> None:
    try:
        raise error
    except Exception:
        activity.logger.warning("Completing activity as failed", exc_info=True)

    [line] = written.getvalue().splitlines()
    assert "a step has failed: " in line and "CreateFleet, 403" in line
    assert "Traceback" not in line and len(line) < 700


def test_what_nobody_foresaw_keeps_its_traceback(written: io.StringIO) -> None:
    try:
        raise KeyError("x")
    except KeyError:
        activity.logger.warning("Completing activity as failed", exc_info=True)

    assert "Traceback" in written.getvalue()

"""Starts logging, and names the product.

One line per record, to standard error, so that standard output holds only a command's answer. Lines are JSON if nobody
reads them directly: in a container, behind a pipe.
"""

import logging
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from dovetail.model.values.quoting import one_line
from dovetail.ports.failures import Failure
from dovetail.telemetry.log.line import JsonLines, TextLines

LogFormat = Literal["", "json", "text"]

# Libraries that log routine events at info.
_TALKATIVE: Final = ("temporalio.activity", "aiohttp", "botocore", "urllib3", "kubernetes", "opentelemetry")


def _in_one_line(record: logging.LogRecord) -> bool:
    """The error of a step, in one line if something outside failed: our traceback adds nothing. Unforeseen errors keep
    their traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, Failure | ApplicationError):
        step = activity.info().activity_type if activity.in_activity() else "a step"
        record.msg, record.args, record.exc_info = f"{step} has failed: {one_line(str(error))}", (), None
    return True


def product_version() -> str:
    """The installed version, for user agents and for people."""
    try:
        return version("dovetail")
    except PackageNotFoundError:
        return "0.0.0"


def user_agent() -> str:
    """The user agent, as the API server's audit log shows it."""
    return f"dovetail/{product_version()}"


def start_logging(level: str, form: LogFormat = "") -> None:
    """Log to standard error; without a form, JSON unless it is a terminal."""
    chosen = form or ("text" if sys.stdout.isatty() else "json")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(product_version()) if chosen == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    logging.getLogger("temporalio.activity").addFilter(_in_one_line)
    # Otherwise the library appends a workflow's or step's whole description to each message.
    workflow.logger.workflow_info_on_message = False
    activity.logger.activity_info_on_message = False

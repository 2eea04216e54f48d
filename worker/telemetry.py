"""Logs, and the names of the product in them.

One line a record, to standard error, so that standard output stays what a command answers.
"""

import logging
import sys
from importlib.metadata import PackageNotFoundError, version


def product_version() -> str:
    """The version installed, for user agents and for people."""
    try:
        return version("dovetail")
    except PackageNotFoundError:
        return "0.0.0"


def user_agent() -> str:
    """What the API server's audit log shows."""
    return f"dovetail/{product_version()}"


def start_logging(level: str) -> None:
    """Log to standard error."""
    logging.basicConfig(
        level=level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        force=True,
    )
    logging.getLogger("temporalio.activity").setLevel(logging.WARNING if level != "debug" else logging.DEBUG)

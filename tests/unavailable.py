"""What a test does where there can be no control plane: it is skipped with the reason, or fails where CI requires it.

A skipped cluster test is a green run that saw nothing.
"""

import os
from typing import Final, NoReturn

import pytest

CLUSTER_TESTS: Final = "DOVETAIL_CLUSTER_TESTS"
REQUIRED: Final = "required"


def no_control_plane(reason: object) -> NoReturn:
    """Skip the test, or fail it where cluster tests are required."""
    if os.environ.get(CLUSTER_TESTS) == REQUIRED:
        pytest.fail(f"cluster tests are required, and there is no control plane: {reason}", pytrace=False)
    pytest.skip(f"no control plane: {reason}")


def no_prometheus(reason: object) -> NoReturn:
    """Skip a test of make soak that needs Prometheus's own program."""
    pytest.skip(f"no promtool: {reason}")


def no_container(reason: str) -> NoReturn:
    """Skip a test that runs the image, where nobody may make namespaces and mounts."""
    pytest.skip(f"no container can be run here: {reason}")


def no_browser(reason: str) -> NoReturn:
    """Skip a test of the web page, where there is no browser; its script is read by other tests all the same."""
    pytest.skip(f"no browser: {reason}")


def no_nodes(reason: str) -> NoReturn:
    """Skip a test on real nodes, where nobody may make namespaces, or runc and iptables are not there."""
    pytest.skip(f"no real node can run here: {reason}")

"""No Temporal server answers here, unless a test brings its own."""

import pytest

from dovetail.cli.demo.temporal_server import free_ports


@pytest.fixture(autouse=True)
def without_temporal(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("TEMPORAL_ADDRESS", f"127.0.0.1:{port}")

"""The development server is started again where it ends at once: it chooses some of its ports itself."""

from pathlib import Path

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.cli.demo import temporal_server


def a_command(folder: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> Path:
    """A `temporal` that ends with an error so many times before it runs; and where it counts its starts."""
    real, starts, command = temporal_server.temporal_binary(), folder / "starts", folder / "temporal"
    command.write_text(
        f'#!/bin/sh\necho started >> {starts}\n[ "$(wc -l < {starts})" -gt {failing} ] || exit 1\nexec {real} "$@"\n'
    )
    command.chmod(0o755)
    monkeypatch.setattr(temporal_server, "temporal_binary", lambda: command)
    return starts


@pytest.mark.temporal
async def test_a_server_that_ends_at_once_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice in a row a port was taken; the third one answers."""
    starts = a_command(tmp_path, monkeypatch, failing=2)
    server = await temporal_server.start_temporal(tmp_path)
    try:
        assert await (await server.client()).count_workflows()
    finally:
        server.stop()
    assert starts.read_text().count("started") == 3


async def test_a_server_that_never_starts_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After three starts it is no accident."""
    starts = a_command(tmp_path, monkeypatch, failing=9)
    with pytest.raises(CommandFailed, match=r"the Temporal server ended with 1; see temporal\.log"):
        await temporal_server.start_temporal(tmp_path)
    assert starts.read_text().count("started") == 3

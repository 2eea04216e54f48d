"""What Temporal keeps of a failed try fits within what it shows."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter

from dovetail.activities.shared.every_step.temporal_errors import translate
from dovetail.codecs.aes_gcm import from_folder
from dovetail.connection.codec import with_codec
from dovetail.ports.failures import Postponed
from dovetail.workflows.converter import DATA_CONVERTER

SHOWN_BYTES: Final = 4096  # limit.mutableStateActivityFailureSizeLimit.error of a Temporal server


def deep(levels: int, message: str) -> None:
    """Fails as a step does, below that many calls, with causes one below the other."""
    if levels:
        deep(levels - 1, message)
        return
    try:
        try:
            raise ValueError(message)
        except ValueError as error:
            raise RuntimeError(message) from error
    except RuntimeError as error:
        raise Postponed("NodeClaim/a", message, 5.0) from error


async def written(converter: DataConverter, levels: int, message: str) -> Failure:
    """As the interceptor around each step raises it and the worker sends it."""
    found = Failure()
    try:
        try:
            deep(levels, message)
        except Postponed as error:
            raise translate(error) from error
    except Exception as error:
        await converter.encode_failure(error, found)
    return found


async def test_a_long_trace_does_not_hide_why_a_step_waits() -> None:
    """TRM-37: what holds a Node stands in the failure of the step that waits for it."""
    why = "it stays until its Node is gone: Node n is held by the finalizer example.com/hold"

    found = await written(DATA_CONVERTER, 60, why)

    assert found.message == f"NodeClaim/a: {why}"
    assert "test_short_failures.py" in found.stack_trace
    assert found.cause.application_failure_info.type == "Postponed"
    assert found.ByteSize() < SHOWN_BYTES


@given(message=st.text(max_size=6000), levels=st.integers(0, 80))
@pytest.mark.parametrize("hidden", [False, True])
async def test_no_failure_is_longer_than_what_temporal_shows(
    tmp_path_factory: pytest.TempPathFactory, hidden: bool, message: str, levels: int
) -> None:
    """With a codec too, whose key makes the texts longer."""
    converter = DATA_CONVERTER
    if hidden:
        keys = tmp_path_factory.mktemp("keys")
        (keys / "a").write_text("QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")
        (keys / "current").write_text("a")
        converter = with_codec(from_folder(keys))

    found = await written(converter, levels, message)

    assert found.ByteSize() < SHOWN_BYTES
    assert (found.message == "Encoded failure") == hidden

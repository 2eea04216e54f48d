"""Keeps failures so short that Temporal shows them.

For a step that is retried Temporal keeps the last failure only up to 4 KiB; of a longer one it shows only that it was
too long. With our interceptors and the SDK's, stack traces are longer than that, and then nobody would see who holds a
node. The whole trace is in the worker's log.
"""

from typing import Final

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, PayloadConverter

MESSAGE_BYTES: Final = 900
STACK_BYTES: Final = 500  # the frames in which it happened
_CUT: Final = "…"


class ShortFailures(DefaultFailureConverter):
    """The SDK's converter, with bounded texts and one cause. `hides`: texts are put into a payload, for a codec."""

    hides = False

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """As the SDK does, then shortened; a cause is made by the same method. A failure from Temporal is passed on
        unchanged: it was shortened when it was made."""
        super().to_failure(exception, payload_converter, failure)
        if getattr(exception, "failure", None) is None:
            failure.message = _head(failure.message)
            failure.stack_trace = _tail(failure.stack_trace)
            if failure.HasField("cause"):
                failure.cause.ClearField("cause")
        if self.hides:
            texts = {"message": failure.message, "stack_trace": failure.stack_trace}
            failure.encoded_attributes.CopyFrom(payload_converter.to_payloads([texts])[0])
            failure.message, failure.stack_trace = "Encoded failure", ""


class ShortHiddenFailures(ShortFailures):
    """The same if a codec is used."""

    hides = True


def _head(text: str) -> str:
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= MESSAGE_BYTES else encoded[:MESSAGE_BYTES].decode(errors="ignore") + _CUT


def _tail(text: str) -> str:
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= STACK_BYTES else _CUT + encoded[-STACK_BYTES:].decode(errors="ignore")

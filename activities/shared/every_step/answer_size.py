"""The last line of defence against an answer that the server refuses for its size.

Plans are cut far below this limit. An answer that is larger all the same fails its step by name; otherwise the server
would refuse it again and again without naming the step.
"""

from typing import Any

from temporalio import activity
from temporalio.worker import ExecuteActivityInput

from dovetail.activities.around_steps import AroundSteps, GoOn
from dovetail.messages.sizes import PAYLOAD_BYTES


class AnswerTooLarge(Exception):
    """A step's answer is larger than Temporal accepts."""


class AnswerSizeGuard(AroundSteps):
    async def around(self, input: ExecuteActivityInput, go_on: GoOn) -> Any:
        answer = await go_on(input)
        size = 0 if answer is None else len(activity.payload_converter().to_payload(answer).data)
        if size > PAYLOAD_BYTES:
            step = activity.info().activity_type
            raise AnswerTooLarge(
                f"the answer of step {step} has {size} bytes; the most that can be sent is {PAYLOAD_BYTES}"
            )
        return answer

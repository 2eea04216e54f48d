"""The last line of defence against an answer that the server refuses for its size.

Plans are cut far below this limit. An answer that is larger all the same fails its step by name; otherwise the server
would refuse it again and again without naming the step.
"""

from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.messages.sizes import PAYLOAD_BYTES


class AnswerTooLarge(Exception):
    """A step's answer is larger than Temporal accepts."""


class AnswerSizeGuard(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next)


class _Inbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        answer = await super().execute_activity(input)
        size = 0 if answer is None else len(activity.payload_converter().to_payload(answer).data)
        if size > PAYLOAD_BYTES:
            step = activity.info().activity_type
            raise AnswerTooLarge(
                f"the answer of step {step} has {size} bytes; the most that can be sent is {PAYLOAD_BYTES}"
            )
        return answer

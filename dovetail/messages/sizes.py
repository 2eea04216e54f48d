"""How large may be what crosses Temporal?

The server refuses a payload of more than 2 MiB, and terminates a workflow whose task brings more than 4 MiB. Plans are
cut far below that, so that whatever is made of a plan fits as well: the same plan in the request for its second look,
its commands in the inputs of the workflows that carry them out. Sizes are those of the encoded JSON, never estimates.
"""

from typing import Final

import orjson

PAYLOAD_BYTES: Final = 512 * 1024  # what one step is asked or answers
TASK_BYTES: Final = 1024 * 1024  # what a workflow asks for in one workflow task
PLAN_BYTES: Final = 200 * 1024  # of a disruption plan, with its lists of instance types
LAUNCH_PLAN_BYTES: Final = 320 * 1024  # of a plan for pending pods; nothing but its NodeClaims is made of it
HELD_BYTES: Final = 192 * 1024  # while more than this is held, no further disruption is chosen
NOMINATED_BYTES: Final = 96 * 1024  # the nominations that a request carries; with a full hold it is still a payload


def encoded_bytes(value: object) -> int:
    """The length of the JSON that crosses Temporal for it."""
    return len(orjson.dumps(value))

"""Client tokens, as EC2 documents them.

The same token with the same parameters gets the first answer again; with other parameters it is refused. moto stores
tokens and launches again (MOT-9), which would hide exactly the double launch that a durable launch must prevent. A
call that was refused launched nothing and does not use up its token.
"""

import hashlib
import json

from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json


def digest(params: Json) -> str:
    """All parameters but the token; the order of lists counts."""
    rest = {key: value for key, value in params.items() if key != "ClientToken"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()


class Tokens:
    """What was answered to each token; call under the cloud's lock."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], tuple[str, Json, Json]] = {}

    def reset(self) -> None:
        """Forget all tokens."""
        self._answers.clear()

    def first_answer(self, operation: str, params: Json) -> tuple[Json, Json] | None:
        """The answer and ledger notes of the first call with this token, if there was one."""
        found = self._answers.get((operation, params.get("ClientToken") or ""))
        if found is None:
            return None
        if found[0] != digest(params):
            raise AwsError(
                "IdempotentParameterMismatch",
                "The client token has been used with different request parameters.",
            )
        return found[1], found[2]

    def remember(self, operation: str, params: Json, answer: tuple[Json, Json]) -> None:
        """Keep the answer for the next call with this token."""
        if params.get("ClientToken"):
            self._answers[operation, params["ClientToken"]] = (digest(params), *answer)

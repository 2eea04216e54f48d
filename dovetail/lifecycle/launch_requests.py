"""What was asked of the cloud for this claim, and under which token?

The request and a generation are frozen on the claim before the call, so that every retry, in whatever process, repeats
the same call under the same token and launches nothing twice (DUR-1). The generation rises only when the cloud has said
that it made nothing: the cloud refuses one token with two different requests, and two tokens for one request would
launch two instances.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.model.names import LAUNCH_REQUEST
from dovetail.model.nodes import NodeClaim


class UnreadableRequest(ValueError):
    """The annotation on the claim is no launch request of ours; guessing one could launch a second instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """A frozen request. An empty `request` stands for: this generation has not been prepared yet."""

    generation: int
    request: str = ""


def frozen_request(claim: NodeClaim) -> LaunchRequest:
    """The request on the claim; generation 1, unprepared, where there is none."""
    text = claim.annotations.get(LAUNCH_REQUEST)
    if text is None:
        return LaunchRequest(generation=1)
    try:
        found = json.loads(text)
        return LaunchRequest(generation=int(found["generation"]), request=str(found["request"]))
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise UnreadableRequest(f"annotation {LAUNCH_REQUEST} is not readable: {error}") from error


def request_text(request: LaunchRequest) -> str:
    return json.dumps({"generation": request.generation, "request": request.request}, separators=(",", ":"))


def launch_token(claim_uid: str, generation: int) -> str:
    """The idempotency token: 64 hexadecimal characters, the most that the cloud takes."""
    return hashlib.sha256(f"{claim_uid}/{generation}".encode()).hexdigest()


def missing_labels(claim: NodeClaim, provider: Mapping[str, str]) -> dict[str, str]:
    """LIF-13: what the provider knows and the claim does not say; the claim's own labels win."""
    return {key: value for key, value in sorted(provider.items()) if key not in claim.labels}


def changed_annotations(claim: NodeClaim, provider: Mapping[str, str]) -> dict[str, str]:
    """LIF-13: the provider's annotations, which win over the claim's."""
    return {key: value for key, value in sorted(provider.items()) if claim.annotations.get(key) != value}

"""What was asked of the cloud for this claim, and under which token?

The request and a generation are frozen on the claim before the call, so that every retry, in whatever process, repeats
the same call under the same token and launches nothing twice (DUR-1). The generation rises only when the cloud has said
that it made nothing: the cloud refuses one token with two different requests, and two tokens for one request would
launch two instances.

Claims that ask for the same at the same time may be launched by one call, as a group. Each then has a share: the group,
its own number in it, and which claim is the first. The record of the first, written after all others', decides: with it
the group is called, by anyone who has a share, with the same token and as often as needed; if the first's record
becomes another, the group never was called and never will be.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from dovetail.model.names import LAUNCH_REQUEST
from dovetail.model.nodes import NodeClaim


class UnreadableRequest(ValueError):
    """The annotation on the claim is no launch request of ours; guessing one could launch a second instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShare:
    """One claim's part in a launch of several."""

    group: str  # never used again
    number: int  # of the claim in it, from 0; instances are given in this order
    size: int
    first: str  # the name of the claim with number 0
    first_uid: str
    generation: int  # of the first's request


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """A frozen request. An empty `request` stands for: this generation has not been prepared yet."""

    generation: int
    request: str = ""
    share: GroupShare | None = None
    led: tuple[str, ...] = ()  # the groups of which the claim was the first, and that have launched

    def after(self, *, launched: bool = False) -> "LaunchRequest":
        """The next generation. That a group has launched stays known as long as its first claim is there; one that has
        launched nothing is not called again."""
        own = (self.share.group,) if launched and self.share is not None and self.share.number == 0 else ()
        return LaunchRequest(generation=self.generation + 1, led=(*self.led, *own))


def frozen_request(claim: NodeClaim) -> LaunchRequest:
    """The request on the claim; generation 1, unprepared, where there is none."""
    text = claim.annotations.get(LAUNCH_REQUEST)
    if text is None:
        return LaunchRequest(generation=1)
    try:
        found = json.loads(text)
        generation, led = int(found["generation"]), tuple(str(each) for each in found.get("led", ()))
        if "group" not in found:
            return LaunchRequest(generation=generation, request=str(found["request"]), led=led)
        share = GroupShare(**found["share"])
        return LaunchRequest(generation=generation, request=str(found["group"]), share=share, led=led)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise UnreadableRequest(f"annotation {LAUNCH_REQUEST} is not readable: {error}") from error


def request_text(request: LaunchRequest) -> str:
    """A share's request stands under another key: a version that knows no groups launches nothing for it."""
    body: dict[str, object] = {"generation": request.generation}
    if request.share is None:
        body["request"] = request.request
    else:
        body |= {"group": request.request, "share": asdict(request.share)}
    if request.led:
        body["led"] = request.led
    return json.dumps(body, separators=(",", ":"))


def launch_token(claim_uid: str, generation: int) -> str:
    """The idempotency token: 64 hexadecimal characters, the most that the cloud takes."""
    return hashlib.sha256(f"{claim_uid}/{generation}".encode()).hexdigest()


def token_of(claim: NodeClaim, request: LaunchRequest) -> str:
    """The token of the call that the claim's request stands for."""
    if request.share is not None:
        return launch_token(f"group {request.share.group}", 1)
    return launch_token(claim.uid, request.generation)


def group_of(claim: NodeClaim) -> str:
    """The group in which the claim has a share; empty if it has none."""
    try:
        share = frozen_request(claim).share
    except UnreadableRequest:
        return ""
    return "" if share is None else share.group


def is_called(share: GroupShare, first: NodeClaim) -> bool | None:
    """Whether the group is to be called, by the record of its first claim; None if that is not decided yet."""
    try:
        record = frozen_request(first)
    except UnreadableRequest:
        return None  # somebody's edit; what it was is not guessed
    if share.group in record.led or (record.share is not None and record.share.group == share.group):
        return True
    open_still = record.generation == share.generation and not record.request and first.deleting_since is None
    return None if open_still else False


def missing_labels(claim: NodeClaim, provider: Mapping[str, str]) -> dict[str, str]:
    """LIF-13: what the provider knows and the claim does not say; the claim's own labels win."""
    return {key: value for key, value in sorted(provider.items()) if key not in claim.labels}


def changed_annotations(claim: NodeClaim, provider: Mapping[str, str]) -> dict[str, str]:
    """LIF-13: the provider's annotations, which win over the claim's."""
    return {key: value for key, value in sorted(provider.items()) if claim.annotations.get(key) != value}

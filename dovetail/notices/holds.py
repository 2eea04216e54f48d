"""Notices about held drains: what is done about them, and what people have decided."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.pods import Pod
from dovetail.notices.about import STANDING_WINDOW, notice_about
from dovetail.notices.notice import Notice

NAMED: Final = 5  # pods that get a notice, each with its owner
OWNERS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job")


def drain_held(nodes: Iterable[Node], pods: Iterable[Pod], words: str) -> Iterator[Notice]:
    """On the Node, on the pods that hold it, and on their owners, so that people find it on any of these."""
    for node in nodes:
        yield notice_about(node, "DrainHeld", f"Its drain is {words}", "Warning", distinct=words)
    seen = set[str]()
    for pod in list(pods)[:NAMED]:
        message = f"It holds the drain of node {pod.node_name}, which is {words}"
        yield notice_about(pod, "DrainHeld", message, "Warning", distinct=words)
        owner = next((each for each in pod.owners if each.controller and each.kind in OWNERS), None)
        if owner is not None and owner.uid not in seen:
            seen.add(owner.uid)
            yield Notice(
                kind=owner.kind,
                name=owner.name,
                namespace=pod.namespace,
                uid=owner.uid,
                type="Warning",
                reason="DrainHeld",
                message=f"Its pod {pod.name} holds the drain of node {pod.node_name}, which is {words}",
                distinct=words,
            )


def answers_of(claim: NodeClaim) -> str:
    """What a person can say of it, in words: one command with all of them would be a pipeline that forces."""
    return "wait, force or cancel" if claim.deleting_since is None else "wait or force"


def drain_asks(nodes: Iterable[Node], claim: NodeClaim, words: str) -> Iterator[Notice]:
    for node in nodes:
        message = f"Its drain is {words}: say {answers_of(claim)}, as in `dovetail decide {claim.name} wait 6h`"
        yield notice_about(node, "DrainAsks", message, "Warning", distinct=words)


def drain_forced(nodes: Iterable[Node], words: str, reach: str) -> Iterator[Notice]:
    """The ladder forces it. `reach`: by when, and what it does not end."""
    for node in nodes:
        message = f"Its drain is {words}: {reach}"
        yield notice_about(node, "DrainForced", message, "Warning", distinct=words)


def decided(claim: NodeClaim, words: str, becomes: str) -> Notice:
    """The answer to a person's decision."""
    message = f"Decided: {words}: {becomes}"
    return notice_about(claim, "DrainDecided", message, distinct=message)


def not_decided(claim: NodeClaim, words: str, why: str) -> Notice:
    """The decision is not carried out."""
    message = f"Not decided: {words}: {why}"
    return notice_about(claim, "DecisionRefused", message, "Warning", distinct=message)


def denied_too_late(claim: NodeClaim, words: str) -> Notice:
    """A hook denies what can no longer be undone."""
    message = f"It is being deleted already: {words}"
    return replace(notice_about(claim, "HookDeniesTooLate", message, "Warning", distinct=words), window=STANDING_WINDOW)

"""Whose pods the nodes of a command are for: the namespaces among which the record divides what it saves or costs.

A node counts by its price, and its pods by what they request, averaged over the resources that any of them requests.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.messages.plans import NOBODY, OTHERS, Share
from dovetail.model.pods import Pod
from dovetail.model.values.resources import PODS

MOST_NAMESPACES: Final = 10  # that a command names; all others share one entry
_DIGITS: Final = 4


def shares_of(candidates: Sequence[Candidate]) -> tuple[Share, ...]:
    """The largest first; they add up to one. None if all nodes are empty, which the targets already show."""
    if not any(candidate.pods for candidate in candidates):
        return ()
    priced = sum(candidate.price for candidate in candidates)
    found: dict[str, float] = {}
    for candidate in candidates:
        weight = candidate.price / priced if priced > 0 else 1 / len(candidates)
        for namespace, share in _on_one(candidate.pods).items():
            found[namespace] = found.get(namespace, 0.0) + weight * share
    return tuple(_bounded(found))


def _bounded(found: Mapping[str, float]) -> Iterator[Share]:
    named = sorted((each for each in found.items() if each[0] != NOBODY), key=lambda each: (-each[1], each[0]))
    others = sum(share for _, share in named[MOST_NAMESPACES:])
    for namespace, share in (*named[:MOST_NAMESPACES], (OTHERS, others), (NOBODY, found.get(NOBODY, 0.0))):
        rounded = round(share, _DIGITS)
        if rounded > 0:
            yield Share(namespace=namespace, share=rounded)


def _on_one(pods: Sequence[Pod]) -> dict[str, float]:
    """The shares on one node. Pods that request nothing count by their number."""
    if not pods:
        return {NOBODY: 1.0}
    by_namespace: dict[str, dict[str, int]] = {}
    for pod in pods:
        amounts = by_namespace.setdefault(pod.namespace, {})
        for resource, amount in pod.requests.items():
            amounts[resource] = amounts.get(resource, 0) + amount
    asked = sorted({resource for amounts in by_namespace.values() for resource in amounts})
    totals = {resource: sum(amounts.get(resource, 0) for amounts in by_namespace.values()) for resource in asked}
    counted = [resource for resource in asked if resource != PODS and totals[resource] > 0] or [PODS]
    return {
        namespace: sum(amounts.get(resource, 0) / totals[resource] for resource in counted) / len(counted)
        for namespace, amounts in by_namespace.items()
    }

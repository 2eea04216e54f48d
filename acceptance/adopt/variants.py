"""States that a crash can leave and that no recording holds: each is a recorded one with one write more, or one less.

A recorder sees a cluster between two requests of Karpenter's; which of two requests came first differs from version to
version, and a person may delete one of two objects. So the recorded order is not the only one that must be taken over.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Final

from acceptance.adopt.looking import is_deleting, provider_id
from acceptance.adopt.states import State
from dovetail.model import names
from dovetail.model.values.json import Json

_STAGES: Final = (names.DRAINED, names.VOLUMES_DETACHED, names.INSTANCE_TERMINATING)


def _without(body: Json, *kinds: str) -> None:
    body["status"]["conditions"] = [c for c in body["status"]["conditions"] if c["type"] not in kinds]


def _kept(body: Json) -> None:
    """As if it had not been deleted."""
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        body["metadata"].pop(field, None)


def _claim(state: State, wanted: Callable[[Json], bool]) -> Json:
    return next(claim for claim in state.every("NodeClaim") if wanted(claim))


def _node_of(state: State, claim: Json) -> Json:
    return next(n for n in state.every("Node") if n["spec"].get("providerID") == provider_id(claim))


def _is_marked(claim: Json) -> bool:
    return any(c["type"] == names.DISRUPTION_REASON for c in claim.get("status", {}).get("conditions") or [])


def _taint_only(state: State) -> None:
    """Marked by the taint alone: the condition was not written yet."""
    _without(_claim(state, _is_marked), names.DISRUPTION_REASON)


def _condition_only(state: State) -> None:
    """Marked by the condition alone: a person took the taint off."""
    node = _node_of(state, _claim(state, _is_marked))
    node["spec"]["taints"] = [t for t in node["spec"].get("taints") or [] if t["key"] != names.DISRUPTED_TAINT]


def _node_only(state: State) -> None:
    """A node is deleted; its claim is not yet (TRM-4)."""
    claim = _claim(state, is_deleting)
    _kept(claim)
    _without(claim, *_STAGES)


def _claim_only(state: State) -> None:
    """A claim is deleted; its node is neither deleted nor tainted yet (LIF-52)."""
    claim = _claim(state, is_deleting)
    node = _node_of(state, claim)
    _kept(node)
    node["spec"]["taints"] = []
    _without(claim, *_STAGES)


def _no_finalizer(state: State) -> None:
    """Claims in their first moment: no finalizer, nothing launched (LIF-1, LIF-7)."""
    for claim in state.every("NodeClaim"):
        claim["metadata"]["finalizers"] = []
    state.instances.clear()


def _half_registered(state: State) -> None:
    """The node is registered, the claim does not say so (DUR-5)."""
    for claim in state.every("NodeClaim"):
        claim["status"].pop("nodeName", None)
        for condition in claim["status"]["conditions"]:
            if condition["type"] != names.LAUNCHED:
                condition |= {"status": "Unknown", "reason": "AwaitingReconciliation"}


def _unlaunched_leaving(state: State) -> None:
    """A claim is deleted while its launch is under way (DUR-3)."""
    metadata = state.every("NodeClaim")[0]["metadata"]
    metadata |= {
        "finalizers": [names.TERMINATION_FINALIZER],
        "deletionTimestamp": metadata["creationTimestamp"],
        "deletionGracePeriodSeconds": 0,
    }


def _late_claim(state: State) -> None:
    """Node and instance are gone; the claim knows of neither (DUR-16)."""
    _without(_claim(state, is_deleting), names.INSTANCE_TERMINATING, names.VOLUMES_DETACHED)


# name -> the recorded state that it is made of, and what is changed
VARIANTS: Final[dict[str, tuple[str, Callable[[State], None]]]] = {
    "taint-only": ("drift-15", _taint_only),
    "condition-only": ("drift-15", _condition_only),
    "node-only": ("drain-15", _node_only),
    "claim-only": ("drain-15", _claim_only),
    "no-finalizer": ("launch-01", _no_finalizer),
    "half-registered": ("launch-07", _half_registered),
    "unlaunched-leaving": ("launch-01", _unlaunched_leaving),
    "late-claim": ("drain-19", _late_claim),
}


def variant(name: str, recorded: dict[str, State]) -> State:
    """That state."""
    base, change = VARIANTS[name]
    found = recorded[base]
    state = replace(
        found, id=f"variant-{name}", objects=deepcopy(found.objects), instances=deepcopy(list(found.instances))
    )
    change(state)
    return state

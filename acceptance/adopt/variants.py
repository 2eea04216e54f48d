"""States that a crash can leave and that no recording holds: each is a recorded one with one write more, or one less.

A recorder sees a cluster between two requests of Karpenter's; which of two requests came first differs from version to
version, and a person may delete one of two objects. So the recorded order is not the only one that must be taken over.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Final

from acceptance.adopt.looking import is_deleting, is_true, provider_id
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


# What core 1.15.0 writes, in its order: disruption/queue.go, disruption/repair.go, nodeclaim/reboot/controller.go.


def _repair_marked(state: State) -> None:
    """1.15 marked it for repair and was waiting for its replacement."""
    claim = _claim(state, _is_marked)
    for condition in claim["status"]["conditions"]:
        if condition["type"] == names.DISRUPTION_REASON:
            condition |= {"reason": "Unhealthy", "message": "Unhealthy"}
    fault = {"type": "StorageReady", "status": "False", "reason": "IODelays", "message": ""}
    node = _node_of(state, claim)
    node["status"]["conditions"].append({**fault, "lastTransitionTime": claim["metadata"]["creationTimestamp"]})


def _repair_bounded(state: State) -> None:
    """1.15 writes the end of a repair's drain before the delete: it wrote that, and deleted nothing."""
    _repair_marked(state)
    claim = _claim(state, _is_marked)
    annotations = claim["metadata"]["annotations"]
    annotations[names.TERMINATION_DEADLINE] = claim["metadata"]["creationTimestamp"]


def _repair_bounded_unmarked(state: State) -> None:
    """The same, after a start of 1.15 that took the mark off and left the end there."""
    _repair_bounded(state)
    claim = _claim(state, _is_marked)
    _node_of(state, claim)["spec"]["taints"] = []
    _without(claim, names.DISRUPTION_REASON)


def _reboot_requested(state: State) -> None:
    """A reboot was asked for; its pods were leaving."""
    _rebooting(state, "RebootRequested")
    claim = state.every("NodeClaim")[0]
    claim["metadata"]["annotations"][names.REBOOT_GRACE] = "5m0s"


def _reboot_unbounded(state: State) -> None:
    """The same by a policy without a bound, for a claim without one: 1.15 writes no annotation then."""
    _rebooting(state, "RebootRequested")


def _reboot_noted(state: State) -> None:
    """The bound is written; the condition is not yet."""
    state.every("NodeClaim")[0]["metadata"]["annotations"][names.REBOOT_GRACE] = "5m0s"


def _reboot_issued(state: State) -> None:
    """The cloud took it, and the machine is up again: its node counts as not initialised until somebody sees that."""
    _rebooting(state, "RebootIssued")
    claim = state.every("NodeClaim")[0]
    claim["metadata"]["annotations"] |= {names.REBOOT_GRACE: "5m0s", names.PRE_BOOT_ID: "the-boot-before"}
    for condition in claim["status"]["conditions"]:
        if condition["type"] == names.INITIALIZED_CONDITION:
            condition |= {"status": "Unknown", "reason": "Rebooting", "message": "node is rebooting"}
    del _node_of(state, claim)["metadata"]["labels"][names.INITIALIZED]


def _rebooting(state: State, reason: str) -> None:
    claim = state.every("NodeClaim")[0]
    since = claim["status"]["conditions"][-1]["lastTransitionTime"]
    for kind, why in ((names.REBOOTING, reason), (names.DISRUPTION_REASON, "Unhealthy")):
        condition = {"type": kind, "status": "True", "reason": why, "message": why, "lastTransitionTime": since}
        claim["status"]["conditions"].append(condition)
    taint = {"key": names.REBOOTING_TAINT, "effect": "NoSchedule"}
    _node_of(state, claim)["spec"].setdefault("taints", []).append(taint)


def _first_marked(state: State) -> None:
    """A static NodePool at its limit: one node was marked to leave before its replacement, and not deleted yet."""
    pool = state.every("NodePool")[0]
    pool["spec"] |= {"replicas": 3, "limits": {"nodes": "3"}}
    marked = _claim(state, _is_marked)
    claims = [each for each in state.every("NodeClaim") if is_true(each, names.INITIALIZED_CONDITION)]
    extra = {provider_id(each) for each in state.every("NodeClaim") if each not in claims}
    state.objects["NodeClaim"] = claims
    state.objects["Node"] = [each for each in state.every("Node") if each["spec"].get("providerID") not in extra]
    state.instances[:] = [each for each in state.instances if f"aws:///{each['zone']}/{each['id']}" not in extra]
    assert marked in claims


def _first_leaving(state: State) -> None:
    """The same, deleted; nothing was made in its place."""
    _first_marked(state)
    marked = _claim(state, _is_marked)
    since = {"deletionTimestamp": marked["status"]["conditions"][-1]["lastTransitionTime"]}
    for body in (marked, _node_of(state, marked)):
        body["metadata"] |= {**since, "deletionGracePeriodSeconds": 0}


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
    "repair-marked": ("drift-15", _repair_marked),
    "repair-bounded": ("drift-15", _repair_bounded),
    "repair-bounded-unmarked": ("drift-15", _repair_bounded_unmarked),
    "reboot-requested": ("launch-09", _reboot_requested),
    "reboot-unbounded": ("launch-09", _reboot_unbounded),
    "reboot-noted": ("launch-09", _reboot_noted),
    "reboot-issued": ("launch-09", _reboot_issued),
    "first-marked": ("drift-15", _first_marked),
    "first-leaving": ("drift-15", _first_leaving),
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

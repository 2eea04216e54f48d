"""Which workflow may ask for which step.

Only one running workflow can have an id, so a foreign workflow cannot have the id of one of ours that still runs. That
is no proof by itself, since anybody can take an id that is free: steps that end or change a node check the live objects
as well.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from temporalio import activity

from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import (
    caretaker_id,
    claim_owner_id,
    disruption_id,
    interruptions_id,
    node_owner_id,
    scheduler_id,
)

# Cluster, and what the step is given -> the ids that may ask, or how they begin where they end with a slash.
Askers = Callable[[str, Any], tuple[str, ...]]


def _scheduler(cluster: str, given: object) -> tuple[str, ...]:
    return (scheduler_id(cluster),)


def _caretaker(cluster: str, given: object) -> tuple[str, ...]:
    return (caretaker_id(cluster),)


def _reader(cluster: str, given: object) -> tuple[str, ...]:
    return (interruptions_id(cluster),)


def _answer(cluster: str, given: object) -> tuple[str, ...]:
    return (f"{interruptions_id(cluster)}/",)


def _disruption(cluster: str, given: object) -> tuple[str, ...]:
    return (disruption_id(cluster, ""),)


def _owner_of_claim(cluster: str, given: ClaimRef) -> tuple[str, ...]:
    return (claim_owner_id(cluster, given.name),)


def _owner(cluster: str, given: Departure) -> tuple[str, ...]:
    """The owner of the claim that leaves, or of the node that has none."""
    if given.claim.uid:
        return (claim_owner_id(cluster, given.claim.name),)
    return tuple(node_owner_id(cluster, node) for node in given.nodes)


ASKERS: Final[Mapping[str, Askers]] = {
    "await_provisioning_plan": _scheduler,
    "await_disruption_plan": _scheduler,
    "await_marked": _scheduler,
    "await_orders": _caretaker,
    "keep_up": _caretaker,
    "start_owner": _caretaker,
    "start_release": _caretaker,
    "take_off_mark": _caretaker,
    "delete_claim_for": _caretaker,
    "reboot_node": _caretaker,
    "terminate_orphan": _caretaker,
    "watch_interruptions": _reader,
    "answer_interruptions": _answer,
    "tell_interruptions": _answer,
    "mark_nodes": lambda cluster, given: (given.owner,) if given.owner.startswith(disruption_id(cluster, "")) else (),
    "unmark_nodes": lambda cluster, given: (given.owner,) if given.owner.startswith(disruption_id(cluster, "")) else (),
    "give_back": lambda cluster, given: (disruption_id(cluster, given.plan_id),),
    "await_ready": _disruption,
    "await_gone": _disruption,
    "delete_claims": _disruption,
    "delete_claim": lambda cluster, given: (claim_owner_id(cluster, given.name), disruption_id(cluster, "")),
    "create_node_claims": lambda cluster, given: (
        scheduler_id(cluster),
        caretaker_id(cluster),
        disruption_id(cluster, given.plan_id),
    ),
    "launch_instance": _owner_of_claim,
    "await_joined": _owner_of_claim,
    "await_initialized": _owner_of_claim,
    "begin_departure": _owner_of_claim,
    "begin_release": lambda cluster, given: (node_owner_id(cluster, given.node),),
    "drain_node": lambda cluster, given: (*_owner(cluster, given), disruption_id(cluster, "")),
    "await_detached": _owner,
    "terminate_instance": _owner,
    "release_claim": _owner,
    "release_node": _owner,
    "publish": lambda cluster, given: (
        (claim_owner_id(cluster, "") if given.reason == "UnregisteredTaintMissing" else disruption_id(cluster, "")),
    ),
    "judge_version": lambda cluster, given: ("",),
}


# What a disruption begins or undoes because the Scheduler has decided it: the Scheduler must have begun the one that
# asks, and while it runs nobody else has its id. Anybody can take the id of a disruption that is over.
DECIDED: Final = frozenset(
    {"mark_nodes", "give_back", "create_node_claims", "delete_claim", "delete_claims", "publish"}
)


def begun_by(cluster: str, step: str, workflow_id: str) -> str | None:
    """The id of the workflow that must have begun the one that asks; None where it may have been begun by anybody."""
    is_decided = step in DECIDED and workflow_id.startswith(disruption_id(cluster, ""))
    return scheduler_id(cluster) if is_decided else None


def may_ask(cluster: str, step: str, given: object, workflow_id: str) -> bool:
    """Whether the workflow of that id may ask for the step with that input. A step without an entry is refused to
    all."""
    askers = ASKERS.get(step)
    allowed = askers(cluster, given) if askers is not None else ()
    return any(workflow_id == one or (one[-1:] in ("", "/") and workflow_id.startswith(one)) for one in allowed)


def asked_by(owner: str) -> bool:
    """Whether the workflow of that id has. For what this process does by itself, no workflow has."""
    return not activity.in_activity() or activity.info().workflow_id == owner

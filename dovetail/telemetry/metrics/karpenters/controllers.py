"""Upstream's names of controllers: dashboards and alerts filter by them.

Karpenter's work is divided into controllers, ours into steps. Each step is listed under the controller that does the
same there, so that `controller="disruption"` finds what people look for.
"""

from typing import Final

CONTROLLERS: Final = {
    "await_provisioning_plan": "provisioner",
    "create_node_claims": "provisioner",
    "launch_instance": "nodeclaim.lifecycle",
    "await_joined": "nodeclaim.lifecycle",
    "await_initialized": "nodeclaim.lifecycle",
    "terminate_instance": "nodeclaim.lifecycle",
    "release_claim": "nodeclaim.lifecycle",
    "await_disruption_plan": "disruption",
    "mark_nodes": "disruption.queue",
    "await_marked": "disruption.queue",
    "await_ready": "disruption.queue",
    "delete_claims": "disruption.queue",
    "delete_claim": "disruption.queue",
    "unmark_nodes": "disruption.queue",
    "give_back": "disruption.queue",
    "publish": "disruption.queue",
    "await_gone": "disruption.queue",
    "begin_departure": "node.termination",
    "begin_release": "node.termination",
    "drain_node": "node.termination",
    "await_detached": "node.termination",
    "release_node": "node.termination",
    "await_orders": "nodeclaim.garbagecollection",
    "terminate_orphan": "nodeclaim.garbagecollection",
    "delete_claim_for": "nodeclaim.garbagecollection",
    "reboot_node": "nodeclaim.reboot",
    "take_off_mark": "nodeclaim.garbagecollection",
    "start_owner": "nodeclaim.lifecycle",
    "start_release": "node.termination",
    "keep_up": "nodeclaim.disruption",
    "watch_interruptions": "interruption",
    "answer_interruptions": "interruption",
    "tell_interruptions": "interruption",
    "judge_version": "gate",  # upstream has nothing like it
}


def controller_of(step: str) -> str:
    """Upstream's controller for a step; a step without one keeps its own name, so that every step has a controller."""
    return CONTROLLERS.get(step, step)

"""Every log line about what was done: its message, its controller, its fields.

Messages, field names and their order are Karpenter's if it does the same, because people search for them and programs
parse them: patterns such as those of LogParserForKarpenter want one field directly after another, and some want a
certain field at the end of the line. What Karpenter does not do has our own words. `docs/reference/logs.md` is
generated from this list.
"""

import logging
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["", "NodeClaim", "Node"]

# The API groups of the objects that lines are about.
GROUPS: Final = {"NodeClaim": "karpenter.sh", "Node": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One kind of line. `about`: the kind of the object whose name precedes the fields; empty if a line is about
    several."""

    message: str
    controller: str  # in Karpenter's words
    about: Kind = ""
    fields: tuple[str, ...] = ()
    level: int = logging.INFO
    when: str  # for the reference
    ours: bool = False  # Karpenter has no such line


FOUND_PODS: Final = LogLine(
    message="found provisionable pod(s)",
    controller="provisioner",
    fields=("Pods", "duration"),
    when="a pass has found pods that need nodes which do not exist yet",
)
COMPUTED_CLAIMS: Final = LogLine(
    message="computed new nodeclaim(s) to fit pod(s)",
    controller="provisioner",
    fields=("nodeclaims", "pods"),
    when="directly behind it: how many nodes for how many pods",
)
PREFER_APART: Final = LogLine(
    message="pod(s) have a preferred Anti-Affinity which can prevent consolidation",
    controller="provisioner",
    fields=("pods",),
    when="pods that need a node would rather not share one: once an hour for each, if preferences count",
)
PREFER_SPREAD: Final = LogLine(
    message="pod(s) have a preferred TopologySpreadConstraint which can prevent consolidation",
    controller="provisioner",
    fields=("pods",),
    when="the same of a spread that is merely preferred",
)
CREATED_CLAIM: Final = LogLine(
    message="created nodeclaim",
    controller="provisioner",
    fields=("NodePool", "NodeClaim", "requests", "instance-types"),
    when="a NodeClaim was created; the controller is `disruption` where it replaces a node",
)
LAUNCHED_CLAIM: Final = LogLine(
    message="launched nodeclaim",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("provider-id", "instance-type", "zone", "capacity-type", "allocatable"),
    when="its instance was launched and is written down on the claim",
)
LAUNCH_FAILED: Final = LogLine(
    message="failed launching nodeclaim",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("NodePool", "reason", "error"),
    level=logging.ERROR,
    when="nothing could be launched for it, and the claim is given up",
)
REGISTERED_CLAIM: Final = LogLine(
    message="registered nodeclaim",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("provider-id", "Node"),
    when="its node has joined the cluster",
)
REGISTRATION_OVERDUE: Final = LogLine(
    message="terminating due to registration ttl",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("provider-id", "ttl"),
    level=logging.ERROR,
    when="no node of it came in time, and the claim is given up",
)
INITIALIZED_CLAIM: Final = LogLine(
    message="initialized nodeclaim",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("provider-id", "Node", "allocatable"),
    when="its node is ready for pods",
)
DISRUPTING: Final = LogLine(
    message="disrupting node(s)",
    controller="disruption",
    fields=(
        "command-id",
        "reason",
        "decision",
        "disrupted-node-count",
        "replacement-node-count",
        "pod-count",
        "disrupted-nodes",
        "replacement-nodes",
    ),
    when="a disruption begins: its marks stand",
)
UNDONE: Final = LogLine(
    message="undid disruption of node(s)",
    controller="disruption",
    fields=("command-id", "reason", "outcome", "NodeClaims", "why"),
    when="a disruption was called off, or failed, before its delete; the marks are off",
    ours=True,
)
TAINTED: Final = LogLine(
    message="tainted node",
    controller="node.termination",
    about="Node",
    fields=("NodeClaim", "taint.Key", "taint.Value", "taint.Effect"),
    when="a node was given the taint of one that leaves; the controller is `disruption` where a mark did it",
)
ANNOTATED: Final = LogLine(
    message="annotated nodeclaim",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("karpenter.sh/nodeclaim-termination-timestamp",),
    when="the moment was written at which its node must be gone",
)
DRAINED: Final = LogLine(
    message="drained node",
    controller="node.termination",
    about="NodeClaim",
    fields=("provider-id", "Node"),
    when="no pod that is to leave is on its node any more",
    ours=True,
)
TERMINATED_INSTANCE: Final = LogLine(
    message="terminated instance",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("provider-id",),
    when="the cloud says that its instance is gone",
    ours=True,
)
DELETED_NODE: Final = LogLine(
    message="deleted node",
    controller="node.termination",
    about="Node",
    fields=("NodeClaim",),
    when="the finalizer is off the Node",
)
DELETED_CLAIM: Final = LogLine(
    message="deleted nodeclaim",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("provider-id", "Node"),
    when="the finalizer is off the claim: nothing is left of it",
)
INTERRUPTED: Final = LogLine(
    message="initiating delete from interruption message",
    controller="interruption",
    fields=("messageKind", "NodeClaim", "action", "Node"),
    when="a claim is deleted because the cloud has said that its instance ends",
)
EXPIRED: Final = LogLine(
    message="deleting expired nodeclaim",
    controller="nodeclaim.expiration",
    about="NodeClaim",
    when="its time is over",
)
UNHEALTHY: Final = LogLine(
    message="deleting unhealthy node",
    controller="node.health",
    about="NodeClaim",
    fields=("condition", "why"),
    when="its node is to be repaired",
)
INSTANCE_LOST: Final = LogLine(
    message="garbage collecting nodeclaim with no cloudprovider representation",
    controller="nodeclaim.garbagecollection",
    about="NodeClaim",
    fields=("provider-id",),
    when="its instance is gone although nobody asked for that",
)
SURPLUS: Final = LogLine(
    message="deleting surplus nodeclaim",
    controller="static.deprovisioning",
    about="NodeClaim",
    when="its pool with a fixed number of nodes has one too many",
    ours=True,
)
NEVER_INITIALIZED: Final = LogLine(
    message="deleting uninitialized nodeclaim",
    controller="nodeclaim.lifecycle",
    about="NodeClaim",
    fields=("why",),
    when="its node runs nothing and has not been ready for pods for too long",
    ours=True,
)
ORPHAN: Final = LogLine(
    message="garbage collected cloudprovider instance",
    controller="instance.garbagecollection",
    fields=("provider-id",),
    when="an instance without a claim was terminated",
)

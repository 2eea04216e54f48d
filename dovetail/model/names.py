"""Every label, taint, annotation, finalizer and condition name that the product reads or writes.

Our own carry the prefix dovetail.sh and never replace one of upstream's. No other file spells one out, so that none is
misspelt.
"""

from typing import Final

# Labels
NODE_POOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"
DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
HOSTNAME: Final = "kubernetes.io/hostname"

CAPACITY_ON_DEMAND: Final = "on-demand"
CAPACITY_SPOT: Final = "spot"
CAPACITY_RESERVED: Final = "reserved"

# Taints
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"

# Annotations
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
NODE_POOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODE_POOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
PRICE_OVERLAY: Final = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY: Final = "karpenter.sh/capacity-overlay-applied"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
DEVICE_DRIVERS: Final = "karpenter.sh/requested-dra-drivers"
TERMINATION_DEADLINE: Final = "karpenter.sh/nodeclaim-termination-timestamp"
# From Karpenter before v1: they no longer mean anything, and a notice warns people.
DO_NOT_EVICT: Final = "karpenter.sh/do-not-evict"
DO_NOT_CONSOLIDATE: Final = "karpenter.sh/do-not-consolidate"
REBOOTING: Final = "Rebooting"  # a condition of the NodeClaim
REBOOTING_TAINT: Final = "karpenter.sh/rebooting"
PRE_BOOT_ID: Final = "karpenter.sh/reboot-pre-boot-id"
REBOOT_GRACE: Final = "karpenter.sh/reboot-termination-grace-period"  # as long as its instance is being rebooted
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
DISRUPTION_WINDOW: Final = "dovetail.sh/disruption-window"  # on a pod: when it may be moved
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

# On virtual pods, which exist in no API server
FAKE_POD: Final = "karpenter.sh/capacity-buffer-fake-pod"
BUFFER_NAME: Final = "karpenter.sh/capacity-buffer-name"
BUFFER_NAMESPACE: Final = "karpenter.sh/capacity-buffer-namespace"

# Finalizer, on NodeClaims and Nodes alike
TERMINATION_FINALIZER: Final = "karpenter.sh/termination"

# NodeClaim conditions
LAUNCHED: Final = "Launched"
REGISTERED_CONDITION: Final = "Registered"
INITIALIZED_CONDITION: Final = "Initialized"
CONSOLIDATABLE: Final = "Consolidatable"
DRIFTED: Final = "Drifted"
DISRUPTION_REASON: Final = "DisruptionReason"
DRAINED: Final = "Drained"
VOLUMES_DETACHED: Final = "VolumesDetached"
INSTANCE_TERMINATING: Final = "InstanceTerminating"
READY: Final = "Ready"
CLASS_READY: Final = "NodeClassReady"  # of a NodePool

# CapacityBuffer conditions
READY_FOR_PROVISIONING: Final = "ReadyForProvisioning"
PROVISIONING: Final = "Provisioning"

# Ours
OWNER: Final = "dovetail.sh/owner"
PLAN: Final = "dovetail.sh/plan"
PLANNED_PODS: Final = "dovetail.sh/planned-pods"
REMEMBERED: Final = "dovetail.sh/remembered"  # on a NodeClaim: a memory (model/own/claim_memory.py)
PLANNED_BUFFERS: Final = "dovetail.sh/planned-buffers"  # <buffer uid>=<how many of its pods>,…
REST: Final = "dovetail.sh/rest-until"
LAUNCHES_STOPPED: Final = "dovetail.sh/launches-stopped"  # on a NodePool: since when and why nothing is launched
LAUNCHES_RESUMED: Final = "dovetail.sh/launches-resumed"  # on a NodePool: what was launched before does not count
UNUSED_LAUNCHES: Final = "dovetail.sh/unused-launches"  # on a NodePool: a memory (model/values/memory.py)
POLICY: Final = "dovetail.sh/policy"  # on a NodeRollout: the DisruptionPolicy by which it was made
BREAKER: Final = "dovetail.sh/breaker"  # on a NodePool: a memory of replacements and of consolidation in vain
BEGUN: Final = "dovetail.sh/begun"  # on a NodePool: a memory
PLACEMENT: Final = "dovetail.sh/placement"  # on a NodePool: cost or default, how its new nodes are chosen
NODE_COST: Final = "dovetail.sh/node-cost"  # on a NodePool: dollars an hour that each node costs on top of its instance
PAUSED: Final = "dovetail.sh/paused"  # on a NodePool, or on the Namespace kube-system for all: what is paused
PAUSED_UNTIL: Final = "dovetail.sh/paused-until"  # when the pause ends by itself
PAUSED_BY: Final = "dovetail.sh/paused-by"
PAUSED_REASON: Final = "dovetail.sh/paused-reason"
PAUSE_ANNOTATIONS: Final = (PAUSED, PAUSED_UNTIL, PAUSED_BY, PAUSED_REASON)
CANCEL: Final = "dovetail.sh/cancel"  # on a NodeClaim: call its disruption off; the text says why
CANCEL_BY: Final = "dovetail.sh/cancel-by"  # with it: who asks
REPLACE: Final = "dovetail.sh/replace"  # on a NodeClaim: replace its node, within the budgets; the text says why
REPLACE_BY: Final = "dovetail.sh/replace-by"  # with it: who asks
REPLACE_NOW: Final = "dovetail.sh/replace-now"  # with it, "true": drain at once, outside the NodePool's budgets
REPLACE_ANNOTATIONS: Final = (REPLACE, REPLACE_BY, REPLACE_NOW)
# On a NodeClaim, also from its NodePool's template: <prefix><name>: <owner>, removed by the owner
PRE_DRAIN_HOOK: Final = "pre-drain.hook.dovetail.sh/"  # holds the first eviction
PRE_TERMINATE_HOOK: Final = "pre-terminate.hook.dovetail.sh/"  # holds the end of the instance
DECISION: Final = (
    "dovetail.sh/decision"  # on a NodeClaim whose drain is held: a person's answer: force, wait <duration> or cancel
)
DECISION_BY: Final = "dovetail.sh/decision-by"  # with it: who answers
LAUNCH_REQUEST: Final = "dovetail.sh/launch-request"
CLAIM_UID_TAG: Final = "dovetail.sh/claim-uid"
LAUNCH_GROUP_TAG: Final = "dovetail.sh/launch-group"  # on an instance that was launched with others by one call
CLUSTER_UID_TAG: Final = "dovetail.sh/cluster-uid"  # on an instance; as an annotation: the claim's instance has it
INTERRUPTED: Final = "dovetail.sh/interrupted"  # when the cloud said that it will take the instance
ENDED_BECAUSE: Final = "dovetail.sh/ended-because"  # on a NodeClaim that we delete outside a disruption: why
DRAIN_FIRST: Final = "dovetail.sh/drain-first"
REPLACE_FIRST: Final = "dovetail.sh/replace-first"
MOVE: Final = "dovetail.sh/move"  # on a Deployment or its Namespace: restart, evict or hold
MOVED: Final = "dovetail.sh/moved"  # on a Deployment's pod template: a or b, changed by each move
MOVES: Final = "dovetail.sh/moves"  # on a Deployment: a memory of the move that is under way, or that failed
REGISTRATION_HOOK: Final = "dovetail.sh/registration-hook"  # who must agree before the node counts as registered

SYSTEM_NAMESPACE: Final = "kube-system"  # there is one in every cluster, and nobody can delete it

# PLC-35: labels whose absence on a claim means "any value", because the cloud provider will fill them in.
WELL_KNOWN_LABELS: Final[frozenset[str]] = frozenset(
    {NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD}
)

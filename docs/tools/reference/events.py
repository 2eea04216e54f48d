"""The page of Events: every reason, on which object, when it comes and what to do.

A test compares it with the reasons in the code: a new one needs its line here.
"""

from typing import Final, NamedTuple

from docs.tools.reference.tables import code, table


class Said(NamedTuple):
    """One reason."""

    reason: str
    kinds: str
    when: str
    do: str = ""


WARNINGS: Final = (
    Said(
        "FailedScheduling",
        "Pod",
        "no NodePool can make a node for it",
        "`dovetail explain pod NAMESPACE/NAME` tries what would help",
    ),
    Said(
        "NoCompatibleInstanceTypes",
        "NodePool",
        "no instance type meets its requirements",
        "widen them; `dovetail plan` counts the refusals",
    ),
    Said(
        "DaemonSetsLeaveNoRoom",
        "NodePool",
        "pods would fit on an instance type but for what DaemonSets take of it",
        "lower what they request, keep them off these nodes, or allow larger types",
    ),
    Said(
        "FitsNoInstanceType",
        "DaemonSet",
        "no instance type of a NodePool whose nodes it selects has the room or the device that its pod asks for",
        "lower what it requests, or have it select the nodes that it is for",
    ),
    Said(
        "InsufficientCapacityError",
        "NodeClaim, Pod",
        "the cloud has none of the types in the zones asked for",
        "nothing: another type or zone is tried; widen the pool if it goes on",
    ),
    Said(
        "NodeClaimRefused",
        "NodePool",
        "the API server or an admission policy refuses its claims",
        "the message has the refusal's own words",
    ),
    Said(
        "LaunchesStopped",
        "NodePool",
        "launches of the last hour came to nothing",
        "find the cause, then `dovetail resume --pool NAME` ([why](../operations.md#launches-that-come-to-nothing))",
    ),
    Said(
        "ReplacementsHeld",
        "NodePool",
        "replacements were not ready in time, or did not stay so for five minutes, as often as its breaker allows",
        "mend the image or the template, or `dovetail resume --pool NAME`; one node is tried at the moment named",
    ),
    Said(
        "PlacesNotKept",
        "NodePool",
        "the worker may not nominate pods for the nodes that are made for them",
        "apply `deploy/kubernetes/places.yaml`, or set `DOVETAIL_COST_KEEP_PLACES=false` ([cost](../cost.md))",
    ),
    Said(
        "UnregisteredTaintMissing",
        "NodeClaim",
        "the node joined without the taint `karpenter.sh/unregistered`",
        "let the image's bootstrap register the node with it",
    ),
    Said(
        "FailedConsistencyCheck",
        "NodeClaim",
        "the node has less than its instance type promised",
        "look at the image and at reserved resources",
    ),
    Said(
        "FailedDraining",
        "Node",
        "pods stay, because of a PodDisruptionBudget or of `karpenter.sh/do-not-disrupt`",
        "the message names them; `dovetail history NODE` too",
    ),
    Said(
        "ApprovalRefused",
        "NodeRollout",
        "an approval lets nothing begin, and why: what it was of has changed, or it comes too late",
        "look again: `dovetail rollout approve NAME` shows what is asked now",
    ),
    Said(
        "DriftWaits",
        "Node",
        "it has drifted and has not begun to leave for seven days; said each hour, of 20 nodes of a NodePool at most",
        "the message has the rule that keeps it; `dovetail explain node NODE` says more",
    ),
    Said(
        "DrainHeld",
        "Node, Pod, its owner",
        "the same thing has held a drain for as long as the step `Notify` of a DisruptionPolicy says",
        "the message says what comes next ([a drain that is held](../guides/blocked-drains.md#the-ladder))",
    ),
    Said(
        "DrainAsks",
        "Node",
        "the same for the step `Ask`, or a hook that was waited for in vain",
        "`dovetail decide NODE force`, `wait 6h` or `cancel`",
    ),
    Said(
        "DrainForced",
        "Node",
        "the same for the step `Force`: its pods are deleted, each with its own grace period; the message says what is "
        "waited for still",
    ),
    Said(
        "DecisionRefused",
        "NodeClaim",
        "a decision about its drain cannot be understood, or would force a pod that asks not to be disrupted, or what "
        "nobody was asked about: hooks, volumes",
    ),
    Said(
        "HookDeniesTooLate",
        "NodeClaim",
        "a hook's value begins with `deny:`, and the NodeClaim is deleted already",
        "the hook's owner takes the annotation off when the node may go",
    ),
    Said(
        "MoveFailed",
        "Deployment, Node",
        "the new pod of a move did not become available; the roll-out was taken back and the old pod stays",
        "find out why the new pod does not run; change the Deployment, and it is tried again at once",
    ),
    Said(
        "MoveImpossible",
        "Pod",
        "its owner says `dovetail.sh/move: restart`, and it cannot be moved so: it is evicted",
        "the message has the reason ([one replica](../guides/moves.md#one-replica-without-downtime))",
    ),
    Said(
        "ConsolidationSlowed",
        "NodePool",
        "half or more of the nodes that consolidation took within a day were launched again, so that it rests",
        "nothing; `consolidateAfter` or a larger request keeps the room, `dovetail resume --pool NAME` ends the rest",
    ),
    Said(
        "TerminationGracePeriodExpiring",
        "NodeClaim, Node",
        "the deadline after which pods are deleted is set",
        "nothing, or move the named pods",
    ),
    Said(
        "InvalidTerminationTimestamp",
        "NodeClaim",
        "the deadline's annotation cannot be read, so that there is none",
        "take the annotation off",
    ),
    Said(
        "NodeRepairBlocked",
        "Node, NodeClaim, NodePool",
        "more than a fifth of the pool is unhealthy at once",
        "look for the common cause; repair goes on below that",
    ),
    Said(
        "RebootObserved",
        "NodeClaim",
        "its instance was rebooted for a fault that this clears, and has started anew",
        "nothing",
    ),
    Said(
        "RebootFailed",
        "NodeClaim",
        "its instance was to be rebooted, and did not come back or was not taken by the cloud",
        "nothing: the node is replaced",
    ),
    Said(
        "InvalidDoNotDisruptAnnotation",
        "Pod",
        "the value of `karpenter.sh/do-not-disrupt` is neither `true` nor a duration",
        "mend it; meanwhile it is ignored",
    ),
    Said(
        "TargetRefused",
        "NodeClass",
        "a NodeRollout goes back, or has gone back: no node of its NodePool comes to what the class asks for",
        "mend the class, or resume the roll-out ([back](../guides/roll-outs.md#stable-and-rollback))",
    ),
    Said(
        "StableImageGone",
        "NodeClaim",
        "the image of before a change cannot be launched any more; the node has that of its NodeClass",
        "keep images until the roll-outs that replace them are complete",
    ),
    Said(
        "InvalidDisruptionWindow",
        "Pod",
        "the value of `dovetail.sh/disruption-window` cannot be read",
        "mend it; meanwhile the pod is not moved",
    ),
    Said(
        "SpotInterrupted",
        "NodeClaim, Node",
        "the cloud takes the spot instance in two minutes",
        "nothing: its pods are moved",
    ),
    Said(
        "CapacityReservationInstanceInterrupted",
        "NodeClaim, Node",
        "the reservation ends for the instance",
        "nothing: its pods are moved",
    ),
    Said(
        "InstanceStopping",
        "NodeClaim, Node",
        "somebody or something stops the instance",
        "find out who, if it was not you",
    ),
    Said(
        "InstanceTerminating",
        "NodeClaim, Node",
        "somebody or something terminates the instance",
        "find out who, if it was not you",
    ),
    Said(
        "InstanceUnhealthy",
        "NodeClaim, Node",
        "the cloud finds the instance unhealthy or retires it",
        "nothing: it is replaced",
    ),
    Said("TerminatingOnInterruption", "NodeClaim, Node", "a warning of the cloud is answered by deleting the claim"),
    Said(
        "DisruptionCancelTooLate",
        "NodeClaim",
        "a cancel came after the delete, or once the cloud may have been asked to reboot the instance",
        "next time use `dovetail.sh/drain-first` ([cancelling](../operations.md#cancelling))",
    ),
    Said(
        "FailedResolvingNodeClass",
        "NodeClaim, NodePool",
        "the NodeClass is not there or cannot be read",
        "make it, or mend the reference",
    ),
    Said(
        "InstanceCollectionStopped",
        "NodePool",
        "more instances without claims than can be right",
        "look before anything is ended ([why](../operations.md#when-the-collection-of-instances-has-stopped))",
    ),
    Said(
        "ManyInstancesGone",
        "NodePool",
        "half of the instances or more have vanished from the cloud's list",
        "if they are there, mend the credentials within a minute",
    ),
    Said(
        "StepFailing",
        "NodeClaim, Node, NodePool",
        "a step has failed more than three times in a row",
        "the message says what fails and why",
    ),
    Said(
        "CannotBeRead",
        "the object",
        "its form cannot be read; it is left out of every decision",
        "mend it; its node is left alone meanwhile",
    ),
    Said(
        "CannotBeJudged",
        "the object",
        "what it says makes a check fail; it is set aside",
        "mend it; please report it too",
    ),
    Said(
        "PauseNotUnderstood",
        "NodePool",
        "the annotations of a pause have a word or a time that is not known",
        "mend them ([pausing](../operations.md#pausing))",
    ),
    Said(
        "WorkerStandsAside",
        "NodePool",
        "a Karpenter runs, or a clock is wrong: the worker takes no step",
        "stop the Karpenter, or mend the clock",
    ),
    Said(
        "TemporalAway",
        "NodePool",
        "Temporal has not answered for a while: nothing new begins",
        "[when Temporal is away](../temporal-outages.md)",
    ),
    Said(
        "ZonalShiftActive",
        "NodePool",
        "a zonal shift of the cluster applies: the zone is not used",
        "nothing; what is deleted there waits with its instance until the shift ends",
    ),
)
NORMAL: Final = (
    Said("Nominated", "Pod", "the node or claim that it was placed on"),
    Said("ApprovalAccepted", "NodeRollout", "the next step begins, and who has approved it"),
    Said("DrainDecided", "NodeClaim", "what becomes of a decision about its drain"),
    Said("MoveBegun", "Deployment", "its one pod is moved off a leaving node by a roll-out"),
    Said("Moved", "Deployment", "the new pod is available and the old one has left its node"),
    Said("MoveCalledOff", "Deployment", "the disruption of its node was called off, and the roll-out taken back"),
    Said("Evicted", "Pod", "it was asked to leave, and why"),
    Said("Disrupted", "Pod", "its node leaves by a deadline, and it is deleted in time for its own grace"),
    Said("DoNotDisruptUntil", "Pod", "until when its `karpenter.sh/do-not-disrupt` holds"),
    Said("DoNotDisruptGracePeriodElapsed", "Pod", "that time is over"),
    Said(
        "DisruptionBlocked",
        "Node, NodeClaim, NodePool",
        "why it is not disrupted now",
        "`dovetail explain node NAME` has all checks",
    ),
    Said("Unconsolidatable", "Node, NodeClaim", "why consolidation does not take it"),
    Said("ConsolidationApproved", "NodePool", "a move that the policy `Balanced` finds worth its disruption"),
    Said("ConsolidationRejected", "Node, NodeClaim", "a plan was dropped at its second look"),
    Said("DisruptionLaunching", "NodeClaim", "it is launched to replace another"),
    Said("DisruptionWaitingReadiness", "NodeClaim", "the disruption waits until it is ready"),
    Said("DisruptionTerminating", "NodeClaim, Node", "its disruption has reached its delete"),
    Said("ReplacementBegins", "NodeClaim", "a person asked for its replacement, and it begins"),
    Said(
        "ReplacementWaits",
        "NodeClaim",
        "a person asked for its replacement, and it waits: for what",
        "nothing, or `dovetail cancel`, which takes the request back",
    ),
    Said("DisruptionCancelled", "NodeClaim", "its disruption was called off, by whom and why"),
    Said("AwaitingVolumeDetachment", "Node", "it is drained and waits for its volumes"),
    Said(
        "SpotRebalanceRecommendation", "NodeClaim, Node", "the cloud expects to take the spot instance; nothing is done"
    ),
    Said("Finalized", "NodeClaim, Node, EC2NodeClass", "the last finalizer is off"),
    Said("WaitingOnNodeClaimTermination", "EC2NodeClass", "it is being deleted, and claims of it are still there"),
    Said("Paused", "NodePool", "what was paused, by whom, until when and why"),
    Said("Resumed", "NodePool", "what goes on again"),
    Said("ZonalShiftCleared", "NodePool", "the zone is used again"),
)


def events_page() -> str:
    """The whole page."""
    return f"""# Events

`kubectl get events -A --field-selector reason=REASON`, or `kubectl describe` of the object. Reasons that Karpenter
has are spelt as
Karpenter spells them. Besides these, a NodePool, NodeClaim or NodeClass whose condition turns bad gets an Event
with the condition's
own reason.

## Warnings

{_shown(WARNINGS)}

## Normal

{_shown(NORMAL)}
"""


def _shown(rows: tuple[Said, ...]) -> str:
    return table(("reason", "on", "when", "what to do"), [(code(r.reason), r.kinds, r.when, r.do) for r in rows])

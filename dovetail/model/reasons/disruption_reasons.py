"""Why a node is disrupted, why it is not, and why a plan that waited is dropped: three closed lists.

Each entry carries everything that differs from one to the next, including the words that people read. Methods, budgets,
Events, metrics and the command line read these entries and have no lists of their own, so a new entry is complete as
soon as it is added here.
"""

from enum import StrEnum

from dovetail.model import names


class DisruptionReason(StrEnum):
    """Why a node is disrupted. The value is what Events, the condition DisruptionReason and annotations say."""

    budget: str
    """The reason by which budgets limit it: one that the NodePool's API knows."""
    waits: bool
    """Whether its plans wait and are checked again before they are carried out (DIS-3)."""
    is_governed_by_policy: bool
    """Whether the pool's consolidationPolicy decides about it, so that metrics name the policy (DIS-190)."""

    is_eventual: bool
    """Whether it passes what pods say where the claim has a termination grace period."""

    def __new__(
        cls, value: str, budget: str, waits: bool, is_governed_by_policy: bool, is_eventual: bool
    ) -> "DisruptionReason":
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.budget, reason.waits, reason.is_governed_by_policy = budget, waits, is_governed_by_policy
        reason.is_eventual = is_eventual
        return reason

    #               value            budget         waits  is_governed_by_policy  is_eventual
    EMPTY = ("Empty", "Empty", True, True, False)
    DRIFTED = ("Drifted", "Drifted", False, False, True)
    UNDERUTILIZED = ("Underutilized", "Underutilized", True, True, False)
    UNHEALTHY = ("Unhealthy", "Unhealthy", False, False, True)
    # Ours: only where a pool asks for a replacement before expiry. It is limited as drift is.
    EXPIRED = ("Expired", "Drifted", False, False, True)
    # Ours: a person asks for it. It is limited as drift is.
    REQUESTED = ("Requested", "Drifted", False, False, False)

    @property
    def label(self) -> str:
        """How metrics, and requests to create a replacement, spell it (DIS-192)."""
        return self.lower()

    @classmethod
    def of_label(cls, label: str) -> "DisruptionReason | None":
        """The reason with that spelling; None if it is no disruption."""
        return next((reason for reason in cls if reason.label == label), None)


class WhyNot(StrEnum):
    """Why a node is not disrupted. The order is that of the checks."""

    lifted_by: str
    """What it means for a person, and what ends it."""
    concerns_others: bool
    """Whether the answer only says that a method looks for other nodes: counted nowhere, because it is no obstacle."""

    def __new__(cls, value: str, lifted_by: str, concerns_others: bool = False) -> "WhyNot":
        why = str.__new__(cls, value)
        why._value_ = value
        why.lifted_by, why.concerns_others = lifted_by, concerns_others
        return why

    BEING_DISRUPTED = (
        "BeingDisrupted",
        "a disruption of it is under way; `dovetail history` shows it, `dovetail cancel` ends it",
    )
    UNMANAGED = (
        "Unmanaged",
        "it has no NodeClaim, so it is left alone",
        True,
    )
    NO_NODE = (
        "NoNode",
        "the instance has not joined the cluster yet; see the NodeClaim's conditions",
    )
    NOT_INITIALIZED = (
        "NotInitialized",
        "it becomes a candidate once initialised: ready, startup taints gone, resources registered",
    )
    DELETING = (
        "Deleting",
        "it is leaving; `dovetail history` shows how far",
    )
    NOMINATED = (
        "Nominated",
        "pending pods are expected on it; ends 20 s after the last nomination",
    )
    NODE_PROTECTED = (
        "NodeDoNotDisrupt",
        f"take the annotation {names.DO_NOT_DISRUPT} off the Node",
    )
    NO_POOL_LABEL = (
        "NoPoolLabel",
        f"the label {names.NODE_POOL} is missing",
    )
    POOL_NOT_FOUND = (
        "PoolNotFound",
        "its NodePool is gone, or its instance types cannot be listed (see `dovetail doctor`)",
    )
    # Ours: what the pod asks for is unknown, so nobody can say whether it may leave and where it would fit.
    POD_UNREADABLE = (
        "PodUnreadable",
        "put the pod right or delete it; a pod that has ended holds nothing",
    )
    # Ours: the object that the message names makes a check fail.
    NOT_JUDGED = (
        "CannotBeJudged",
        "put the object right that the message names, or delete it; `dovetail doctor` names all of them",
    )
    POD_PROTECTED = (
        "PodDoNotDisrupt",
        (
            f"take {names.DO_NOT_DISRUPT} off the pod, or move the pod; "
            "drift goes on where the claim has a terminationGracePeriod"
        ),
    )
    # Ours: windows of the pod's own.
    POD_WINDOW = (
        "PodOutsideWindow",
        (
            f"wait until a window of {names.DISRUPTION_WINDOW} of the pod opens, put it right, or move the pod; "
            "drift goes on where the claim has a terminationGracePeriod"
        ),
    )
    SEVERAL_PDBS = (
        "SeveralPdbs",
        "the eviction API refuses pods that several PodDisruptionBudgets select: leave one",
    )
    PDB_BLOCKS = (
        "PdbBlocks",
        "wait until the budget allows a disruption, or raise it",
    )
    # Ours: the pod's Deployment or Namespace forbids moving it, or moving it has failed.
    MOVE_HELD = (
        "MoveHeld",
        f"change {names.MOVE} on the Deployment or its Namespace; a move that failed is tried again by itself",
    )
    # Ours: its room belongs to pods that are on their way, or to a running disruption.
    PROMISED = (
        "Promised",
        "pods on their way count on its room; ends when they are bound",
    )
    # Ours: its last disruption failed a short time ago.
    RESTING = (
        "Resting",
        "its last disruption failed, or a person called its disruption off; it is tried again by itself",
    )
    # Ours: the owner of a hook denies it.
    HOOK_DENIES = (
        "HookDenies",
        "the value of a hook on its NodeClaim begins with `deny:`; the hook's owner changes it",
    )
    # Ours: a person has paused this.
    PAUSED = (
        "Paused",
        "a person has paused it; it goes on at the end of the pause or Freeze, or with `dovetail resume`",
    )
    # Ours: a DisruptionPolicy asks for the health of its nodes.
    UNHEALTHY = (
        "NodesUnhealthy",
        "too many nodes are or were not ready; the message says how many and until when, `kubectl get nodes` which",
    )
    # Ours: replacements of its NodePool failed.
    BREAKER_OPEN = (
        "BreakerOpen",
        "one is tried at the moment that the message names, and the others go on when it has stayed ready",
    )
    # Ours: a DisruptionPolicy keeps it closed.
    OUTSIDE_WINDOW = (
        "OutsideWindow",
        "a DisruptionPolicy lets none begin to leave for this reason now; the message says until when",
    )
    # Ours: a NodeRollout lets a change reach only so many nodes.
    ROLLOUT = (
        "RolloutHolds",
        "a NodeRollout lets no more nodes begin at its step; the message says which, `kubectl get nro` how far it is",
    )
    # Ours: as many as a DisruptionPolicy allows have begun to leave recently.
    RATE_REACHED = (
        "RateReached",
        "a DisruptionPolicy lets no more nodes begin to leave within this time; the message says until when",
    )
    STATIC_POOL = (
        "StaticPool",
        "nodes of a static pool are not consolidated",
        True,
    )
    DYNAMIC_POOL = (
        "DynamicPool",
        "only for static pools",
        True,
    )
    UNKNOWN_TYPE = (
        "UnknownInstanceType",
        "the cloud no longer lists its instance type, so it has no price to compare",
    )
    NO_CAPACITY_TYPE = (
        "NoCapacityType",
        f"the label {names.CAPACITY_TYPE} is missing",
    )
    NO_ZONE = (
        "NoZone",
        f"the label {names.ZONE} is missing",
    )
    CONSOLIDATION_OFF = (
        "ConsolidationDisabled",
        "the pool says consolidateAfter: Never",
    )
    BUFFER_PODS = (
        "BufferPods",
        "it holds room for a capacity buffer",
    )
    IS_EMPTY = (
        "IsEmpty",
        "it is empty: that is for the method emptiness",
    )
    NOT_EMPTY = (
        "NotEmpty",
        "it has pods that would need another place",
    )
    POLICY_WHEN_EMPTY = (
        "PolicyWhenEmpty",
        "the pool's consolidationPolicy is WhenEmpty",
    )
    NOT_QUIET = (
        "ConsolidateAfterNotElapsed",
        "wait: pods came or went a short time ago",
    )
    NOT_DRIFTED = (
        "NotDrifted",
        "it is as its NodePool and NodeClass ask",
        True,
    )
    NOT_UNHEALTHY = (
        "NotToBeRepaired",
        "nothing is wrong with it by the cloud's repair policies, or nodes are not repaired (gate NodeRepair)",
        True,
    )
    KEPT_FROM_REPAIR = (
        "DoNotRepair",
        f"take the annotation {names.DO_NOT_REPAIR} off the Node and its NodeClaim",
    )
    REPAIR_UNBOUNDED = (
        "RepairUnbounded",
        "its pods hold it, and neither the repair policy nor a terminationGracePeriod bounds its drain",
    )
    TOO_MANY_UNHEALTHY = (
        "TooManyUnhealthy",
        "more than a fifth of its NodePool is unhealthy: more likely a fault of the network than of the nodes",
    )
    NOT_EXPIRED = (
        "NotExpired",
        "its expireAfter has not passed",
        True,
    )
    NOT_ASKED_FOR = (
        "ReplaceFirstNotAsked",
        f"neither its pool nor its claim asks for {names.REPLACE_FIRST}",
        True,
    )
    NOT_REQUESTED = (
        "ReplacementNotRequested",
        f"nobody has asked for its replacement (`dovetail replace`, or the annotation {names.REPLACE})",
        True,
    )
    BUDGET = (
        "Budget",
        "the pool's disruption budget lets no more of them go at once; see the budgets",
    )
    STATIC_SCALING = (
        "StaticPoolScaling",
        "the static pool is being scaled",
    )
    NODE_LIMIT = (
        "NodeLimit",
        "the pool's limits leave no room for its replacement",
    )
    RESERVATION_FULL = (
        "ReservationFull",
        "its reservation has no instance left for its replacement; the gates TerminateFirst* let the node leave first",
    )
    PODS_HAVE_NO_PLACE = (
        "PodsHaveNoPlace",
        "its pods fit nowhere else; `dovetail explain pod` says why for pending pods",
    )
    TOO_MANY_REPLACEMENTS = (
        "TooManyReplacements",
        "its pods would need several new nodes, which is never cheaper by the rule",
    )
    MIN_VALUES = (
        "MinValues",
        "the cheaper types are fewer than a minValues asks for",
    )
    NOT_CHEAPER = (
        "NotCheaper",
        "nothing that holds its pods costs less",
    )
    SPOT_TO_SPOT_OFF = (
        "SpotToSpotDisabled",
        "the feature gate SpotToSpotConsolidation is off",
    )
    SPOT_CHOICE_TOO_SMALL = (
        "SpotChoiceTooSmall",
        "a spot node is only replaced by one of at least 15 cheaper types",
    )
    SCORE_TOO_LOW = (
        "ScoreTooLow",
        "the saving is too small for the disturbance (policy Balanced)",
    )
    # Ours: a pool under the policy cost is consolidated by a method of its own.
    UNDER_COST = (
        "UnderCostPolicy",
        "its NodePool is under the policy cost, whose own method consolidates it",
        True,
    )
    NOT_UNDER_COST = (
        "NotUnderCostPolicy",
        "only for NodePools under the policy cost",
        True,
    )
    SAVES_TOO_LITTLE = (
        "SavesTooLittle",
        "what would be saved for each pod moved is less than the move is worth",
    )
    # Ours: what a plan may hold is limited by what Temporal carries.
    TOO_LARGE = (
        "TooLarge",
        "its pods, labels and annotations are more than a plan can carry; make the NodePool's template smaller",
    )
    OUT_OF_TIME = (
        "OutOfTime",
        "the round ran out of time; it is tried again",
    )


class Invalidity(StrEnum):
    """Why a command that waited is no longer valid (DIS-139)."""

    CHURN = "churn"
    BUDGET = "budget"
    SCHEDULING = "scheduling"
    UNKNOWN = "unknown"

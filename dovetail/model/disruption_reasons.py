"""Every reason for which a node is left alone, and every reason for which it goes. Closed lists.

Returned by the checks of dovetail.disruption, counted in refusals, published as Events and metrics by activities. The
trap avoided: a reason made up on the spot, which no dashboard knows.
"""

from enum import StrEnum


class DisruptionReason(StrEnum):
    """Why a node goes: the reason of budgets, of the DisruptionReason condition and of metrics."""

    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNDERUTILIZED = "Underutilized"
    EXPIRED = "Expired"  # ours: only where a pool asks for a replacement before expiry


class WhyNot(StrEnum):
    """Why a node stays. The order is that of the checks."""

    BEING_DISRUPTED = "BeingDisrupted"
    UNMANAGED = "Unmanaged"
    NO_NODE = "NoNode"
    NOT_INITIALIZED = "NotInitialized"
    DELETING = "Deleting"
    NOMINATED = "Nominated"
    NODE_PROTECTED = "NodeDoNotDisrupt"
    NO_POOL_LABEL = "NoPoolLabel"
    POOL_NOT_FOUND = "PoolNotFound"
    POD_PROTECTED = "PodDoNotDisrupt"
    SEVERAL_PDBS = "SeveralPdbs"
    PDB_BLOCKS = "PdbBlocks"
    PROMISED = "Promised"  # ours: its room belongs to pods that are on their way, or to a running disruption
    RESTING = "Resting"  # ours: its last replacement failed a short time ago
    STATIC_POOL = "StaticPool"
    DYNAMIC_POOL = "DynamicPool"
    UNKNOWN_TYPE = "UnknownInstanceType"
    NO_CAPACITY_TYPE = "NoCapacityType"
    NO_ZONE = "NoZone"
    CONSOLIDATION_OFF = "ConsolidationDisabled"
    BUFFER_PODS = "BufferPods"
    IS_EMPTY = "IsEmpty"
    NOT_EMPTY = "NotEmpty"
    POLICY_WHEN_EMPTY = "PolicyWhenEmpty"
    NOT_QUIET = "ConsolidateAfterNotElapsed"
    NOT_DRIFTED = "NotDrifted"
    NOT_EXPIRED = "NotExpired"
    NOT_ASKED_FOR = "ReplaceFirstNotAsked"
    BUDGET = "Budget"
    STATIC_SCALING = "StaticPoolScaling"
    NODE_LIMIT = "NodeLimit"
    PODS_HAVE_NO_PLACE = "PodsHaveNoPlace"
    TOO_MANY_REPLACEMENTS = "TooManyReplacements"
    NO_POOL_READY = "NoPoolReady"
    MIN_VALUES = "MinValues"
    NOT_CHEAPER = "NotCheaper"
    SPOT_TO_SPOT_OFF = "SpotToSpotDisabled"
    SPOT_CHOICE_TOO_SMALL = "SpotChoiceTooSmall"
    SCORE_TOO_LOW = "ScoreTooLow"
    OUT_OF_TIME = "OutOfTime"


class Invalidity(StrEnum):
    """Why a command that waited is no longer valid (D-139)."""

    CHURN = "churn"
    BUDGET = "budget"
    SCHEDULING = "scheduling"
    UNKNOWN = "unknown"

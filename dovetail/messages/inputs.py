"""What each workflow is given when it starts.

Additive changes only: new code must read the input of an old run.
"""

from dataclasses import dataclass

from dovetail.messages.plans import DisruptionCommand, Seen
from dovetail.messages.states import Remembered
from dovetail.messages.subjects import ClaimRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInput:
    """For LaunchNode and TerminateNode."""

    cluster: str
    claim: ClaimRef


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInput:
    """For ReleaseNode: a deleting managed node without a claim."""

    cluster: str
    node: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptInput:
    """For DisruptNodes: one command of a plan, under a plan id of its own."""

    cluster: str
    plan_id: str
    command: DisruptionCommand
    type_lists: tuple[tuple[str, ...], ...] = ()
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class CaretakerInput:
    cluster: str
    generation: int = 0
    max_history: int = 0  # tests make it small, so that many generations pass
    must_see: "tuple[Remembered, ...]" = ()
    cluster_uid: str = ""  # of its namespace kube-system


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInput:
    """For Gate: for how many seconds it looks again before it fails. People write it, in the chart's values."""

    seconds: float = 300.0

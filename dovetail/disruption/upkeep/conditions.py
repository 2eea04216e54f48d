"""Whether a claim should carry the conditions Consolidatable and Drifted, and when that may change (DIS-166 to
DIS-176).

Consolidatable means that the node has been quiet long enough; it says nothing about its pool's policy or its pods.
"""

from dataclasses import dataclass
from typing import Final, Literal

from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pools import Catalogue, InstanceType, NodePool
from dovetail.model.scheduling.key_aliases import canonical_key
from dovetail.model.scheduling.requirements import compatible, from_expressions, from_labels, requirement

RECHECK_DRIFT: Final = 300.0  # seconds until drift is looked at again although nothing changed
TYPE_CHECK_AGE: Final = 3600.0  # a claim's instance type may still be missing from lists when it is younger

NODE_POOL_DRIFTED: Final = "NodePoolDrifted"
REQUIREMENTS_DRIFTED: Final = "RequirementsDrifted"
INSTANCE_TYPE_NOT_FOUND: Final = "InstanceTypeNotFound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a condition should be. `leave`: unchanged, because the question does not apply or cannot be answered."""

    verdict: Literal["set", "clear", "leave"]
    reason: str = ""
    look_again: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFacts:
    """What judging drift needs besides claim and pool. `provider_reason`: the cloud's answer; empty means no drift.
    `provider_error`: why it gave none."""

    catalogue: Catalogue
    provider_reason: str = ""
    well_known: frozenset[str] = names.WELL_KNOWN_LABELS
    reservation_labels: frozenset[str] = frozenset()  # the cloud's labels that name one reservation
    provider_error: str = ""


def quiet_since(claim: NodeClaim) -> float:
    """When the last pod came to or left the claim's node; its initialisation if none did."""
    if claim.last_pod_event is not None:
        return claim.last_pod_event
    initialized = claim.condition(names.INITIALIZED_CONDITION)
    return initialized.changed if initialized else claim.created


def judge_consolidatable(claim: NodeClaim, pool: NodePool, now: float) -> Judgement:
    """Whether the node has been quiet for consolidateAfter, the boundary included (DIS-167)."""
    if pool.replicas is not None:
        return Judgement(verdict="leave")
    after = pool.disruption.consolidate_after
    if after is None or not claim.is_true(names.INITIALIZED_CONDITION):
        return Judgement(verdict="clear")
    if now - quiet_since(claim) < after:
        return Judgement(verdict="clear", look_again=quiet_since(claim) + after)
    return Judgement(verdict="set", reason=names.CONSOLIDATABLE)


def is_consolidatable_at_once(claim: NodeClaim, pool: NodePool, now: float) -> bool:
    """Whether a claim that is initialised now is certain to be Consolidatable at the next look."""
    return not pool.disruption.consolidate_after and judge_consolidatable(claim, pool, now).verdict == "set"


def consolidatable(now: float) -> Condition:
    """The condition, true from now."""
    return Condition(type=names.CONSOLIDATABLE, status="True", reason=names.CONSOLIDATABLE, changed=now)


def judge_drifted(claim: NodeClaim, pool: NodePool, facts: DriftFacts, now: float) -> Judgement:
    """By the first of four questions whose answer is yes (DIS-170)."""
    if not claim.is_true(names.LAUNCHED):
        return Judgement(verdict="clear")
    again = now + RECHECK_DRIFT
    if is_hash_drifted(claim, pool):
        return Judgement(verdict="set", reason=NODE_POOL_DRIFTED, look_again=again)
    if is_requirement_drifted(claim, pool):
        return Judgement(verdict="set", reason=REQUIREMENTS_DRIFTED, look_again=again)
    if now - claim.created > TYPE_CHECK_AGE:
        if facts.catalogue.error:
            return Judgement(verdict="leave", error=facts.catalogue.error)
        if not is_type_offered(claim, facts):
            return Judgement(verdict="set", reason=INSTANCE_TYPE_NOT_FOUND, look_again=again)
    if facts.provider_error:
        return Judgement(verdict="leave", look_again=again, error=facts.provider_error)
    if facts.provider_reason:
        return Judgement(verdict="set", reason=facts.provider_reason, look_again=again)
    return Judgement(verdict="clear", look_again=again)


def is_hash_drifted(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether both carry hash and version, the versions are equal and the hashes are not (DIS-171)."""
    ours, theirs = claim.annotations, pool.annotations
    keys = (names.NODE_POOL_HASH, names.NODE_POOL_HASH_VERSION)
    if any(key not in ours or key not in theirs for key in keys):
        return False
    if ours[names.NODE_POOL_HASH_VERSION] != theirs[names.NODE_POOL_HASH_VERSION]:
        return False
    return ours[names.NODE_POOL_HASH] != theirs[names.NODE_POOL_HASH]


def is_requirement_drifted(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether the claim's labels no longer satisfy the template's requirements, well-known ones included (DIS-172)."""
    wanted = from_expressions(pool.template.requirements)
    asked = {key: value for key, value in claim.labels.items() if canonical_key(key) in wanted}
    return not compatible(from_labels(asked), wanted)


def is_type_offered(claim: NodeClaim, facts: DriftFacts) -> bool:
    """Whether the pool still has the claim's instance type, with an offering that suits its labels (DIS-174)."""
    wanted = claim.labels.get(names.INSTANCE_TYPE)
    found = next((t for t in facts.catalogue.types if t.name == wanted), None) if wanted else None
    return found is not None and _has_offering(found, claim, facts)


def _has_offering(instance_type: InstanceType, claim: NodeClaim, facts: DriftFacts) -> bool:
    labels = from_labels(claim.labels)
    if claim.labels.get(names.CAPACITY_TYPE) == names.CAPACITY_RESERVED:
        # A reserved instance may have been billed as on-demand since; its reservation's own labels do not matter.
        either = (names.CAPACITY_ON_DEMAND, names.CAPACITY_RESERVED)
        labels[names.CAPACITY_TYPE] = requirement(names.CAPACITY_TYPE, "In", either)
        for key in facts.reservation_labels & labels.keys():
            del labels[key]
    return any(
        compatible(labels, from_expressions(offering.requirements), facts.well_known)
        for offering in instance_type.offerings
    )


def resulting_condition(judgement: Judgement, claim: NodeClaim, kind: str, now: float) -> Condition | None:
    """The condition after the judgement; one that stays True keeps its time, and so its place in the order
    (DIS-170)."""
    present = claim.condition(kind)
    if judgement.verdict == "leave":
        return present
    if judgement.verdict == "clear":
        return None
    message = "" if kind == names.CONSOLIDATABLE else judgement.reason
    kept = present is not None and present.status == "True"
    changed = present.changed if present is not None and kept else now
    return Condition(type=kind, status="True", reason=judgement.reason, message=message, changed=changed)

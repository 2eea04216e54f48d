"""What do an object's conditions become when one of them is set?

Karpenter's conditions are more than a list: a root, `Ready`, follows from the dependents, missing ones stand at Unknown
since the object's creation (so that liveness has a clock, LIF-41), and during a deletion every generation is raised so
that the root does not fall (PLM-4 to PLM-7). The time of a transition moves only with the status.
"""

from dataclasses import dataclass, replace
from typing import Final

from dovetail.model.names import CLASS_READY, DRAINED, INITIALIZED_CONDITION, LAUNCHED, READY, REGISTERED_CONDITION
from dovetail.model.nodes import AWAITING_RECONCILIATION, FALSE, TRUE, UNKNOWN, Condition, NodeClaim

CLAIM_DEPENDENTS: Final = (LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)
LASTING: Final = frozenset((*CLAIM_DEPENDENTS, DRAINED))  # DUR-30: what has happened once
POOL_DEPENDENTS: Final = ("ValidationSucceeded", CLASS_READY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSet:
    """An object's conditions with what is needed to judge them."""

    dependents: tuple[str, ...]
    created: float
    generation: int
    deleting: bool = False
    conditions: tuple[Condition, ...]

    def find(self, kind: str) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def set(self, wanted: Condition) -> "ConditionSet":
        """The conditions with that one set (its `changed` is now) and the root recomputed (PLM-5, PLM-6)."""
        old = self.find(wanted.type)
        changed = old.changed if old is not None and old.status == wanted.status else wanted.changed
        settled = replace(wanted, changed=changed, generation=self.generation)
        rest = tuple(condition for condition in self.conditions if condition.type != wanted.type)
        if self.deleting:
            rest = tuple(replace(condition, generation=self.generation) for condition in rest)
        return replace(self, conditions=(*rest, settled))._rooted(wanted.changed)

    def clear(self, kind: str) -> "ConditionSet":
        """The conditions without that one, sorted by name (PLM-7). Dependents and the root cannot be cleared."""
        if kind == READY or kind in self.dependents:
            raise ValueError(f"{kind} cannot be cleared")
        if self.find(kind) is None:
            return self
        rest = (condition for condition in self.conditions if condition.type != kind)
        return replace(self, conditions=tuple(sorted(rest, key=lambda condition: condition.type)))

    def _rooted(self, now: float) -> "ConditionSet":
        root = _root(self, now)
        rest = sorted(
            (condition for condition in self.conditions if condition.type != READY),
            key=lambda condition: (condition.changed, condition.type),
        )
        return replace(self, conditions=(*rest, root))


def conditions_of_claim(claim: NodeClaim) -> ConditionSet:
    """The conditions of a claim, those that are missing standing at Unknown since its creation (PLM-4)."""
    return complete(
        ConditionSet(
            dependents=CLAIM_DEPENDENTS,
            created=claim.created,
            generation=claim.generation,
            deleting=claim.deleting_since is not None,
            conditions=claim.conditions,
        )
    )


def complete(given: ConditionSet) -> ConditionSet:
    """PLM-4: every missing dependent, and the root, as Unknown since the object's creation."""
    present = {condition.type for condition in given.conditions}
    missing = tuple(
        Condition(
            type=kind,
            status=UNKNOWN,
            reason=AWAITING_RECONCILIATION,
            message="object is awaiting reconciliation",
            changed=given.created,
            generation=given.generation,
        )
        for kind in (*given.dependents, READY)
        if kind not in present
    )
    return replace(given, conditions=(*given.conditions, *missing))


def true(kind: str, now: float) -> Condition:
    """The condition set to True: its reason is its type, and it has no message (PLM-5)."""
    return Condition(type=kind, status=TRUE, reason=kind, changed=now)


def unknown(kind: str, now: float, why: tuple[str, str]) -> Condition:
    """The condition set to Unknown, with (reason, message)."""
    return Condition(type=kind, status=UNKNOWN, reason=why[0], message=why[1], changed=now)


def false(kind: str, now: float, why: tuple[str, str]) -> Condition:
    """The condition set to False, with (reason, message)."""
    return Condition(type=kind, status=FALSE, reason=why[0], message=why[1], changed=now)


def claim_conditions_with(claim: NodeClaim, *wanted: Condition) -> tuple[Condition, ...] | None:
    """The claim's whole list with these set, or None where that changes nothing (PLM-5: equal is no modification).

    What has happened stays so, whatever an attempt writes that lives on after another has done its work (DUR-30)."""
    found = conditions_of_claim(claim)
    for condition in wanted:
        if condition.status == TRUE or condition.type not in LASTING or not claim.is_true(condition.type):
            found = found.set(condition)
    same = {condition.type: condition for condition in found.conditions} == {
        condition.type: condition for condition in claim.conditions
    }
    return None if same else found.conditions


def _root(given: ConditionSet, now: float) -> Condition:
    """PLM-6: Ready as it follows from the dependents."""
    unhealthy = [
        condition
        for condition in given.conditions
        if condition.type in given.dependents and (condition.status != TRUE or condition.generation != given.generation)
    ]
    unhealthy.sort(key=lambda condition: (-condition.changed, condition.type))
    if not unhealthy:
        root = true(READY, now)
    else:
        failed = any(condition.status == FALSE and condition.generation == given.generation for condition in unhealthy)
        why = "UnhealthyDependents" if failed else "ReconcilingDependents"
        text = ", ".join(f"{condition.type}={condition.status}" for condition in unhealthy)
        root = false(READY, now, (why, text)) if failed else unknown(READY, now, (why, text))
    old = given.find(READY)
    changed = old.changed if old is not None and old.status == root.status else now
    return replace(root, changed=changed, generation=given.generation)

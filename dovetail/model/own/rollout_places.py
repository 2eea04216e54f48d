"""What a decision went by of roll-outs: it is never carried out at another target than that one."""

from dataclasses import dataclass, replace

from dovetail.model.values.hashing import is_other


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlace:
    """Where a roll-out stands. It crosses Temporal; the number of nodes is not part of it."""

    rollout: str
    uid: str
    pool: str
    target: str
    makes: str
    goes_back: bool
    step: str
    to: str  # the step's; empty if the list has none of that name
    begun: float

    def has_target_of(self, other: "RolloutPlace") -> bool:
        """Whether both take nodes of the pool in one direction to one target, also where a new version hashes it."""
        same = (self.pool, self.goes_back) == (other.pool, other.goes_back)
        return same and not is_other(self.target, other.target) and not is_other(self.makes, other.makes)

    def is_same(self, other: "RolloutPlace") -> bool:
        """Whether it is the same step of the same target, too."""
        return self.has_target_of(other) and self == replace(other, target=self.target, makes=self.makes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutBasis:
    places: tuple[RolloutPlace, ...] = ()

    def has(self, place: RolloutPlace) -> bool:
        return any(map(place.is_same, self.places))

    def has_target_of(self, place: RolloutPlace) -> bool:
        return any(map(place.has_target_of, self.places))

    def is_about(self, pool: str) -> bool:
        return any(place.pool == pool for place in self.places)

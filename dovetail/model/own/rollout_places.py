"""What a decision went by of roll-outs: it is never carried out at another target than that one."""

from dataclasses import dataclass, replace
from zlib import crc32

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

    @property
    def text(self) -> str:
        """The same for workers of before 0.2.0, which compare three digests. It goes with the release after that."""
        aim = self.target, self.makes, self.goes_back
        step = self.uid, self.rollout, self.step, [self.to] if self.to else [], self.begun
        return ".".join(map(_checksum, ((self.pool,), aim, step)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutBasis:
    """The places that a decision went by. `texts`: all that is known of one of a worker of before 0.2.0."""

    places: tuple[RolloutPlace, ...] = ()
    texts: tuple[str, ...] = ()

    def has(self, place: RolloutPlace) -> bool:
        return any(map(place.is_same, self.places)) or place.text in self._texts

    def has_target_of(self, place: RolloutPlace) -> bool:
        return any(map(place.has_target_of, self.places)) or _aim(place.text) in map(_aim, self._texts)

    def is_about(self, pool: str) -> bool:
        """Whether it went by a roll-out of that pool."""
        is_about = any(place.pool == pool for place in self.places)
        return is_about or any(text.startswith(_checksum((pool,))) for text in self._texts)

    @property
    def _texts(self) -> tuple[str, ...]:
        return () if self.places else self.texts


def _aim(text: str) -> str:
    """The pool, the target and the direction, without the step."""
    return text.rpartition(".")[0]


def _checksum(parts: tuple[object, ...]) -> str:
    return f"{crc32(repr(parts).encode()):08x}"

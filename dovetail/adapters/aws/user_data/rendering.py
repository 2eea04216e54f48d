"""The user data of a family: which writer belongs to which family."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from dovetail.adapters.aws.user_data.amazon_linux import al2, al2023
from dovetail.adapters.aws.user_data.bootstrap import BadUserData, Bootstrap
from dovetail.adapters.aws.user_data.bottlerocket import bottlerocket
from dovetail.adapters.aws.user_data.windows import windows

SIZE_LIMIT: Final = 16_384  # bytes, decoded; EC2's
MOST_READ: Final = 4 * SIZE_LIMIT  # characters of the class's own, of which TOML loses its comments
NEARLY_FULL: Final = 0.9 * SIZE_LIMIT  # from here on a class is warned of (AWS-100): claims add their own labels


def _custom(start: Bootstrap) -> str:
    """Unchanged: a custom image contains everything for its start."""
    return start.own


_WRITERS: Final[dict[str, Callable[[Bootstrap], str]]] = {
    "AL2": al2,
    "AL2023": al2023,
    "Bottlerocket": bottlerocket,
    "Custom": _custom,
    "Windows2019": windows,
    "Windows2022": windows,
    "Windows2025": windows,
}


def user_data(family: str, start: Bootstrap) -> str:
    """The text; BadUserData if the class's own cannot be merged. Launches of one plan share one."""
    if len(start.own) > MOST_READ:
        raise BadUserData(f"userData: has {len(start.own):,} characters; EC2 takes {SIZE_LIMIT:,} bytes")
    return _written(family, _Known(start))


class _Known:
    """A bootstrap as a key: its text contains everything that the user data depends on."""

    __slots__ = ("start", "text")

    def __init__(self, start: Bootstrap) -> None:
        self.start, self.text = start, repr(start)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=64)
def _written(family: str, known: _Known) -> str:
    return _WRITERS[family](known.start)

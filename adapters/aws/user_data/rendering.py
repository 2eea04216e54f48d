"""The user data of a family: which writer is whose."""

from collections.abc import Callable
from typing import Final

from adapters.aws.user_data.amazon_linux import al2, al2023
from adapters.aws.user_data.bootstrap import Bootstrap
from adapters.aws.user_data.bottlerocket import bottlerocket
from adapters.aws.user_data.windows import windows

SIZE_LIMIT: Final = 16_384  # bytes, decoded; EC2's


def _custom(start: Bootstrap) -> str:
    """Unchanged: whoever brings an image brings all of its start."""
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
    """The text; BadUserData where the class's own cannot be merged."""
    return _WRITERS[family](start)

"""The clouds that a worker can serve, by the value of DOVETAIL_CLOUD.

A module is imported when its cloud is chosen, so that no worker loads the library of a cloud that it does not use.
"""

from functools import cache
from importlib import import_module
from typing import Any, Final

from dovetail.ports.provider import Provider

# One line per cloud: its name, and the module that holds its PROVIDER.
PROVIDERS: Final[dict[str, str]] = {
    "aws": "dovetail.adapters.aws.provider",
    "kwok": "dovetail.adapters.kwok.provider",
}
DEFAULT: Final = next(iter(PROVIDERS))


@cache
def provider_named(name: str) -> Provider[Any]:
    """The provider of that name; KeyError if the table has none."""
    found: Provider[Any] = import_module(PROVIDERS[name]).PROVIDER
    return found

"""The official client: its asynchronous half only.

`import kubernetes` loads the synchronous half too, with requests, OAuth and all that they need: 11 MB and a fifth of a
second that no worker uses. So the package's own file is not run; its parts are loaded when they are requested.
"""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "kubernetes"


def _part(name: str) -> ModuleType:
    """A part of the package that other code requests: kubernetes.client, as after `import kubernetes`."""
    try:
        return import_module(f"{_PACKAGE}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}") from None


def _package_without_its_parts() -> None:
    """Put the package in place, unless it is loaded already."""
    spec = find_spec(_PACKAGE)
    if _PACKAGE not in sys.modules and spec is not None:
        package: Any = module_from_spec(spec)
        package.__getattr__ = _part
        sys.modules[_PACKAGE] = package


def _asynchronous_half() -> tuple[Any, Any]:
    _package_without_its_parts()
    from kubernetes.aio import client, config

    return client, config


client, config = _asynchronous_half()
ConfigException: Final[type[Exception]] = config.ConfigException

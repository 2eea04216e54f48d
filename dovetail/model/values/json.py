"""What decoded JSON objects are to the type checker."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
ReadOnlyJson = Mapping[str, Any]

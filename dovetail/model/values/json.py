"""The type of decoded JSON objects."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
ReadOnlyJson = Mapping[str, Any]

"""The type of a decoded JSON object. The cloud shares nothing with the product, not even this name."""

from typing import Any

Json = dict[str, Any]

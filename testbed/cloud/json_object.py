"""What a decoded JSON object is to the type checker. The cloud shares nothing with the product, this name included."""

from typing import Any

Json = dict[str, Any]

"""JSON merge patch (RFC 7386): the only kind of patch that the product writes.

null removes a field, an object is merged, everything else replaces.
"""

from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """The target with the patch applied; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result

"""What a patch makes of an object, by its type; the object itself is not changed.

A merge patch (RFC 7386) removes by null, merges objects and replaces all else. A JSON patch (RFC 6902) is operations,
which also test what they change. A strategic merge patch merges conditions by their type: of the lists with a key only
those are patched so.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.model.values.json import Json


def merged(target: Any, patch: Any) -> Any:
    """A merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def merged_by_type(target: Json, patch: Json) -> Json:
    """A strategic merge patch."""
    result: Json = merged(target, patch)
    given = (patch.get("status") or {}).get("conditions") or []
    known = {each["type"]: each for each in (target.get("status") or {}).get("conditions") or []}
    if given:
        changed = {each["type"]: {**known.get(each["type"], {}), **each} for each in given}
        result["status"]["conditions"] = list({**known, **changed}.values())
    return result


def operated(target: Json, operations: list[Json]) -> Json:
    """A JSON patch: 422 where a test fails, or where there is nothing at a path."""
    result = deepcopy(target)
    for each in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        try:
            place: Any = result
            for part in way:
                place = place[int(part) if isinstance(place, list) else part]
            _operate(place, last, each)
        except (KeyError, IndexError) as error:
            raise Rejected(422, "Invalid", f"{each['path']}: nothing is there: {error}") from None
    return result


def _operate(place: Any, last: str, operation: Json) -> None:
    at: Any = last if isinstance(place, dict) else len(place) if last == "-" else int(last)
    match operation["op"]:
        case "remove":
            del place[at]
        case "add" if isinstance(place, list):
            place.insert(at, operation["value"])
        case "add":
            place[at] = operation["value"]
        case "test":
            found = place.get(at) if isinstance(place, dict) else place[at]  # what is absent is null
            if found != operation["value"]:
                raise Rejected(422, "Invalid", f"{operation['path']}: testing it failed: it is {found}")


# By the type of the request's content.
PATCHES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "application/merge-patch+json": merged,
    "application/json-patch+json": operated,
    "application/strategic-merge-patch+json": merged_by_type,
}

"""Filters and pages of Describe calls.

One implementation for every Describe operation, because moto's differ in the ways that matter here: several filters of
one name must all hold, MaxResults must yield a NextToken, an unknown filter name must be refused.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from testbed.cloud.http.errors import AwsError

Values = Callable[[Any], Iterable[str]]
MOST_VALUES = 200  # of one filter


@lru_cache(maxsize=4096)
def _pattern(value: str) -> re.Pattern[str]:
    """AWS knows `*` and `?` and no character classes, unlike fnmatch."""
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in value), re.DOTALL)


def matches(found: Iterable[str], wanted: Sequence[str]) -> bool:
    """Whether any of the thing's values fits any of the wanted ones."""
    return any(_pattern(want).fullmatch(value) for value in found for want in wanted)


def _values(thing: Any, name: str, known: Mapping[str, Values], tags: Mapping[str, str]) -> Iterable[str]:
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return (tags[key],) if key in tags else ()
    if name == "tag-key":
        return tags
    if name == "tag-value":
        return tags.values()
    if name not in known:
        raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return known[name](thing)


def select(
    things: Iterable[Any], filters: Sequence[Mapping[str, Any]] | None, known: Mapping[str, Values], tags_of: Any
) -> list[Any]:
    """The things that pass every filter; `tags_of` says where a thing keeps its tags."""
    wanted = [(each.get("Name", ""), each.get("Values") or []) for each in filters or ()]
    for name, values in wanted:  # refuse a bad name even when there is nothing to filter
        if name not in known and not name.startswith("tag"):
            raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
        if len(values) > MOST_VALUES:
            text = f"The maximum number of filter values specified on a single call is {MOST_VALUES}"
            raise AwsError("FilterLimitExceeded", text)
    return [
        thing
        for thing in things
        if all(matches(_values(thing, name, known, tags_of(thing)), values) for name, values in wanted)
    ]


def page(things: Sequence[Any], params: Mapping[str, Any]) -> tuple[Sequence[Any], str | None]:
    """One page and the token of the next; the token is an opaque offset."""
    token = params.get("NextToken")
    try:
        start = int(base64.urlsafe_b64decode(token)) if token else 0
    except (ValueError, binascii.Error) as broken:
        raise AwsError("InvalidNextToken", f"The token '{token}' is invalid") from broken
    end = start + int(params["MaxResults"])
    following = base64.urlsafe_b64encode(str(end).encode()).decode() if end < len(things) else None
    return things[start:end], following


def paged(key: str, things: Sequence[Any], following: str | None) -> dict[str, Any]:
    """An answer with NextToken only where there is a next page."""
    return {key: list(things), **({"NextToken": following} if following else {})}


def as_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """A mapping as AWS lists it."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def from_tags(listed: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """AWS's list as a mapping."""
    return {each["Key"]: each.get("Value", "") for each in listed or ()}


def tags_for(specifications: Iterable[Mapping[str, Any]] | None, resource_type: str) -> dict[str, str]:
    """The tags that a call's TagSpecifications give to one type of resource."""
    found: dict[str, str] = {}
    for each in specifications or ():
        if each.get("ResourceType") == resource_type:
            found |= from_tags(each.get("Tags"))
    return found

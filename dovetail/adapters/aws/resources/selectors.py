"""A class's selector terms as filters of EC2 (AWS-10).

The value `*` means: has this tag, whatever its value.
"""

from collections.abc import Mapping

from dovetail.model.values.json import Json


def tag_filters(tags: Mapping[str, str] | None) -> list[Json]:
    return [
        {"Name": "tag-key", "Values": [key]} if value == "*" else {"Name": f"tag:{key}", "Values": [value]}
        for key, value in sorted((tags or {}).items())
    ]

"""The facts of a CustomResourceDefinition, by their place: what a manifest may hold, and what `kubectl` shows.

Descriptions are left out, and so are the rules' expressions: two of them can be worded differently and refuse the same
manifests, which tests/api tries. Of a rule its message counts, and the labels and tags that it names.
"""

import re
from typing import Any, Final

from dovetail.model.values.json import Json

Facts = dict[str, Json]

RULES: Final = "x-kubernetes-validations"
_NOT_HERE: Final = frozenset({"description", "properties", "items", "additionalProperties", RULES})
_UNORDERED: Final = frozenset({"enum", "required"})
_LISTED: Final = re.compile(r"""["']([a-z0-9.-]+/[A-Za-z0-9._/-]*)["']""")


def facts_of(crd: Json) -> Facts:
    """All facts of a definition that has one version; places in brackets are those outside the schema."""
    spec = crd["spec"]
    (version,) = spec["versions"]
    names = {key: value for key, value in spec["names"].items() if key not in ("listKind", "singular")}
    columns = map(_column, version.get("additionalPrinterColumns") or ())
    found: Facts = {
        "(kind)": {"group": spec["group"], "scope": spec["scope"], "version": version["name"], **names},
        "(subresources)": dict(version.get("subresources") or {}),
        "(columns)": {column.pop("name"): column for column in columns},
    }
    _walk(version["schema"]["openAPIV3Schema"], "", found)
    return found


def _column(column: Json) -> Json:
    return {key: value for key, value in column.items() if key != "description"}


def _walk(schema: Json, place: str, found: Facts) -> None:
    facts: Json = {
        key: sorted(value) if key in _UNORDERED else value for key, value in schema.items() if key not in _NOT_HERE
    }
    if RULES in schema:
        facts["rules"] = {" ".join(rule["message"].split()): _names(rule["rule"]) for rule in schema[RULES]}
    found[place] = facts
    for name, field in (schema.get("properties") or {}).items():
        _walk(field, f"{place}.{name}", found)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        below: Any = schema.get(key)
        if isinstance(below, dict):
            _walk(below, place + mark, found)


def _names(expression: str) -> list[str]:
    return sorted(set(_LISTED.findall(expression)))

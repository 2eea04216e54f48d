"""Holds a printed document to its schema in docs/reference, and to nothing but what the schema names."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker

from dovetail.model.values.json import Json

SCHEMAS: Final = Path(__file__).parents[2] / "docs" / "reference" / "schemas" / "v1"


def kinds() -> set[str]:
    """Those that have a schema."""
    return {file.stem for file in SCHEMAS.glob("*.json")}


def faults_of(document: Json) -> list[str]:
    """What of the document its kind's schema does not allow; a field that it does not name is a fault too."""
    found = _validator(document["kind"]).iter_errors(document)
    return [f"{document['kind']}: {error.json_path}: {error.message}" for error in found]


@cache
def _validator(kind: str) -> Any:
    schema = json.loads((SCHEMAS / f"{kind}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(_closed(schema), format_checker=FormatChecker())


def _closed(schema: Any) -> Any:
    """The schema, whose objects have no other fields than it names."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed["additionalProperties"] = False
    return closed

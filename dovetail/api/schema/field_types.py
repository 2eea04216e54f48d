"""What may stand in a single field: names, durations, quantities, moments, whole numbers (rules API-4 to API-8).

The patterns are those of Karpenter's CRDs, letter for letter, because they are the API: a manifest that passes there
passes here. JSON schema patterns search, they do not match the whole text, and `$` means the very end; pydantic's
engine does both as the API server's does, Python's `re` does neither.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from dovetail.api.schema.rules import without_nulls

QUALIFIED_NAME = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_quantity = re.compile(QUANTITY)

QualifiedName = Annotated[str, Field(pattern=QUALIFIED_NAME)]
LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE)]
# API-6: Go's notation without days, fractions or sign.
Duration = Annotated[str, Field(pattern=r"^([0-9]+(s|m|h))+$")]
# API-8: kept as written, so that 720h does not become 720h0m0s.
NillableDuration = Annotated[str, Field(pattern=r"^(([0-9]+(s|m|h))+|Never)$")]
Bool = Annotated[bool, Strict()]


def _within(bits: int) -> Callable[[int], int]:
    def fits(value: int) -> int:
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise PydanticCustomError("int_range", "should fit into {bits} bits", {"bits": bits})
        return value

    return fits


Int = Annotated[int, Strict()]
Int32 = Annotated[int, Strict(), AfterValidator(_within(32)), Field(json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, Strict(), AfterValidator(_within(64)), Field(json_schema_extra={"format": "int64"})]


def _checked_quantity(value: Any) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    # `$` of `re` also matches before a last newline, which the API server refuses.
    if isinstance(value, str) and _quantity.search(value) and not value.endswith("\n"):
        return value
    raise PydanticCustomError("quantity", "should match a quantity such as 4, 500m or 8Gi")


# API-7. Kept as written: writing an immutable spec back with 50k for 50000 would be refused as a change (PLM-8).
Quantity = Annotated[
    int | str,
    PlainValidator(_checked_quantity),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": QUANTITY, "x-kubernetes-int-or-string": True}
    ),
]


def _moment(value: Any) -> Any:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not MOMENT.fullmatch(value):
        raise PydanticCustomError("moment", "should be a date-time such as 2026-01-31T12:00:00Z")
    return datetime.fromisoformat(value.upper())


def _written(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="auto").replace("+00:00", "Z")


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    PlainSerializer(_written, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]

Quantities = Annotated[dict[str, Quantity], BeforeValidator(without_nulls)]
StringMap = Annotated[dict[str, str], BeforeValidator(without_nulls)]

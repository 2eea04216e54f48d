"""Whether what goes over the wire fits botocore's model of the operation.

AWS generates its clients and its documentation from that model, so an answer with a field that the model does not know
has never been seen by anybody, and a request that breaks it is refused. Without this a writer would drop such a field
silently, and a caller that reads it would work here and nowhere else.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json

# Of these AWS has newer ones every month than the model that is installed here: which types there are is the world's to
# say, and moto's catalogue was read from EC2 itself. SQS takes SentTimestamp among the attributes of a message, as its
# reference says and Karpenter asks, though the model has those of a queue there.
_OPEN_CHOICES = frozenset(
    {"CapacityReservationType", "InstanceType", "QueueAttributeName", "SupportedAdditionalProcessorFeature"}
)


class Misfit(Exception):
    """An answer of the test bed that AWS could not give; the message names the field."""


class Asked(str):
    """A string that came in a request. It stays one as long as it is only kept and passed on, so that an answer which
    says again what it was told is found out."""

    __slots__ = ()


def marked(value: Any) -> Any:
    """A request's parameters with every string `Asked`."""
    if isinstance(value, str):
        return Asked(value)
    if isinstance(value, dict):
        return {key: marked(inner) for key, inner in value.items()}
    return [marked(each) for each in value] if isinstance(value, list) else value


# ---- answers ----------------------------------------------------------------------------------------------


def check_answer(operation: Any, result: Json) -> frozenset[str]:
    """`Misfit` for the first field that the operation's answer does not have, or has otherwise; else the fields whose
    values a caller has given, with this call or an earlier one."""
    shape, copied = operation.output_shape, set[str]()
    if shape is not None:
        _fits(shape, result, operation.name, copied)
    elif result:
        raise Misfit(f"{operation.name} answers nothing, and not {sorted(result)}")
    return frozenset(copied)


def _fits(shape: Any, value: Any, where: str, copied: set[str]) -> None:
    kind = shape.type_name
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise Misfit(f"{where} is of kind {kind}, not {value!r}")
    if kind == "structure":
        _structure_fits(shape, value, where, copied)
    elif kind == "list":
        for each in value:
            _fits(shape.member, each, f"{where}[]", copied)
    elif kind == "map":
        for each in value.values():
            _fits(shape.value, each, f"{where}{{}}", copied)
    elif isinstance(value, str):
        if shape.type_name == "string" and shape.enum and value not in shape.enum and shape.name not in _OPEN_CHOICES:
            raise Misfit(f"{where} is one of {', '.join(shape.enum)}, not {value!r}")
        if isinstance(value, Asked):
            copied.add(where)


_KINDS: dict[str, Any] = {
    "structure": Mapping,
    "map": Mapping,
    "list": list | tuple,
    "string": str,
    "boolean": bool,
    "integer": int,
    "long": int,
    "float": int | float,
    "double": int | float,
    "timestamp": int | float | str | datetime,
    "blob": bytes | str,
}


def _structure_fits(shape: Any, value: Any, where: str, copied: set[str]) -> None:
    members = shape.members
    for name, inner in value.items():
        member = members.get(name)
        if member is None:
            raise Misfit(f"{where} has no {name}")
        if inner is not None:  # absent
            _fits(member, inner, f"{where}.{name}", copied)
    for name in shape.required_members:
        if value.get(name) is None:
            raise Misfit(f"{where} always has {name}")


def check_body(operation: Any, body: bytes) -> None:
    """The same of an answer that is written already, which is how moto's come."""
    protocol = operation.service_model.resolved_protocol
    if protocol not in ("query", "ec2"):
        check_answer(operation, json.loads(body or b"{}"))
        return
    shape = operation.output_shape
    if shape is None:
        return
    root = ElementTree.fromstring(body)
    wrapper = shape.serialization.get("resultWrapper")
    top = root if wrapper is None else next((each for each in root if _tag(each) == wrapper), root)
    _element_fits(shape, top, operation.name, protocol, ("ResponseMetadata", "requestId", "RequestId"))


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _element_fits(shape: Any, element: Any, where: str, protocol: str, around: tuple[str, ...] = ()) -> None:
    if shape.type_name == "list":
        for each in element:
            _element_fits(shape.member, each, f"{where}[]", protocol)
    if shape.type_name != "structure":
        return
    known = {member.serialization.get("name", name): member for name, member in shape.members.items()}
    present = {_tag(each): each for each in element}
    for name, inner in present.items():
        if name not in known and name not in around:
            raise Misfit(f"{where} has no {name}")
        if name in known:
            _element_fits(known[name], inner, f"{where}.{name}", protocol)
    for name in shape.required_members:
        if shape.members[name].serialization.get("name", name) not in present:
            raise Misfit(f"{where} always has {name}")


# ---- requests ---------------------------------------------------------------------------------------------

# What each service calls a request that its model does not allow; EC2 has a code for each kind of fault.
# EC2: docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html; the others: their pages of common errors,
# and of EKS and of the price list the error that the model gives to the operation.
_INVALID = {
    "ec2": "InvalidParameterValue",
    "iam": "ValidationError",
    "sts": "ValidationError",
    "eks": "InvalidParameterException",
    "pricing": "InvalidParameterException",
}  # of the others: ValidationException


def check_request(service: str, shape: Any, params: Json) -> None:
    """Raise the service's refusal of a request that lacks what is required, or has what cannot be."""
    if shape is not None:
        _asked(service, shape, params, "")


def _asked(service: str, shape: Any, value: Any, where: str) -> None:
    kind = shape.type_name
    if kind == "structure":
        _all_asked(service, shape, value, where)
    elif kind == "list":
        _within(service, shape, len(value), where)
        for each in value:
            _asked(service, shape.member, each, where)
    elif kind == "string":
        if shape.enum and value not in shape.enum and shape.name not in _OPEN_CHOICES:
            raise _invalid(service, where, value)
        _within(service, shape, len(value), where)
    elif kind in ("integer", "long", "float", "double"):
        _within(service, shape, value, where)


def _all_asked(service: str, shape: Any, value: Json, where: str) -> None:
    for name in shape.required_members:
        if name not in value:
            code = "MissingParameter" if service == "ec2" else _INVALID.get(service, "ValidationException")
            raise AwsError(code, f"The request must contain the parameter {where}{name}")
    for name, inner in value.items():
        member = shape.members.get(name)
        if member is not None and inner is not None:
            _asked(service, member, inner, f"{where}{name}.")


def _within(service: str, shape: Any, size: float, where: str) -> None:
    metadata = shape.metadata
    if not metadata.get("min", size) <= size <= metadata.get("max", size):
        raise _invalid(service, where, size)


def _invalid(service: str, where: str, value: Any) -> AwsError:
    code = _INVALID.get(service, "ValidationException")
    return AwsError(code, f"Value ({value}) for parameter {where.rstrip('.')} is invalid.")

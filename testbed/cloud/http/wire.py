"""AWS's protocols: requests become (service, operation, parameters), answers become bodies.

Parameters carry their API names, read with botocore's models. Written here rather than borrowed from moto because
moto's form parser scans all fields for every member: 0.23 s for a fleet with 180 overrides, where this takes 0.006 s.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import botocore.session

from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.fitting import check_request
from testbed.cloud.json_object import Json

FORM = "application/x-www-form-urlencoded"
KNOWN = frozenset({"ec2", "eks", "iam", "pricing", "sqs", "ssm", "sts", "arc-zonal-shift"})
REQUEST_ID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One AWS call as it arrived."""

    service: str
    operation: str
    params: Json
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back over HTTP."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


@cache
def model(service: str) -> Any:
    """botocore's description of a service (EC2's takes 0.2 s to read, once)."""
    return botocore.session.get_session().get_service_model(service)


def signing_service(authorization: str) -> str:
    """The service in the credential scope of a signature; EKS and others share hosts here, never scopes."""
    parts = authorization.split("Credential=", 1)[-1].split(",", 1)[0].split("/")
    return parts[3].lower() if len(parts) >= 5 else "unsigned"


def read_call(environ: Mapping[str, Any], body: bytes) -> Call:
    """Find out which call this is; one that is not recognised keeps method and path as its operation."""
    service = signing_service(environ.get("HTTP_AUTHORIZATION", ""))
    agent = environ.get("HTTP_USER_AGENT", "")
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        operation, params = target.rsplit(".", 1)[-1], json.loads(body or b"{}")
        return Call(service=service, operation=operation, params=params, agent=agent)
    if environ.get("CONTENT_TYPE", "").startswith(FORM):
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
        operation = fields.pop("Action", "")
        fields.pop("Version", None)
        return Call(service=service, operation=operation, params=_read_form(service, operation, fields), agent=agent)
    operation, params = _read_path(environ["REQUEST_METHOD"], environ.get("PATH_INFO", "/"), service)
    return Call(service=service, operation=operation, params=params, agent=agent)


def _read_path(method: str, path: str, service: str) -> tuple[str, Json]:
    parts = [unquote(part) for part in path.strip("/").split("/", 1)]
    if service == "eks" and method == "GET" and len(parts) == 2 and parts[0] == "clusters" and "/" not in parts[1]:
        return "DescribeCluster", {"name": parts[1]}
    if service == "arc-zonal-shift" and method == "GET" and len(parts) == 2 and parts[0] == "managedresources":
        return "GetManagedResource", {"resourceIdentifier": parts[1]}
    return f"{method} {path}", {}


# ---- forms (EC2 and query protocol) -----------------------------------------------------------------------


def _read_form(service: str, operation: str, fields: Mapping[str, str]) -> Json:
    tree: Json = {}
    for name, value in fields.items():
        node = tree
        *path, last = name.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    try:
        shape = model(service).operation_model(operation).input_shape
    except Exception as unknown:
        raise AwsError("InvalidAction", f"The action {operation} is not valid for {service}.") from unknown
    return _structure(tree, shape, is_ec2=service == "ec2") if shape is not None else {}


def check_call(call: Call) -> None:
    """AWS's refusal of a request that the operation's model does not allow; unknown operations are asked of moto."""
    service_model = model(call.service) if call.service in KNOWN else None
    if service_model is not None and call.operation in service_model.operation_names:
        check_request(call.service, service_model.operation_model(call.operation).input_shape, call.params)


def _field_name(member_name: str, shape: Any, *, is_ec2: bool) -> str:
    named = shape.serialization
    if not is_ec2:
        return str(named.get("name", member_name))
    name = named.get("queryName") or named.get("name", member_name)
    return str(name if "queryName" in named else name[0].upper() + name[1:])


def _structure(tree: Json, shape: Any, *, is_ec2: bool) -> Json:
    result: Json = {}
    left = set(tree) if is_ec2 else set()
    for member_name, member in shape.members.items():
        field = _field_name(member_name, member, is_ec2=is_ec2)
        found = tree.get(field)
        if found is not None:
            left.discard(field)
            result[member_name] = _value(found, member, is_ec2=is_ec2)
    if left:
        raise AwsError("UnknownParameter", f"The parameter {sorted(left)[0]} is not recognized")
    return result


def _value(found: Any, shape: Any, *, is_ec2: bool) -> Any:
    match shape.type_name:
        case "structure":
            return _structure(found, shape, is_ec2=is_ec2)
        case "list":
            items = found if is_ec2 or shape.serialization.get("flattened") else found.get("member", {})
            items = items if isinstance(items, dict) else {}
            return [_value(items[key], shape.member, is_ec2=is_ec2) for key in sorted(items, key=int)]
        case "map":
            entries = found.get("entry", found)
            return {each["key"]: each.get("value", "") for _, each in sorted(entries.items())}
        case "boolean":
            return found == "true"
        case "integer" | "long":
            return int(found)
        case "float" | "double":
            return float(found)
        case _:
            return found


# ---- answers ----------------------------------------------------------------------------------------------


def moment(value: float | datetime) -> str:
    """A moment as AWS writes it."""
    when = value if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def write_answer(call: Call, result: Json) -> Answer:
    """A success in the protocol of the service."""
    operation = model(call.service).operation_model(call.operation)
    protocol = operation.service_model.resolved_protocol
    if protocol in ("ec2", "query"):
        body = _xml_document(operation, result, protocol)
        return Answer(status=200, headers=[("Content-Type", "text/xml;charset=UTF-8")], body=body.encode())
    kind = "application/json" if protocol == "rest-json" else "application/x-amz-json-1.1"
    return Answer(status=200, headers=[("Content-Type", kind)], body=json.dumps(result).encode())


def write_error(call: Call, error: AwsError) -> Answer:
    """A refusal in the protocol of the service."""
    code, message = escape(error.code), escape(error.message)
    if call.service == "ec2":
        body = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
            f"<RequestID>{REQUEST_ID}</RequestID></Response>"
        )
    elif call.service in ("iam", "sts"):
        body = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
            f"<RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
        )
    else:
        # SQS names its old codes in the second header; the others ignore it
        headers = [
            ("Content-Type", "application/x-amz-json-1.1"),
            ("x-amzn-errortype", error.code),
            ("x-amzn-query-error", f"{error.code};Sender"),
        ]
        text = json.dumps({"__type": error.code, "message": error.message})
        return Answer(status=error.status, headers=headers, body=text.encode())
    return Answer(status=error.status, headers=[("Content-Type", "text/xml;charset=UTF-8")], body=body.encode())


def _xml_document(operation: Any, result: Json, protocol: str) -> str:
    parts: list[str] = []
    if operation.output_shape is not None:
        _xml_members(parts, result, operation.output_shape, protocol)
    inner, name = "".join(parts), operation.name
    namespace = operation.metadata.get("xmlNamespace", "")
    if protocol == "ec2":
        space = f"http://ec2.amazonaws.com/doc/{operation.metadata['apiVersion']}/"
        return f'<{name}Response xmlns="{space}"><requestId>{REQUEST_ID}</requestId>{inner}</{name}Response>'
    wrapper = operation.output_shape.serialization.get("resultWrapper") if operation.output_shape is not None else None
    wrapped = f"<{wrapper}>{inner}</{wrapper}>" if wrapper else inner
    about = f"<ResponseMetadata><RequestId>{REQUEST_ID}</RequestId></ResponseMetadata>"
    return f'<{name}Response xmlns="{namespace}">{wrapped}{about}</{name}Response>'


def _xml_members(parts: list[str], value: Json, shape: Any, protocol: str) -> None:
    members = shape.members
    for name, inner in value.items():
        member = members.get(name)
        if member is not None and inner is not None:
            _xml_value(parts, member.serialization.get("name", name), inner, member, protocol)


def _xml_value(parts: list[str], tag: str, value: Any, shape: Any, protocol: str) -> None:
    kind = shape.type_name
    if kind == "structure":
        parts.append(f"<{tag}>")
        _xml_members(parts, value, shape, protocol)
        parts.append(f"</{tag}>")
    elif kind == "list":
        item = shape.member.serialization.get("name", "item" if protocol == "ec2" else "member")
        parts.append(f"<{tag}>")
        for each in value:
            _xml_value(parts, item, each, shape.member, protocol)
        parts.append(f"</{tag}>")
    else:
        parts.append(f"<{tag}>{escape(_scalar(value, kind))}</{tag}>")


def _scalar(value: Any, kind: str) -> str:
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "timestamp" and not isinstance(value, str):
        return moment(value)
    if kind == "blob":
        return base64.b64encode(value).decode()
    return str(value)

"""The search attributes that the namespace must have before a workflow runs.

If one were missing, the first workflow would hang without a message, so missing ones are added if that is allowed. If
the operator's calls are refused or unavailable, as in Temporal Cloud and in a shared namespace, a harmless query shows
whether an attribute is known; missing ones are then listed with the commands that add them.
"""

from collections.abc import Sequence
from typing import Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.identity.search_attributes import ALL
from dovetail.connection.configuration import TemporalRefuses, TemporalUnusable

_CLOSED: Final = (RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED)
_NOT_ADDED: Final = (*_CLOSED, RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.FAILED_PRECONDITION)  # one too many, say
_NOBODY: Final = "nobody"  # looked for in the harmless query


async def register_search_attributes(client: Client) -> None:
    """Add the attributes that are missing; TemporalUnusable names those that may not be added. TemporalRefuses: the
    namespace is not there, or its server is not ready."""
    try:
        missing = await missing_search_attributes(client)
        if missing:
            await _add(client, missing)
    except RPCError as error:
        raise TemporalRefuses(f"namespace {client.namespace} cannot be used: {error.message}") from None


async def _add(client: Client, missing: Sequence[str]) -> None:
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=client.namespace,
                search_attributes=dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD),
            )
        )
    except RPCError as error:
        if error.status in _NOT_ADDED:
            raise TemporalUnusable(
                f"search attributes are missing in namespace {client.namespace}, and may not be added by us "
                f"({error.message}). Add them in one of these ways:\n{registration_lines(client.namespace, missing)}"
            ) from None
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            raise


async def missing_search_attributes(client: Client) -> list[str]:
    """The attributes that the namespace does not have."""
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        found = await client.operator_service.list_search_attributes(request)
    except RPCError as error:
        if error.status not in _CLOSED:
            raise
        return sorted([key.name for key in ALL if not await _is_known(client, key.name)])
    return sorted(key.name for key in ALL if key.name not in found.custom_attributes)


async def _is_known(client: Client, attribute: str) -> bool:
    """Whether a query may name the attribute: the server refuses to look for one that it does not know."""
    try:
        await client.count_workflows(f"{attribute} = '{_NOBODY}'")
    except RPCError as error:
        if error.status != RPCStatusCode.INVALID_ARGUMENT:
            raise
        return False
    return True


def registration_lines(namespace: str, missing: Sequence[str]) -> str:
    """How a person adds them: with `temporal` to a server of one's own, with tcld or Terraform to Temporal Cloud."""
    names = " ".join(f"--name {name} --type Keyword" for name in missing)
    pairs = " ".join(f'--search-attribute "{name}=Keyword"' for name in missing)
    one_by_one = ", ".join(f'"{name}"' for name in missing)
    return "\n".join(
        [
            f"  temporal operator search-attribute create --namespace {namespace} {names}",
            f"  tcld namespace search-attributes add --namespace {namespace} {pairs}",
            '  resource "temporalcloud_namespace_search_attribute" "dovetail" {   # Terraform',
            f"    for_each     = toset([{one_by_one}])",
            f'    namespace_id = "{namespace}"',
            "    name         = each.key",
            '    type         = "keyword"',
            "  }",
        ]
    )

"""Lists, page by page.

Pages of 500 keep one answer of a large cluster under a few megabytes. A continuation that expires half-way (410) is
raised as Expired, and the caller lists again from the beginning: the pages so far are no complete list.

What has neither a version nor items is no list, whatever its status: the JSON of a gateway that stands before the API
server, taken for "there are none", would empty nodes of their pods and forget every Freeze.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.kube.requests import Caller, Request
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable

PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some objects of a list, and the version that the whole list is of."""

    items: list[Json]
    version: int


async def pages(client: Caller, path: str, subject: str, query: dict[str, str] | None = None) -> AsyncIterator[Page]:
    """The pages of a consistent list."""
    asked = {"limit": str(PAGE), **(query or {})}
    while True:
        answer = await client.call(Request(method="GET", path=path, subject=subject, query=asked))
        meta = answer.body.get("metadata") or {}
        if not meta.get("resourceVersion") or "items" not in answer.body:
            raise Unreachable(subject, f"not a list of the API server: {str(answer.body)[:200]}")
        yield Page(items=answer.body["items"] or [], version=int(meta["resourceVersion"]))
        if not meta.get("continue"):
            return
        asked = {**asked, "continue": meta["continue"]}


async def list_all(client: Caller, path: str, subject: str, query: dict[str, str] | None = None) -> AsyncIterator[Json]:
    async for page in pages(client, path, subject, query):
        for raw in page.items:
            yield raw

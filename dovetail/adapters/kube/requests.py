"""A request to the API server, and who sends it: a worker's client, or a command's own connection.

It loads no HTTP library, so that a command that writes one annotation does not wait for one.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import quote

from dovetail.adapters.kube.failures import Answer, failure_of

MERGE_PATCH: Final = "application/merge-patch+json"
PARTS_PATCH: Final = "application/json-patch+json"  # operations, each of which may be a test
KEYED_PATCH: Final = "application/strategic-merge-patch+json"  # merges the entries of a list by their key

# Questions that are put by POST: what we may do. They leave nothing behind.
_REVIEWS: Final = ("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `subject` is how a failure names it: Kind/name."""

    method: str
    path: str
    subject: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    expected: frozenset[int] = frozenset()  # statuses, besides success, that the caller looks at itself
    patch_type: str = MERGE_PATCH  # PLM-8

    @property
    def content_type(self) -> str:
        """How to read the body."""
        return self.patch_type if self.method == "PATCH" else "application/json"

    @property
    def writes(self) -> bool:
        """Whether it may leave a change behind."""
        return self.method != "GET" and not self.path.startswith(_REVIEWS)

    def checked(self, answer: Answer) -> Answer:
        """The answer; a failure if its status is neither success nor expected, or is not the API server's."""
        if answer.is_the_servers and (answer.status < 300 or answer.status in self.expected):
            return answer
        raise failure_of(answer, self.subject)


class Caller(Protocol):
    async def call(self, request: Request) -> Answer:
        """One request and its answer; a failure if the status is neither success nor expected."""
        ...


def object_path(collection: str, name: str, subresource: str = "", namespace: str = "") -> str:
    """The path of one object, from the path of its kind in all namespaces."""
    if namespace:
        head, _, plural = collection.rpartition("/")
        collection = f"{head}/namespaces/{quote(namespace, safe='')}/{plural}"
    path = f"{collection}/{quote(name, safe='')}"
    return f"{path}/{subresource}" if subresource else path
